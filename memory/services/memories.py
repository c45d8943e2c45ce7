"""The life of memories: save, read, change, trash, restore, purge.

Every function takes the agent and the exact user_id; ids of other owners are unknown
here. `actor` is who does it; `reason` goes into the memory's history.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import F, Q
from django.utils import timezone

from agents.models import Agent
from memory import recall_log
from memory.drafts import MemoryDraft, parse_changes
from memory.errors import InvalidMemory
from memory.filters import MemoryFilter
from memory.ids import MAX_ID, next_ids
from memory.indexing import Analysis, analyze
from memory.models import Memory, MemoryRevision, Scope, Status, StoreState
from memory.querysets import MemoryQuerySet
from memory.services import writing
from memory.services.figures import counting
from memory.services.writing import Actor, locked_scope, retried

MAX_PAGE = 200
_CHUNK = 500
Prepared = tuple[Memory, Analysis]
"""A new memory and its terms, ready to be stored."""


@dataclass(frozen=True, slots=True)
class Page:
    """Memories, newest first; `next` is the cursor of the following page, or ''."""

    memories: list[Memory]
    next: str


def save(agent: Agent, user_id: str, draft: MemoryDraft, *, now: datetime) -> Memory:
    """Store one new memory and return it; readers see it when this returns."""
    return save_batch(agent, user_id, [draft], now=now)[0]


def save_batch(
    agent: Agent, user_id: str, drafts: Sequence[MemoryDraft], *, now: datetime
) -> list[Memory]:
    """Store new memories, all or none, in order; one transaction."""
    return store(agent, user_id, prepare(drafts, now=now))


def prepare(drafts: Sequence[MemoryDraft], *, now: datetime) -> list[Prepared]:
    """Return new memories with their ids and terms: what is slow, done before any lock."""
    ids = next_ids(len(drafts), now=now)
    return [
        (writing.new_memory(memory_id, draft, now=now), analyze(draft))
        for memory_id, draft in zip(ids, drafts, strict=True)
    ]


@retried
def store(agent: Agent, user_id: str, prepared: Sequence[Prepared]) -> list[Memory]:
    """Store what was prepared, all or none, in order; one transaction."""
    with locked_scope(agent, user_id, create=True) as scope:
        writing.insert(scope, prepared)
        saved = [memory for memory, _ in prepared]
        if saved:
            writing.note_saved(scope, saved, now=saved[0].created_at)
    return saved


def get(agent: Agent, user_id: str, memory_id: int) -> Memory:
    """Return one memory that is not in the trash. Raises UnknownMemory."""
    memory = Memory.objects.in_scope(agent, user_id).kept().filter(pk=memory_id).first()
    if memory is None:
        raise writing.unknown(agent, user_id, memory_id)
    return memory


def list_page(
    agent: Agent,
    user_id: str,
    wanted: MemoryFilter | None = None,
    *,
    cursor: str = "",
    limit: int = 50,
) -> Page:
    """Return one page of at most `limit` (1 to 200) memories, newest first.

    Walking `next` to its end meets every memory that was there all the while once.
    Raises InvalidMemory for a cursor that is none of ours.
    """
    memories = (wanted or MemoryFilter()).listed(Memory.objects.in_scope(agent, user_id))
    memories = before(memories, read_cursor(cursor) if cursor else None)
    limit = max(1, min(limit, MAX_PAGE))
    rows = list(memories.newest_first()[: limit + 1])
    return Page(rows[:limit], make_cursor(rows[limit - 1]) if len(rows) > limit else "")


@retried
def update(
    agent: Agent,
    user_id: str,
    memory_id: int,
    changes: Mapping[str, Any],
    *,
    actor: Actor,
    now: datetime,
    reason: str = "",
    expected_version: int | None = None,
) -> Memory:
    """Change some fields of a memory and return it.

    The same change again does nothing. Raises UnknownMemory (the trash included),
    InvalidMemory, and VersionConflict where `expected_version` is not the current one.
    """
    values = parse_changes(changes)
    if values.get("status") == Status.TRASHED:
        raise InvalidMemory({"status": "Delete the memory to move it to the trash."})
    with locked_scope(agent, user_id) as scope:
        memory = _kept(scope, memory_id, agent)
        writing.require_version(memory, expected_version)
        writing.change(scope, [memory], lambda _: values, actor=actor, reason=reason, now=now)
    return memory


@retried
def reinforce(
    agent: Agent, user_id: str, memory_id: int, delta: float, *, actor: Actor, now: datetime
) -> Memory:
    """Raise or lower a memory's importance by `delta`, within [0, 1]. Raises UnknownMemory."""
    if not -1 <= delta <= 1:
        raise InvalidMemory({"delta": "This lies between -1 and 1."})
    with locked_scope(agent, user_id) as scope:
        memory = _kept(scope, memory_id, agent)
        importance = round(min(max(memory.importance + delta, 0.0), 1.0), 6)
        values = {"importance": importance}
        writing.change(scope, [memory], lambda _: values, actor=actor, reason="reinforce", now=now)
    return memory


