from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from agents import audit
from agents.models import AuditAction
from memory.management.base import HippoCommand, find_agent, progress
from memory.services.transfers.transfer import ImportReport, import_lines

_SHOWN = 20
_SHOWN_ERRORS = 1_000


def _counted(lines: Iterable[bytes], bar: Any) -> Iterator[bytes]:
    for line in lines:
        yield line
        bar.update(len(line))


class Command(HippoCommand):
    help = "Import memories from JSON lines; safe to repeat. Bad lines are reported and skipped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.jsonl", help="- reads from stdin")
        parser.add_argument("--agent", required=True)
        parser.add_argument(
            "--user", help="give all memories to this user_id, not to the one each line names"
        )

    def run(self, **options: Any) -> None:
        agent = find_agent(options["agent"])
        path: Path = options["file"]
        try:
            with sys.stdin.buffer if path == Path("-") else path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size or None  # a pipe has none
                with progress(size, "Importing", unit="B") as bar:
                    report = import_lines(
                        agent, _counted(file, bar), user_id=options["user"], now=timezone.now()
                    )
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
        audit.note(
            None,
            AuditAction.IMPORTED,
            agent=agent,
            user_id=options["user"] or "",
            count=report.created + report.updated,
            now=timezone.now(),
        )
        self._tell(report, path)

    def _tell(self, report: ImportReport, path: Path) -> None:
        self.stdout.write(
            f"{report.created} created, {report.updated} updated, {report.unchanged} unchanged, "
            f"{len(report.kept)} newer here, {len(report.errors)} bad lines"
        )
        remarks = [*report.renumbered, *report.kept]
        for number, message in remarks[:_SHOWN]:
            self.stdout.write(f"line {number}: {message}")
        if len(remarks) > _SHOWN:
            self.stdout.write(f"… and {len(remarks) - _SHOWN} lines more")
        for number, message in report.errors[:_SHOWN_ERRORS]:
            self.stderr.write(f"{path} line {number}: {message}")
        if len(report.errors) > _SHOWN_ERRORS:
            self.stderr.write(f"… and {len(report.errors) - _SHOWN_ERRORS} bad lines more")
