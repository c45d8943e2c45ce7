from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from agents import audit
from agents.models import AuditAction
from memory.management.base import HippoCommand, find_agent, progress
from memory.models import Scope
from memory.services.maintenance import count_memories
from memory.services.transfers.transfer import export_lines


class Command(HippoCommand):
    help = "Export memories with their history as JSON lines, to a file or to the standard output."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, nargs="?", metavar="FILE.jsonl")
        parser.add_argument("--agent", required=True)
        parser.add_argument("--user", help="only this user's memories")

    def run(self, **options: Any) -> None:
        agent = find_agent(options["agent"])
        user_id, path = options["user"], options["file"]
        if user_id is not None and not Scope.objects.of_user(agent, user_id).exists():
            raise CommandError(f"Agent {agent.name} has no memories of user {user_id}.")
        audit.note(
            None,
            AuditAction.EXPORTED,
            agent=agent,
            user_id=user_id or "",
            detail="" if user_id else "every user",
            now=timezone.now(),
        )
        total = None if user_id else count_memories(agent)
        with progress(total, "Exporting") as bar:
            if path is None:
                _write(export_lines(agent, user_id), self.stdout, bar)
                return
            try:
                count = self._replace(path, export_lines(agent, user_id), bar)
            except OSError as error:
                raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
        self.stdout.write(f"{count} memories written to {path}")

    def _replace(self, path: Path, lines: Iterator[str], bar: Any) -> int:
        """Write a file beside `path` and put it in its place when it is whole."""
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        draft = path.with_name(f"{path.name}.part")
        try:
            with draft.open("w", encoding="utf-8") as file:
                draft.chmod(0o600)
                count = _write(lines, file, bar)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        return count


def _write(lines: Iterator[str], file: Any, bar: Any) -> int:
    count = 0
    for line in lines:
        file.write(f"{line}\n")
        bar.update()
        count += 1
    return count
