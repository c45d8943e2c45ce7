"""One agent's memories in two stores: making the second equal the first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from agents.models import Agent
from memory.databases import store_alias
from memory.errors import MoveRefused
from memory.ids import MAX_ID
from memory.indexing import Analysis, analyze
from memory.models import Memory, MemoryRevision, MemoryVector, Scope
from memory.services import erasure, writing
from memory.services.figures import counting
from memory.services.jobs import Run
from memory.services.moves import copying_counts, copying_requests
from memory.services.moves.holding import Copy, held, lock_scopes, require_frozen, scopes_of

CHUNK = 200
_RANGE = 5_000
"""Finding where a range of ids begins costs a look at all of an agent's, so ranges are wide."""
_SHOWN_IDS = 5
_LATE = timedelta(days=1)
"""What is done may be counted under the day before, where it was begun then."""
_RECALL_FIELDS = ("access_count", "last_accessed_at", "recall_log")
_OUTLINE = ("pk", "scope__user_id", "version", "updated_at", *_RECALL_FIELDS)
_VERSION = slice(1, 4)
_RECALLS = slice(4, 7)
_FIELDS = tuple(each.attname for each in Memory._meta.concrete_fields if each.name != "scope")
_REVISION_FIELDS = tuple(
    each.attname for each in MemoryRevision._meta.concrete_fields if not each.primary_key
)
Outlines = dict[int, tuple[Any, ...]]
"""Rows of `_OUTLINE` by id: what tells cheaply whether a memory has changed."""


@dataclass(slots=True)
class _Changes:
    """What a chunk of the target still needs, ids and memories by user."""

    gone: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    new: dict[str, list[tuple[Memory, Analysis]]] = field(default_factory=lambda: defaultdict(list))
    vectors: list[MemoryVector] = field(default_factory=list)
    revisions: list[MemoryRevision] = field(default_factory=list)
    recalled: list[Memory] = field(default_factory=list)

    def __len__(self) -> int:
        gone = {pk for ids in self.gone.values() for pk in ids}
        new = {memory.pk for analyzed in self.new.values() for memory, _ in analyzed}
        return len(gone | new) + len(self.recalled)


def sync(copy: Copy, *, thorough: bool) -> int:
    """Make the frozen target equal the source; return how many memories differed.

    One transaction in the target for each chunk; killed half-way, the next call goes on.
    What is written to the source meanwhile may be missed until the next call.
    `thorough` compares every field, otherwise versions and recalls are compared.
    Raises MoveRefused where an id of the source is somebody else's in the target.
    """
    differing = 0
    started = copy.run.job.created_at
    for users in _user_chunks(copy.source):
        missing = users - {scope.user_id for scope in scopes_of(copy.target, users)}
        if missing:
            _make_scopes(copy.target, copy.run, missing)
    for here, there in _ranges(copy):
        ids = here.keys() | there.keys()
        doubtful = sorted(ids if thorough else _differing(here, there))
        for chunk in split(doubtful, CHUNK):
            changes = _compare(copy, _part(here, chunk), _part(there, chunk), thorough=thorough)
            if changes:
                _apply(copy.target, copy.run, changes)
            differing += len(changes)
            copy.run.advance(len(here.keys() & set(chunk)))
        copy.run.advance(len(here.keys() - set(doubtful)))
    copying_requests.sync(copy)
    copying_counts.sync(copy, since=None if thorough else counting.day_of(started) - _LATE)
    for users in _user_chunks(copy.target):
        kept = {scope.user_id for scope in scopes_of(copy.source, users)}
        for scope in scopes_of(copy.target, users - kept):
            erasure.erase_scope(scope)
    return differing


def states(agent: Agent, memory_ids: Collection[int]) -> dict[int, tuple[Any, ...]]:
    """Return every field of memories by id, the user_id in place of the scope.

    Last comes the list of revisions, oldest first.
    """
    revisions: dict[int, list[Any]] = defaultdict(list)
    rows = MemoryRevision.objects.using(store_alias(agent)).filter(memory_id__in=memory_ids)
    for row in rows.order_by("version").values_list(*_REVISION_FIELDS):
        revisions[row[0]].append(row)
    memories = Memory.objects.for_agent(agent).filter(pk__in=memory_ids)
    return {
        row[0]: (*row, revisions[row[0]])
        for row in memories.values_list("pk", "scope__user_id", *_FIELDS)
    }


def outlines(agent: Agent, after: int) -> list[tuple[Any, ...]]:
    """Return the `_OUTLINE` of the next range of memories, those whose id is above `after`."""
    memories = Memory.objects.for_agent(agent).filter(pk__gt=after).order_by("pk")
    return list(memories.values_list(*_OUTLINE)[:_RANGE])


