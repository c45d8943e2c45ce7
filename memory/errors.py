"""What can go wrong, each with the next step in its message."""

from __future__ import annotations

from collections.abc import Mapping


class HippoError(Exception):
    """Base of every error that is told to a caller; `code` is its name for programs."""

    code = "error"


class InvalidMemory(HippoError):
    """A memory, a query or an identifier that cannot be accepted.

    `fields` maps the name of each field at fault to what is wrong with it.
    """

    code = "invalid"

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {problem}" for name, problem in fields.items()))


class UnknownMemory(HippoError):
    """No memory of that id in that scope; ids of other owners read the same."""

    code = "not_found"


class VersionConflict(HippoError):
    """Somebody else changed the memory since it was read."""

    code = "version_conflict"


class StoreNotOpen(HippoError):
    """The agent's memories are being moved, or have moved, to another store."""

    code = "store_not_open"


class BackendUnavailable(HippoError):
    """The backend an agent is set to cannot be used; the message says what to do."""

    code = "backend_unavailable"


class UnscopedQuery(HippoError):
    """A memory query that names neither an agent nor an instance: a programming error."""

    code = "unscoped_query"


class ClockWrong(HippoError):
    """The machine's clock stands before Hippo was made, so ids would collide."""

    code = "clock_wrong"
