"""What can go wrong, each with the next step in its message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class HippoError(Exception):
    """Base of every error that is told to a caller; `code` is its name for programs."""

    code = "error"
    is_servers_fault = False
    """Whether the same call may do better later, or somewhere else."""


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
    is_servers_fault = True


class BackendUnavailable(HippoError):
    """The backend an agent is set to cannot be used; the message says what to do."""

    code = "backend_unavailable"
    is_servers_fault = True


class UnscopedQuery(HippoError):
    """A memory query that names neither an agent nor an instance: a programming error."""

    code = "unscoped_query"
    is_servers_fault = True


class ClockWrong(HippoError):
    """The machine's clock stands before Hippo was made, so ids would collide."""

    code = "clock_wrong"
    is_servers_fault = True


class UnknownJob(HippoError):
    """No job of that number."""

    code = "not_found"


class JobNotEnded(HippoError):
    """A job that waits, runs or is done cannot be tried again."""

    code = "job_not_ended"


class IdempotencyConflict(HippoError):
    """An Idempotency-Key that came before with another request."""

    code = "idempotency_key_reused"


class AmbiguousName(HippoError):
    """Several memories of a scope have the name; only one of the `ids` tells them apart."""

    code = "ambiguous_name"

    def __init__(self, name: str, ids: Sequence[int]) -> None:
        self.ids = tuple(ids)
        listed = ", ".join(map(str, ids))
        super().__init__(f"Several memories are named {name!r}: ids {listed}. Say which by its id.")


class WouldStrandMemories(HippoError):
    """A change of configuration that would leave memories behind in the present store."""

    code = "would_strand_memories"


class MemoryOff(HippoError):
    """The agent's memory is switched off."""

    code = "memory_off"


class MoveRefused(HippoError):
    """Memories cannot be moved as asked; nothing was switched, and the message says why."""

    code = "move_refused"


class MemoryPaused(HippoError):
    """The user does not want to be remembered by this agent for now."""

    code = "memory_paused"