@retried
def trash(
    agent: Agent,
    user_id: str,
    memory_id: int,
    *,
    actor: Actor,
    now: datetime,
    reason: str = "",
    expected_version: int | None = None,
) -> Memory:
    """Move a memory to the trash, out of the index. Raises UnknownMemory, VersionConflict."""
    with locked_scope(agent, user_id) as scope:
        memory = _kept(scope, memory_id, agent)
        writing.require_version(memory, expected_version)
        _trash(scope, [memory], actor=actor, reason=reason, now=now)
    return memory


@retried
def trash_matching(
    agent: Agent,
    user_id: str,
    wanted: MemoryFilter,
    *,
    actor: Actor,
    now: datetime,
    reason: str = "",
) -> int:
    """Move every memory that meets `wanted` to the trash; return how many. One transaction."""
    if not Scope.objects.of_user(agent, user_id).exists():
        return 0
    trashed = 0
    with locked_scope(agent, user_id) as scope:
        kept = wanted.listed(Memory.objects.of_scope(scope)).kept()
        ids = list(kept.values_list("id", flat=True))
        for start in range(0, len(ids), _CHUNK):
            memories = Memory.objects.of_scope(scope).filter(pk__in=ids[start : start + _CHUNK])
            trashed += _trash(scope, memories, actor=actor, reason=reason, now=now)
    return trashed


@retried
def purge_matching(agent: Agent, user_id: str, wanted: MemoryFilter) -> int:
    """Erase every memory that meets `wanted`, the trash included unless it names statuses.

    Returns how many, with revisions and index rows. One transaction.
    """
    if not Scope.objects.of_user(agent, user_id).exists():
        return 0
    with locked_scope(agent, user_id) as scope:
        found = Memory.objects.of_scope(scope)
        met = wanted.listed(found) if wanted.statuses else wanted.narrow(found)
        ids = list(met.values_list("id", flat=True))
        for start in range(0, len(ids), _CHUNK):
            chunk = ids[start : start + _CHUNK]
            kept = writing.unindex(scope, chunk)
            counting.note(scope, timezone.now(), deleted=kept)
            MemoryRevision.objects.using(scope._state.db).filter(memory_id__in=chunk).delete()
            Memory.objects.of_scope(scope).filter(pk__in=chunk).delete()
    return len(ids)


@retried
def restore(agent: Agent, user_id: str, memory_id: int, *, actor: Actor, now: datetime) -> Memory:
    """Take a memory out of the trash, with the status it had; found again at once.

    It is meant to be kept, so an `expires_at` that has passed goes. A memory that is not
    in the trash is returned as it is. Raises UnknownMemory.
    """
    with locked_scope(agent, user_id) as scope:
        memory = writing.find(scope, memory_id, agent=agent)
        writing.change(
            scope,
            [memory],
            lambda each: restored(each, now),
            actor=actor,
            reason="restore",
            now=now,
        )
    return memory


def restored(memory: Memory, now: datetime) -> dict[str, Any]:
    """Return what taking a memory out of the trash changes: nothing where it is not there."""
    if memory.status != Status.TRASHED:
        return {}
    before = max(memory.revisions.all(), key=lambda each: each.version, default=None)
    values: dict[str, Any] = {"status": before.state["status"] if before else Status.ACTIVE}
    if memory.expires_at and memory.expires_at <= now:
        values["expires_at"] = None
    return values


