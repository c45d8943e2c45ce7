"""Log lines, as text for people or as JSON for programs: each says of which request or job it is.

The settings load this before anything else: only the standard library is imported here.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType

_NOTHING: Mapping[str, object] = MappingProxyType({})
# for log lines and error pages only: where a query goes never depends on it
_context: ContextVar[Mapping[str, object]] = ContextVar("log_context", default=_NOTHING)


@contextmanager
def bound(**fields: object) -> Iterator[None]:
    """Let every line that is logged inside carry `fields`, such as the request's id."""
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


def request_id() -> str:
    """Return the id of the request that is being answered; '' outside of one."""
    return str(_context.get().get("request", ""))


class ContextFilter(logging.Filter):
    """Notes on a record what was bound when it was logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        record.bound = _context.get()
        return True


class TextFormatter(logging.Formatter):
    """One line for people; a traceback follows on lines of its own."""

    default_msec_format = "%s.%03d"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line; what somebody else chose, such as a path, cannot begin another."""
        line = super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")
        named = " ".join(f"{name}={value}" for name, value in _bound(record).items())
        return f"{line} [{named}]" if named else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line; `fields` of a record become keys of their own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object, in ASCII: no text in it can break the line or its encoding."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", _NOTHING),
            **_bound(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _bound(record: logging.LogRecord) -> Mapping[str, object]:
    found: Mapping[str, object] = getattr(record, "bound", _NOTHING)
    return found
