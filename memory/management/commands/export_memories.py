from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from memory.management.base import HippoCommand, find_agent, progress
from memory.services.maintenance import count_memories
from memory.services.transfer import export_lines


class Command(HippoCommand):
    help = "Export memories with their history as JSON lines, to a file or to the standard output."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, nargs="?", metavar="FILE.jsonl")
        parser.add_argument("--agent", required=True)
        parser.add_argument("--user", help="only this user's memories")

    def run(self, **options: Any) -> None:
        agent = find_agent(options["agent"])
        path: Path | None = options["file"]
        total = None if options["user"] else count_memories(agent)
        lines = progress(total, "Exporting")
        with lines:
            if path is None:
                for line in export_lines(agent, options["user"]):
                    sys.stdout.write(f"{line}\n")
                    lines.update()
                return
            # the old file stays until the new one is whole
            draft = path.with_name(f"{path.name}.part")
            try:
                with draft.open("w", encoding="utf-8") as file:
                    draft.chmod(0o600)
                    for line in export_lines(agent, options["user"]):
                        file.write(f"{line}\n")
                        lines.update()
                os.replace(draft, path)
            except OSError as error:
                raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
        self.stdout.write(f"{int(lines.n)} memories written to {path}")
