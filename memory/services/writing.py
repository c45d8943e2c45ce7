"""The one write path: row, scope counts, index row and revision in one transaction.

Every writer locks the scope's row first, so writes of one scope follow one another and
its statistics are exact. New texts are analysed, which is slow, before the lock.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.db import OperationalError, connections, transaction
from django.db.models import F

from agents.models import Agent
from memory.databases import store_alias
from memory.drafts import DRAFT_FIELDS, MemoryDraft, parse_detail, parse_reason, parse_user_id
from memory.errors import StoreNotOpen, UnknownMemory, VersionConflict
from memory.indexing import Analysis, analyze, index_row, take_over, vector_row
from memory.models import (
    ActorKind,
    Memory,
    MemoryRevision,
    MemoryTerms,
    MemoryVector,
    Scope,
    Status,
    Store,
    StoreState,
)
from memory.services import backlog
from memory.services.figures import counting

logger = logging.getLogger(__name__)

Row = TypeVar("Row")
Params = ParamSpec("Params")
Result = TypeVar("Result")
_DEADLOCK = 1213
_ATTEMPTS = 5
_MAX_ROWS = 200
_MAX_CHARACTERS = 500_000
_INDEXED_FIELDS = frozenset({"name", "description", "content", "detail", "tags"})
_CACHED_FIELDS = frozenset({"status", "expires_at", "due_at", "importance", "pinned", "type"})
"""What searches keep in memory of a memory besides what is indexed."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes a memory: a person, an agent, or Hippo itself."""

    kind: ActorKind
    name: str


SYSTEM = Actor(ActorKind.SYSTEM, "hippo")


