"""What an account owns: the memories of its identities, whichever agents and stores have them.

Several stores are read and merged; a list costs two queries a store, whatever is in them.
"""

from __future__ import annotations

import heapq
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import DatabaseError
from django.db.models import Count, Q

from agents.models import Agent, Identity
from memory.databases import Place, store_alias
from memory.errors import BackendUnavailable, UnknownMemory
from memory.filters import MemoryFilter
from memory.models import Memory, Scope, Status
from memory.ordering import ORDERS, Order, first_of
from memory.querysets import MemoryQuerySet
from memory.retrieval.lexical import SearchRequest, search_scopes, synonyms_of

logger = logging.getLogger(__name__)

COUNTED = 1_000
"""Matches of a filter that no index covers are counted this far in each store."""
_IN_ONE_STATEMENT = 400
"""Scopes that one statement asks of: SQLite takes expressions 1,000 deep."""
KEPT = tuple(status for status in Status.values if status != Status.TRASHED)


@dataclass(frozen=True, slots=True)
class Shelf:
    """What one agent remembers of one of the account's user_ids."""

    agent: Agent
    user_id: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory on its shelf; of a search also how well it fits."""

    memory: Memory
    shelf: Shelf
    score: float = 0.0
    matched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeCounts:
    """Memories by type; `is_least` where there may be more of each."""

    by_type: Counter[str]
    is_least: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Entries in order; `next` is the cursor of the following page, or ''."""

    entries: list[Entry]
    next: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search found, best first, and all that matched by type."""

    entries: list[Entry]
    counts: TypeCounts


def shelves_of(account: Any) -> list[Shelf]:
    """Return the account's shelves; one query a store, and two.

    Raises DatabaseError where a store does not answer: nothing is silently left out.
    """
    return [shelf for stocked in _stocked(account) for shelf in stocked.shelves()]


def reachable_shelves(account: Any) -> tuple[list[Shelf], list[Agent]]:
    """Return the account's shelves in stores that answer, and the agents of those that do not."""
    shelves: list[Shelf] = []
    unreachable: list[Agent] = []
    for stocked in _stocked(account):
        try:
            shelves += stocked.shelves()
        except (DatabaseError, BackendUnavailable) as error:
            logger.warning("a store does not answer: %s", error)
            unreachable += stocked.agents
    return shelves, unreachable


@dataclass(frozen=True, slots=True)
class _Stocked:
    """The agents of one store, and the account's identities."""

    agents: list[Agent]
    identities: list[Identity]

    def shelves(self) -> list[Shelf]:
        by_id = {agent.pk: agent for agent in self.agents}
        anywhere = {each.user_id for each in self.identities if each.agent_id is None}
        owned = Q(agent_id__in=by_id, user_id__in=anywhere)
        for identity in self.identities:
            if identity.agent_id in by_id:
                owned |= Q(agent_id=identity.agent_id, user_id=identity.user_id)
        alias = store_alias(self.agents[0])
        scopes = Scope.objects.using(alias).filter(owned, kind="user").order_by("pk")
        return [Shelf(by_id[scope.agent_id], scope.user_id, scope) for scope in scopes]


def _stocked(account: Any) -> list[_Stocked]:
    identities = list(Identity.objects.filter(account=account))
    if not identities:
        return []
    by_store: dict[Place, list[Agent]] = defaultdict(list)
    for agent in Agent.objects.filter(memory_config__isnull=False).select_related("memory_config"):
        by_store[Place.of(agent.memory_config)].append(agent)
    return [_Stocked(agents, identities) for agents in by_store.values()]


