"""Celery's file-system broker, with messages that are there whole or not at all.

Kombu's own writes a message under its final name, so a worker can read half of one, or
nothing where the sender was killed; either ends the worker.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from pathlib import Path
from typing import Any

from kombu.transport import filesystem


class Channel(filesystem.Channel):
    """Writes beside, then renames."""

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        milliseconds = round(time.monotonic() * 1000)
        name = f"{milliseconds}_{uuid.uuid4()}.{queue}.msg"
        _write_whole(Path(self.data_folder_out) / name, payload)

    def _queue_bind(self, exchange: str, routing_key: str | None, pattern: Any, queue: str) -> None:
        bound = [routing_key or "", pattern or "", queue or ""]
        folder = Path(self.control_folder)
        folder.mkdir(exist_ok=True)
        with (folder / ".lock").open("w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)  # until it is closed
            table = self._bound_queues(exchange)  # refuses a name that leads elsewhere
            if bound not in table:
                _write_whole(folder / f"{exchange}.exchange", [bound, *table])

    def _bound_queues(self, exchange: str) -> list[list[str]]:
        try:
            return [list(each) for each in self.get_table(exchange)]
        except ValueError:  # torn by a version that wrote in place
            return []


class Transport(filesystem.Transport):
    """The transport behind `filesystem://`."""

    Channel = Channel


def _write_whole(path: Path, value: Any) -> None:
    draft = path.with_name(f".{uuid.uuid4()}")
    try:
        draft.write_text(json.dumps(value))
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