def split(memory_ids: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Yield ids in chunks of at most `size`."""
    for start in range(0, len(memory_ids), size):
        yield memory_ids[start : start + size]


def _user_chunks(agent: Agent) -> Iterator[set[str]]:
    last = 0
    scopes = Scope.objects.for_agent(agent).order_by("pk").values_list("pk", "user_id")
    while chunk := list(scopes.filter(pk__gt=last)[:CHUNK]):
        yield {user_id for _, user_id in chunk}
        last = chunk[-1][0]


def _ranges(copy: Copy) -> Iterator[tuple[Outlines, Outlines]]:
    """Yield what either store holds, one range of ids after another, over all there are."""
    last = -1
    while last < MAX_ID:
        here, there = outlines(copy.source, last), outlines(copy.target, last)
        # up to where both are known
        last = min((rows[-1][0] for rows in (here, there) if len(rows) == _RANGE), default=MAX_ID)
        yield (
            {row[0]: row for row in here if row[0] <= last},
            {row[0]: row for row in there if row[0] <= last},
        )


def _differing(here: Outlines, there: Outlines) -> set[int]:
    return {pk for pk in here.keys() | there.keys() if here.get(pk) != there.get(pk)}


def _part(rows: Outlines, memory_ids: Sequence[int]) -> Outlines:
    return {pk: rows[pk] for pk in memory_ids if pk in rows}


def _compare(copy: Copy, here: Outlines, there: Outlines, *, thorough: bool) -> _Changes:
    """Return what the target needs, with all that is slow done before its transaction."""
    both = here.keys() & there.keys()
    changed = {pk for pk in both if here[pk][_VERSION] != there[pk][_VERSION]}
    recalled: set[int] = set()
    if thorough:
        ours, theirs = states(copy.source, both), states(copy.target, both)
        # by repr: 1 == True == 1.0 for Python, not in JSON
        changed = {pk for pk in both if repr(ours.get(pk)) != repr(theirs.get(pk))}
    else:
        recalled = {pk for pk in both - changed if here[pk][_RECALLS] != there[pk][_RECALLS]}
    changes = _load(copy.source, (here.keys() - there.keys()) | changed)
    for pk in sorted((there.keys() - here.keys()) | changed):
        changes.gone[there[pk][1]].append(pk)
    for pk in sorted(recalled):
        recalls = dict(zip(_RECALL_FIELDS, here[pk][_RECALLS], strict=True))
        changes.recalled.append(Memory(pk=pk, **recalls))
    return changes


def _load(source: Agent, memory_ids: Collection[int]) -> _Changes:
    changes = _Changes()
    memories = Memory.objects.for_agent(source).filter(pk__in=memory_ids)
    memories = memories.select_related("scope", "embedded")
    for memory in memories.order_by("pk").prefetch_related("revisions"):
        if vector := getattr(memory, "embedded", None):
            changes.vectors.append(vector)
        changes.new[memory.scope.user_id].append((memory, analyze(memory)))
        for revision in memory.revisions.all():
            revision.pk = None
            changes.revisions.append(revision)
    return changes


@writing.retried
def _apply(target: Agent, run: Run, changes: _Changes) -> None:
    alias = store_alias(target)
    with held(run, target) as store:
        require_frozen(store)
        scopes = lock_scopes(target, changes.gone.keys() | changes.new.keys())
        for user_id, ids in changes.gone.items():
            _remove(scopes[user_id], ids)
        _require_free(target, [memory.pk for each in changes.new.values() for memory, _ in each])
        for user_id, analyzed in changes.new.items():
            _give_up_external_ids(scopes[user_id], [memory for memory, _ in analyzed])
            writing.insert(scopes[user_id], analyzed, changes.vectors)
        for revisions in writing.batches(changes.revisions, lambda row: len(str(row.state))):
            MemoryRevision.objects.using(alias).bulk_create(revisions)
        Memory.objects.using(alias).bulk_update(changes.recalled, _RECALL_FIELDS, batch_size=100)


@writing.retried
def _make_scopes(target: Agent, run: Run, users: Collection[str]) -> None:
    with held(run, target) as store:
        require_frozen(store)
        lock_scopes(target, users)


def _remove(scope: Scope, memory_ids: Collection[int]) -> None:
    writing.unindex(scope, list(memory_ids))
    alias = scope._state.db
    MemoryRevision.objects.using(alias).filter(memory_id__in=memory_ids).delete()
    Memory.objects.of_scope(scope).filter(pk__in=memory_ids).delete()


def _require_free(target: Agent, memory_ids: Collection[int]) -> None:
    taken = Memory.objects.using(store_alias(target)).filter(pk__in=memory_ids)
    if ids := list(taken.order_by("pk").values_list("pk", flat=True)[:_SHOWN_IDS]):
        raise MoveRefused(
            f"The target holds other memories under these ids: {', '.join(map(str, ids))}. "
            "Nothing was switched. Export the memories, and import them under an agent that "
            "uses that store: taken ids get new ones."
        )


def _give_up_external_ids(scope: Scope, memories: Collection[Memory]) -> None:
    """Remove those from whom `memories` took over an external id: the source erased them."""
    names = [memory.external_id for memory in memories if memory.external_id is not None]
    if names:
        holders = Memory.objects.of_scope(scope).filter(external_id__in=names)
        _remove(scope, list(holders.values_list("pk", flat=True)))
