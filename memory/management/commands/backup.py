from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from memory.management.base import HippoCommand
from memory.services.backups import taking
from memory.services.backups.manifest import Part


class Command(HippoCommand):
    help = (
        "Take a backup of all databases as they are at one moment, and of the files beside them, "
        "while Hippo runs. What was acknowledged before is in it. The last line is its folder."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--to", type=Path, metavar="FOLDER", help="where backups are kept (DATA_DIR/backups)"
        )
        parser.add_argument(
            "--keep", type=int, metavar="N", help="then delete all but the newest N that are here"
        )
        parser.add_argument(
            "--no-verify",
            action="store_true",
            help="do not let SQLite read through its copies; files are hashed all the same",
        )

    def run(self, **options: Any) -> None:
        if options["keep"] is not None and options["keep"] < 1:
            raise CommandError("--keep takes a number, 1 or more.")
        path, taken = taking.take(
            (options["to"] or Path(settings.DATA_DIR) / "backups").absolute(),
            keep=options["keep"],
            is_checked=not options["no_verify"],
            now=timezone.now(),
            on_part=self._tell,
        )
        self.stdout.write(
            f"Complete: {taken.rows('agents_agent')} agents, {taken.rows('memory_memory')} "
            f"memories, {taken.size:,} bytes, as of {taken.taken_at:%Y-%m-%d %H:%M:%S} UTC"
        )
        self.stdout.write(str(path))

    def _tell(self, part: Part) -> None:
        self.stdout.write(f"{part.path}: {part.size:,} bytes")