def retried(
    write: Callable[Concatenate[Agent, Params], Result],
) -> Callable[Concatenate[Agent, Params], Result]:
    """Make a write, whose first argument is the agent, repeat itself after a deadlock.

    MySQL ends one by giving up a transaction whole (error 1213), so nothing of the write
    is left. Inside a transaction of the caller's the error is the caller's.
    """

    @wraps(write)
    def repeat(agent: Agent, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return past_deadlocks(store_alias(agent), lambda: write(agent, *args, **kwargs))

    return repeat


def past_deadlocks(alias: str, write: Callable[[], Result]) -> Result:
    """Do a write on a store, again after each deadlock: see `retried`."""
    connection = connections[alias]
    for attempt in range(1, _ATTEMPTS):
        try:
            return write()
        except OperationalError as error:
            if error.args[:1] != (_DEADLOCK,) or connection.in_atomic_block:
                raise
            logger.info("store %s: deadlock, the write again", alias)
            time.sleep(random.uniform(0.01, 0.05) * attempt)  # noqa: S311  # no secret
    return write()


@contextmanager
def locked_scope(agent: Agent, user_id: str, *, create: bool = False) -> Iterator[Scope]:
    """Open a transaction in the agent's store with the user's scope locked.

    What was noted of it is counted at the end. Raises UnknownMemory where the scope does not
    exist and `create` is not given, StoreNotOpen while the agent's memories are being moved or
    erased.
    """
    alias = store_alias(agent)
    parse_user_id(user_id)
    if create:
        _ensure_scope(agent, user_id, alias)
    with transaction.atomic(using=alias):
        scopes = Scope.objects.of_user(agent, user_id).select_for_update()
        scope = scopes.first()
        if scope is None and create:  # erased since
            _ensure_scope(agent, user_id, alias)
            scope = scopes.first()
        if scope is None:
            raise UnknownMemory(f"Agent {agent.name} has no memories of user {user_id}.")
        _require_open(scope.state, agent)
        yield scope
        counting.write_noted(scope)


def _ensure_scope(agent: Agent, user_id: str, alias: str) -> None:
    if Scope.objects.of_user(agent, user_id).exists():
        return
    # committed by itself: an insert that meets another's keeps a shared lock on its row,
    # and two that go on to lock the row for update would wait for each other
    Store.objects.using(alias).get_or_create(agent_id=agent.pk)
    with transaction.atomic(using=alias):
        # the store's row is locked, so that a freeze either sees this scope or refuses it
        store = Store.objects.using(alias).select_for_update().get(agent_id=agent.pk)
        _require_open(store.state, agent)
        if not Agent.objects.filter(pk=agent.pk).exists():
            raise StoreNotOpen(f"Agent {agent.name} has been deleted; nothing was written.")
        Scope.objects.using(alias).get_or_create(kind="user", agent_id=agent.pk, user_id=user_id)


def _require_open(state: str, agent: Agent) -> None:
    if state == StoreState.ERASED:
        raise StoreNotOpen(f"Agent {agent.name} is being deleted; nothing was written.")
    if state != StoreState.OPEN:
        raise StoreNotOpen(
            f"The memories of agent {agent.name} are {state} while they change their store; "
            "nothing was written. Try again shortly."
        )


def new_memory(memory_id: int, draft: MemoryDraft, *, now: datetime) -> Memory:
    """Return an unsaved memory with the draft's fields."""
    return Memory(id=memory_id, created_at=now, updated_at=now, **draft_values(draft))


def draft_values(draft: MemoryDraft) -> dict[str, Any]:
    """Return the draft's fields as columns."""
    return {**asdict(draft), "tags": list(draft.tags)}


def note_saved(scope: Scope, memories: Iterable[Memory], *, now: datetime) -> None:
    """Note that memories of a locked scope are new, by type; those in the trash are none."""
    kept = (memory.type for memory in memories if memory.status != Status.TRASHED)
    counting.note(scope, now, **Counter(f"saved_{kind}" for kind in kept))


def insert(
    scope: Scope,
    analyzed: Sequence[tuple[Memory, Analysis]],
    known: Iterable[MemoryVector] = (),
) -> None:
    """Insert memories with their index rows and count them; the scope is locked.

    A copy of what is elsewhere is not a save: `note_saved` says so of what is. Its vector need
    not be made again: `known` are rows of the same texts. Raises IntegrityError where an id is
    taken.
    """
    memories = [memory for memory, _ in analyzed]
    for memory in memories:
        memory.scope_id = scope.pk
    for batch in batches(memories, lambda memory: len(memory.content)):
        Memory.objects.using(scope._state.db).bulk_create(batch)
    for memory in memories:
        memory.scope = scope  # who looks for likes need not look it up
    _add_rows(scope, [pair for pair in analyzed if pair[0].status != Status.TRASHED], known)


def index(scope: Scope, memories: Sequence[Memory], known: Iterable[MemoryVector] = ()) -> None:
    """Add index rows for memories that have none, and count them; `known` as for `insert`."""
    _add_rows(scope, [(memory, analyze(memory)) for memory in memories], known)


def _add_rows(
    scope: Scope, analyzed: Sequence[tuple[Memory, Analysis]], known: Iterable[MemoryVector]
) -> None:
    rows = [index_row(memory, scope, analysis) for memory, analysis in analyzed]
    for batch in batches(rows, lambda row: len(row.terms) + len(row.folded)):
        MemoryTerms.objects.using(scope._state.db).bulk_create(batch)
    count_terms(scope, len(rows), sum(row.content_terms for row in rows))
    vectors = [vector_row(memory, scope, analysis) for memory, analysis in analyzed]
    present = {row.pk: row for row in known}
    for vector in vectors:
        vector.stamp = scope.vector_stamp
        take_over(vector, present.get(vector.pk))
    MemoryVector.objects.using(scope._state.db).bulk_create(vectors, batch_size=_MAX_ROWS)
    if vectors:
        transaction.on_commit(backlog.call, using=scope._state.db)


def batches(rows: Iterable[Row], size: Callable[[Row], int]) -> Iterator[list[Row]]:
    """Yield rows in lists that one statement can carry, whatever the server's packet limit.

    `size` returns about how many characters a row adds.
    """
    batch: list[Row] = []
    total = 0
    for row in rows:
        batch.append(row)
        total += size(row)
        if len(batch) == _MAX_ROWS or total >= _MAX_CHARACTERS:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def unindex(scope: Scope, memory_ids: Sequence[int]) -> int:
    """Take index rows away, and the memories out of the counts; return how many were there."""
    rows = MemoryTerms.objects.of_scope(scope).filter(memory_id__in=memory_ids)
    lengths = list(rows.values_list("content_terms", flat=True))
    rows.delete()
    MemoryVector.objects.of_scope(scope).filter(memory_id__in=memory_ids).delete()
    count_terms(scope, -len(lengths), -sum(lengths))
    return len(lengths)


def count_terms(scope: Scope, memories: int, content_terms: int) -> None:
    """Add to the statistics of a locked scope, and to its stamp, for vectors come or go too."""
    if memories or content_terms:
        scope.vector_stamp += 1
        Scope.objects.using(scope._state.db).filter(pk=scope.pk).update(
            memory_count=F("memory_count") + memories,
            content_terms=F("content_terms") + content_terms,
            vector_stamp=scope.vector_stamp,
        )


def _tell_caches(scope: Scope, memory_ids: Sequence[int]) -> None:
    """Stamp memories whose index rows stay as they are, so that caches read them again."""
    if memory_ids:
        scope.vector_stamp += 1
        rows = MemoryVector.objects.of_scope(scope).filter(memory_id__in=memory_ids)
        rows.update(stamp=scope.vector_stamp)
        Scope.objects.using(scope._state.db).filter(pk=scope.pk).update(
            vector_stamp=scope.vector_stamp
        )


def find(scope: Scope, memory_id: int, *, agent: Agent) -> Memory:
    """Return a memory of a locked scope, trashed or not. Raises UnknownMemory."""
    memory = Memory.objects.of_scope(scope).filter(pk=memory_id).first()
    if memory is None:
        raise unknown(agent, scope.user_id, memory_id)
    return memory


def unknown(agent: Agent, user_id: str, memory_id: int) -> UnknownMemory:
    """Return the error for an id that is not there, or is somebody else's."""
    return UnknownMemory(
        f"No memory {memory_id} for user {user_id} of agent {agent.name}; "
        "search (memory_recall) or list to find its id."
    )


def change(
    scope: Scope,
    memories: Iterable[Memory],
    changes: Callable[[Memory], Mapping[str, Any]],
    *,
    actor: Actor,
    reason: str,
    now: datetime,
) -> int:
    """Change memories of a locked scope, keep their old states, return how many changed.

    `changes` returns the new values of one memory. A memory whose values all stay the
    same is left alone: no version, no revision. The given objects are updated.
    """
    reason = parse_reason(reason)
    changed: list[Memory] = []
    renewed: list[Memory] = []
    noted: list[int] = []
    revisions: list[MemoryRevision] = []
    names = {"version", "updated_at"}
    done: Counter[str] = Counter()
    for memory in memories:
        values = differences(memory, changes(memory))
        if not values:
            continue
        revisions.append(_revision(memory, actor=actor, reason=reason, now=now))
        was_trashed = memory.status == Status.TRASHED
        for name, value in values.items():
            setattr(memory, name, value)
        memory.version += 1
        memory.updated_at = now
        names |= values.keys()
        changed.append(memory)
        is_trashed = memory.status == Status.TRASHED
        done[_deed(was_trashed=was_trashed, is_trashed=is_trashed)] += 1
        if was_trashed != is_trashed or (not is_trashed and values.keys() & _INDEXED_FIELDS):
            renewed.append(memory)
        elif values.keys() & _CACHED_FIELDS:
            noted.append(memory.pk)
    if changed:
        alias = scope._state.db
        for batch in batches(revisions, lambda each: len(each.state["content"])):
            MemoryRevision.objects.using(alias).bulk_create(batch)
        for memories_batch in batches(changed, lambda memory: len(memory.content)):
            Memory.objects.using(alias).bulk_update(memories_batch, sorted(names), batch_size=50)
        unindex(scope, [memory.pk for memory in renewed])
        index(scope, [memory for memory in renewed if memory.status != Status.TRASHED])
        _tell_caches(scope, noted)
        counting.note(scope, now, **done)
    return len(changed)


def _deed(*, was_trashed: bool, is_trashed: bool) -> str:
    """Return the figure that counts a change."""
    if was_trashed == is_trashed:
        return "changed"
    return "deleted" if is_trashed else "restored"


def require_version(memory: Memory, expected: int | None) -> None:
    """Raise VersionConflict where `expected` is given and is not the memory's version."""
    if expected is not None and memory.version != expected:
        raise VersionConflict(
            f"Memory {memory.pk} is at version {memory.version}, not {expected}: somebody "
            "changed it. Read it again and repeat the change."
        )


def differences(memory: Memory, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of `values` is not so yet, `detail` checked for its kind."""
    values = {name: list(v) if name == "tags" else v for name, v in values.items()}
    if "detail" in values or "kind" in values:
        kind = values.get("kind", memory.kind)
        # a memory that becomes of another kind leaves the old kind's detail behind
        kept = memory.detail if kind == memory.kind else {}
        values["detail"] = parse_detail(kind, values.get("detail", kept))
    return {
        name: value
        for name, value in values.items()
        if getattr(memory, name) != value
        # 1 == True == 1.0 for Python, not in JSON
        or (name in {"metadata", "detail"} and repr(getattr(memory, name)) != repr(value))
    }


def _revision(memory: Memory, *, actor: Actor, reason: str, now: datetime) -> MemoryRevision:
    state = {name: getattr(memory, name) for name in DRAFT_FIELDS}
    for name in ("due_at", "expires_at"):
        state[name] = state[name].isoformat() if state[name] else None
    return MemoryRevision(
        memory_id=memory.pk,
        version=memory.version,
        state=state,
        actor_kind=actor.kind,
        actor=actor.name,
        reason=reason,
        created_at=now,
    )
