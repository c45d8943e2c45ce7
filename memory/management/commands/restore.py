from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from agents.models import Agent
from memory.management.base import HippoCommand
from memory.services import maintenance
from memory.services.backups import restoring
from memory.services.backups.manifest import DATA, Manifest, Part


class Command(HippoCommand):
    help = (
        "Restore a backup into an empty DATA_DIR, and an empty MySQL database where it is of one; "
        "then migrate and check everything. If this is killed, run it again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="one backup's own folder")
        parser.add_argument(
            "--replace",
            action="store_true",
            help="where something is there already, move it aside first",
        )

    def run(self, **options: Any) -> None:
        try:
            found, aside = restoring.restore(
                options["folder"],
                replace=options["replace"],
                now=timezone.now(),
                on_part=self._tell,
            )
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            what = "The disk is full, and a part is restored. Make room, and run the restore again."
            raise CommandError(what) from error
        call_command("migrate_stores", stdout=self.stdout, stderr=self.stderr)
        faults = None
        try:
            call_command("check_memory", stdout=self.stdout, stderr=self.stderr)
        except CommandError as error:
            faults = error
        self._sum_up(found, aside)
        if faults:
            raise CommandError(f"All is restored, but not well: {faults}") from faults

    def _tell(self, part: Part) -> None:
        self.stdout.write(f"{part.path}: {part.size:,} bytes")

    def _sum_up(self, found: Manifest, aside: str) -> None:
        agents = Agent.objects.select_related("memory_config")
        memories = sum(maintenance.count_memories(agent) for agent in agents)
        self.stdout.write(
            f"Restored: {len(agents)} agents, {memories} memories, as of "
            f"{found.taken_at:%Y-%m-%d %H:%M:%S} UTC. What was changed, revoked or erased since "
            "is as it was then."
        )
        if aside:
            self.stdout.write(f"What was here is in {settings.DATA_DIR / aside}.")
            for database in found.databases:
                if database.engine == "mysql":
                    name = restoring.aside_database(database.alias, aside)
                    self.stdout.write(f"What was in MySQL is in the database {name}.")
            self.stdout.write("Delete that when all is well.")
        if not any(part.path == f"{DATA}/secret_key" for part in found.files):
            self.stdout.write("The backup holds no secret_key: set SECRET_KEY as it was then.")
        self.stdout.write(
            "Messages to the worker are in no backup: jobs that waited or ran are sent again "
            "within minutes of ./run."
        )