def browse(
    shelves: Sequence[Shelf],
    wanted: MemoryFilter,
    *,
    order: Order = ORDERS["newest"],
    cursor: str = "",
    limit: int = 50,
) -> Listing:
    """Return a page of the shelves' memories. Raises InvalidMemory for a cursor not of `order`."""
    found = []
    for group in _by_store(shelves):
        parts = [
            order.after(wanted.listed(Memory.objects.of_scope(shelf.scope)), cursor)
            for shelf in group
        ]
        scopes = {shelf.scope.pk: shelf for shelf in group}
        rows = first_of(parts, order, limit + 1)
        found.append([Entry(memory, scopes[memory.scope_id]) for memory in rows])
    merged = heapq.merge(
        *found, key=lambda entry: order.key(entry.memory), reverse=order.is_descending
    )
    entries = list(islice(merged, limit + 1))
    shown = entries[:limit]
    following = order.cursor_at(shown[-1].memory) if len(entries) > limit else ""
    return Listing(shown, following)


def seek(
    shelves: Sequence[Shelf],
    query: str,
    wanted: MemoryFilter,
    *,
    limit: int = 50,
    now: datetime,
) -> Findings:
    """Return the shelves' memories that fit what a person types, best first; not a recall.

    Without a status asked for it finds all but the trash, as a list shows.
    """
    wanted = wanted if wanted.statuses else replace(wanted, statuses=KEPT)
    request = SearchRequest(query, limit=limit, filter=wanted, as_you_type=True)
    entries: list[Entry] = []
    counts: Counter[str] = Counter()
    is_least = False
    for group in _by_store(shelves):
        scopes = {shelf.scope.pk: shelf for shelf in group}
        synonyms = synonyms_of({shelf.agent for shelf in group})
        found = search_scopes([shelf.scope for shelf in group], request, now=now, synonyms=synonyms)
        entries += [
            Entry(hit.memory, scopes[hit.memory.scope_id], hit.score, hit.matched)
            for hit in found.hits
        ]
        counts += found.by_type
        is_least = is_least or found.truncated
    best = heapq.nlargest(limit, entries, key=lambda entry: (entry.score, entry.memory.pk))
    return Findings(best, TypeCounts(counts, is_least))


def count_by_type(shelves: Sequence[Shelf], wanted: MemoryFilter) -> TypeCounts:
    """Return how many memories of each type meet the filter, its own types apart.

    An index counts them where only types and statuses are asked for. Otherwise a store is
    counted up to `COUNTED` rows.
    """
    wanted = replace(wanted, types=())
    is_indexed = wanted == MemoryFilter(statuses=wanted.statuses)
    counts: Counter[str] = Counter()
    is_least = False
    for group in _by_store(shelves):
        types = wanted.listed(_on(group)).order_by().values_list("type", flat=True)
        if is_indexed:
            counts.update(dict(types.annotate(n=Count("pk")).values_list("type", "n")))
            continue
        rows = list(types[: COUNTED + 1])
        is_least = is_least or len(rows) > COUNTED
        counts.update(rows[:COUNTED])
    return TypeCounts(counts, is_least)


def find(shelves: Sequence[Shelf], memory_id: int) -> Entry:
    """Return one memory of the shelves, from the trash too. Raises UnknownMemory."""
    for group in _by_store(shelves):
        if memory := _on(group).filter(pk=memory_id).first():
            scopes = {shelf.scope.pk: shelf for shelf in group}
            return Entry(memory, scopes[memory.scope_id])
    raise UnknownMemory(f"There is no memory {memory_id} of yours.")


def _by_store(shelves: Iterable[Shelf]) -> list[list[Shelf]]:
    groups: dict[str, list[Shelf]] = defaultdict(list)
    for shelf in shelves:
        groups[str(shelf.scope._state.db)].append(shelf)
    return [
        group[start : start + _IN_ONE_STATEMENT]
        for group in groups.values()
        for start in range(0, len(group), _IN_ONE_STATEMENT)
    ]


def _on(group: list[Shelf]) -> MemoryQuerySet:
    """Return the memories of shelves that are in one store."""
    alias = group[0].scope._state.db
    return Memory.objects.using(alias).filter(scope_id__in=[shelf.scope.pk for shelf in group])