@retried
def purge(
    agent: Agent, user_id: str, memory_id: int, *, expected_version: int | None = None
) -> None:
    """Erase a memory with its revisions and index row, in the trash or not.

    Raises UnknownMemory, VersionConflict.
    """
    with locked_scope(agent, user_id) as scope:
        memory = writing.find(scope, memory_id, agent=agent)
        writing.require_version(memory, expected_version)
        kept = writing.unindex(scope, [memory.pk])
        counting.note(scope, timezone.now(), deleted=kept)
        memory.delete()


def touch(agent: Agent, user_id: str, memory_ids: Sequence[int], *, now: datetime) -> int:
    """Note that memories were recalled; return how many there were.

    Changes neither version, `updated_at`, revision nor index, and takes no lock.
    """
    scope = Scope.objects.of_user(agent, user_id).filter(state=StoreState.OPEN).first()
    if scope is None:
        return 0
    return (
        Memory.objects.of_scope(scope)
        .kept()
        .filter(pk__in=[each for each in memory_ids if 0 < each <= MAX_ID])
        .update(
            access_count=F("access_count") + 1,
            last_accessed_at=now,
            recall_log=recall_log.noted(now),
        )
    )


def history(
    agent: Agent,
    user_id: str,
    memory_id: int,
    *,
    before_version: int | None = None,
    limit: int | None = None,
) -> list[MemoryRevision]:
    """Return a memory's earlier states, newest first, trashed or not.

    With `before_version` only those of lower versions. Raises UnknownMemory.
    """
    memory = Memory.objects.in_scope(agent, user_id).filter(pk=memory_id).first()
    if memory is None:
        raise writing.unknown(agent, user_id, memory_id)
    revisions = memory.revisions.order_by("-version")
    if before_version is not None:
        revisions = revisions.filter(version__lt=before_version)
    return list(revisions[:limit])


def walk(agent: Agent, user_id: str | None = None) -> Iterator[Memory]:
    """Yield every memory of a user, or of all users, the trash included, oldest id first.

    Reads in chunks by key, so it holds no transaction and little memory.
    """
    memories = Memory.objects.for_agent(agent).select_related("scope")
    if user_id is not None:
        memories = memories.filter(scope__user_id=user_id)
    last = -1
    while chunk := list(
        memories.filter(pk__gt=last).order_by("id").prefetch_related("revisions")[:_CHUNK]
    ):
        yield from chunk
        last = chunk[-1].pk


def _kept(scope: Scope, memory_id: int, agent: Agent) -> Memory:
    memory = writing.find(scope, memory_id, agent=agent)
    if memory.status == Status.TRASHED:
        raise writing.unknown(agent, scope.user_id, memory_id)
    return memory


def _trash(scope: Scope, memories: Any, *, actor: Actor, reason: str, now: datetime) -> int:
    values = {"status": Status.TRASHED}
    return writing.change(scope, memories, lambda _: values, actor=actor, reason=reason, now=now)


def make_cursor(memory: Memory) -> str:
    """Return where a list goes on after `memory`."""
    text = f"{memory.created_at.isoformat()}|{memory.pk}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def before(memories: MemoryQuerySet, place: tuple[datetime, int] | None) -> MemoryQuerySet:
    """Return those of `memories` that come after a place in a list that is newest first."""
    if place is None:
        return memories
    created_at, memory_id = place
    older = Q(created_at=created_at, id__lt=memory_id)
    return memories.filter(Q(created_at__lt=created_at) | older)


def read_cursor(cursor: str) -> tuple[datetime, int]:
    """Return the place that `make_cursor` wrote. Raises InvalidMemory for anything else."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        created_at, _, memory_id = text.partition("|")
        moment = datetime.fromisoformat(created_at)
        if moment.tzinfo is None:
            raise ValueError("no zone")
        return moment.astimezone(UTC), min(int(memory_id), MAX_ID)
    except (ValueError, OverflowError, binascii.Error) as error:
        raise InvalidMemory(
            {"cursor": "This is no cursor of a list; begin again without one."}
        ) from error
