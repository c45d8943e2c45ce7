"""Whether two stores hold the same of an agent, down to every field and the index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce

from agents.models import Agent
from memory.errors import HippoError
from memory.models import Scope, Status
from memory.services.moves import copying, copying_requests

_CHUNK = 500
_SHOWN = 5


class CopyDiffers(HippoError):
    """What was copied is not what is there; nothing was switched."""

    code = "copy_differs"


@dataclass(slots=True)
class Tally:
    """What a store holds of an agent: numbers, and one sum over every field of every row.

    The sum, of 256 bits, does not depend on the order of the rows or on keys that a store
    makes itself. `memories` counts by user, the trash included; no user is left out.
    """

    memories: dict[str, int]
    revisions: int = 0
    requests: int = 0
    checksum: int = 0

    def add(self, row: Any) -> None:
        """Add one row to the sum."""
        digest = sha256(repr(row).encode("utf-8", "surrogatepass")).digest()
        self.checksum = (self.checksum + int.from_bytes(digest)) % 2**256

    def summary(self) -> dict[str, Any]:
        """Return the figures as a job's result."""
        return {
            "memories": sum(self.memories.values()),
            "users": len(self.memories),
            "revisions": self.revisions,
            "requests": self.requests,
            "checksum": f"{self.checksum:064x}",
        }


def tally(agent: Agent, on_progress: Callable[[int], object] = lambda _: None) -> Tally:
    """Read all that `agent` has in its store; `on_progress` hears of memories read."""
    users = Scope.objects.for_agent(agent).values_list("user_id", flat=True)
    found = Tally(dict.fromkeys(users.iterator(), 0))
    for user_id in found.memories:
        found.add(("scope", user_id))
    last = -1
    while rows := copying.outlines(agent, last):
        last = rows[-1][0]
        for chunk in copying.split([row[0] for row in rows], _CHUNK):
            for state in copying.states(agent, chunk).values():
                user_id, revisions = state[1], state[-1]
                found.memories[user_id] = found.memories.get(user_id, 0) + 1
                found.revisions += len(revisions)
                found.add(("memory", state))
            on_progress(len(chunk))
    for records in copying_requests.chunks(agent):
        found.requests += len(records)
        for record in records:
            found.add(("request", copying_requests.state(record)))
        on_progress(0)
    return found


def difference(here: Tally, there: Tally) -> str | None:
    """Return in words how two stores differ, or None."""
    users = here.memories.keys() | there.memories.keys()
    counts = {user: (here.memories.get(user), there.memories.get(user)) for user in users}
    differing = sorted(user for user, (ours, theirs) in counts.items() if ours != theirs)
    if differing:
        shown = ", ".join(
            "{}: {} here, {} there".format(user, *counts[user]) for user in differing[:_SHOWN]
        )
        return f"{len(differing)} users have other numbers of memories ({shown})"
    if here.checksum != there.checksum:
        return "the numbers agree, the checksums do not"
    return None


def miscounted_users(agent: Agent) -> list[str]:
    """Return the users whose counts, memories and index rows disagree; one query.

    Analyses nothing, unlike `maintenance.check`: it says whether there is a row for each
    memory, not whether the row is right.
    """
    is_trashed = Q(memories__status=Status.TRASHED)
    is_indexed = Q(memories__indexed__scope_id=F("pk"))
    scopes = Scope.objects.for_agent(agent).annotate(
        kept=Count("memories", filter=~is_trashed),
        indexed=Count("memories__indexed", filter=is_indexed & ~is_trashed),
        rows=Count("memories__indexed"),
        terms=Coalesce(Sum("memories__indexed__content_terms"), 0),
    )
    agrees = Q(memory_count=F("kept"), indexed=F("kept"), rows=F("kept"), content_terms=F("terms"))
    return list(scopes.exclude(agrees).values_list("user_id", flat=True)[:_SHOWN])
