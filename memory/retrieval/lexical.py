"""Search by words: the engine finds candidates, `bm25f` ranks them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db import models

from agents.models import Agent, is_user_id
from memory import analyzer, fts, prepared
from memory.databases import store_alias
from memory.filters import MemoryFilter
from memory.models import Memory, Scope, Status
from memory.querysets import MemoryQuerySet, ScopeQuerySet
from memory.retrieval.bm25f import Ranked, WeightedQuery, rank

MAX_CANDIDATES = 2_000
MAX_QUERY_TERMS = 96
_COLUMNS = ("id", "created_at", "indexed__terms", "indexed__content_terms")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is asked for. `as_you_type` also matches words that begin with the last one.

    A query is what somebody looks for; `is_message` is what somebody says: of stop words
    alone, or of a letter or two, it finds nothing.
    """

    query: str
    limit: int = 10
    filter: MemoryFilter = field(default_factory=MemoryFilter)
    min_score: float = 0.0
    as_you_type: bool = False
    is_message: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory, its score in [0, 1], and the folded query terms it matched."""

    memory: Memory
    score: float
    matched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first; `truncated` where more memories matched than were ranked."""

    hits: tuple[Hit, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """The best candidates; `words` maps the terms that may have matched to what people read."""

    best: Sequence[Ranked] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class _Search:
    """One request inside the scope it was found to concern."""

    scope: Scope
    request: SearchRequest
    now: datetime

    @property
    def alias(self) -> str:
        return str(self.scope._state.db)

    def recalled(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        return self.request.filter.recalled(memories, self.now)


def search(agent: Agent, user_id: str, request: SearchRequest, *, now: datetime) -> SearchResult:
    """Return the memories of (agent, user_id) that match `request.query`.

    Any of the query's words may match. Ties go to the newest. Three queries: scope,
    candidates, memories; past `MAX_CANDIDATES` candidates two more and one for every
    term that is admitted. A query without a letter, digit or symbol finds nothing.
    """
    scope = _find_scope(agent, user_id)
    if scope is None or request.limit < 1:
        return SearchResult()
    wanted = _Search(scope, request, now)
    found = _literal(wanted, analyzer.literals(request.query)) or _by_terms(wanted)
    if not found and not request.is_message:
        found = _literal(wanted, analyzer.short_words(request.query), share=0.5)
    found = found or _Found()
    return SearchResult(_fetch(wanted, found.best, found.words), found.truncated)


def _find_scope(agent: Agent, user_id: str) -> Scope | None:
    alias = store_alias(agent)
    if not is_user_id(user_id):
        return None

    def build(agent_id: int, user_id: str) -> ScopeQuerySet:
        return Scope.objects.using(alias).filter(kind="user", agent_id=agent_id, user_id=user_id)

    rows = prepared.run("scope", build, (agent.pk, user_id), alias)
    return next(iter(prepared.instances(Scope, rows, alias)), None)


def _literal(wanted: _Search, literals: tuple[str, ...], share: float = 1.0) -> _Found | None:
    """Rank memories that contain every literal: in the name 1, description 0.9, content 0.8.

    `share` of that where a literal may be part of a word.
    """
    if not literals:
        return None
    rows = list(
        wanted.recalled(Memory.objects.of_scope(wanted.scope))
        .containing(literals)
        .order_by("-id")
        .values_list("id", "created_at", "indexed__folded")[: MAX_CANDIDATES + 1]
    )
    if not rows:
        return None
    places = []
    for memory_id, created_at, folded in rows[:MAX_CANDIDATES]:
        fields = folded.split("\n")
        first = min(
            next((i for i, text in enumerate(fields) if literal in text), 2) for literal in literals
        )
        places.append((share * (1.0 - first / 10), created_at, memory_id))
    best = [
        Ranked(memory_id, score, literals)
        for score, _, memory_id in heapq.nlargest(wanted.request.limit, places)
        if score >= wanted.request.min_score
    ]
    words = {literal: literal for literal in literals}
    return _Found(best, words, truncated=len(rows) > MAX_CANDIDATES)


def _by_terms(wanted: _Search) -> _Found | None:
    """Rank memories in which any telling term of the query occurs."""
    query, words = _encoded(wanted)
    condition = fts.TermQuery(tuple(_finding(query)), query.prefix)
    rows = _candidate_rows(wanted, condition) if condition else []
    if not rows:
        return None
    best_of = partial(
        rank,
        wanted.scope,
        query,
        limit=wanted.request.limit,
        min_score=wanted.request.min_score,
    )
    if len(rows) <= MAX_CANDIDATES:
        return _Found(best_of(rows, Counter()), words)
    terms = (term for term in query.weights if term != query.prefix)
    counts = fts.document_counts(terms, wanted.alias)
    admitted = _admitted(wanted, query, counts, words)
    memories = Memory.objects.of_scope(wanted.scope).filter(id__in=admitted)
    best = best_of(memories.values_list(*_COLUMNS), Counter(counts))
    return _Found(best, words, truncated=True)


def _encoded(wanted: _Search) -> tuple[WeightedQuery, dict[str, str]]:
    """Return the query in the scope's terms, and the plain word behind each term."""
    request, key = wanted.request, analyzer.scope_key(wanted.scope.pk)
    terms = analyzer.query_terms(request.query, keep_stop_words=not request.is_message)
    weighted = list(terms.items())[:MAX_QUERY_TERMS]
    weights = {analyzer.encode_term(term, key): weight for term, weight in weighted}
    words = dict(zip(weights, (term for term, _ in weighted), strict=True))
    typed = analyzer.last_word(request.query) if request.as_you_type else ""
    prefix = analyzer.encode_term(typed, key) if typed else ""
    if prefix:
        weights[prefix] = 1.0
        words[prefix] = typed
    return WeightedQuery(weights, prefix), words


def _finding(query: WeightedQuery) -> list[str]:
    """Return the terms that candidates are found by, the prefix apart."""
    least = analyzer.MIN_FINDING_WEIGHT
    return [t for t, weight in query.weights.items() if weight >= least and t != query.prefix]


def _candidate_rows(wanted: _Search, condition: fts.TermQuery) -> Sequence[Any]:
    """Return at most one row more than `MAX_CANDIDATES`."""
    alias, has_prefix = wanted.alias, bool(condition.prefix)

    def build(scope_id: int, text: str, now: datetime) -> models.QuerySet[Any, Any]:
        found = Memory.objects.matching_text(alias, scope_id, text, has_prefix=has_prefix)
        recalled = wanted.request.filter.recalled(found, now)
        return recalled.values_list(*_COLUMNS)[: MAX_CANDIDATES + 1]

    values = (wanted.scope.pk, fts.match_text(condition, alias), wanted.now)
    if wanted.request.filter == MemoryFilter():
        shape = ("candidates", has_prefix, MAX_CANDIDATES)
        return prepared.run(shape, build, values, alias, convert=False)
    return list(build(*values))


def _admitted(
    wanted: _Search, query: WeightedQuery, counts: dict[str, int], words: dict[str, str]
) -> set[int]:
    """Return `MAX_CANDIDATES` ids: those of the rarest terms, of the last term the newest."""
    admitted: set[int] = set()
    by_rarity = sorted(_finding(query), key=lambda term: (counts[term], words[term]))
    conditions = [fts.TermQuery((term,)) for term in by_rarity if counts[term]]
    if query.prefix:
        conditions.append(fts.TermQuery((), query.prefix))
    for condition in conditions:
        matching = wanted.recalled(Memory.objects.matching(wanted.scope, condition))
        newest = matching.order_by("-id").values_list("id", flat=True)
        for memory_id in newest[:MAX_CANDIDATES]:
            admitted.add(memory_id)
            if len(admitted) == MAX_CANDIDATES:
                return admitted
    return admitted


def _fetch(wanted: _Search, best: Sequence[Ranked], words: Mapping[str, str]) -> tuple[Hit, ...]:
    if not best:
        return ()
    alias = wanted.alias

    def build(scope_id: int, *ids: int) -> MemoryQuerySet:
        return Memory.objects.using(alias).filter(scope_id=scope_id, pk__in=ids)

    # the query has one shape for every ten hits: the last id fills the list up
    ids = [each.id for each in best]
    ids += ids[-1:] * (-len(ids) % 10)
    rows = prepared.run(("memories", len(ids)), build, (wanted.scope.pk, *ids), alias)
    # one may have been erased or trashed since it was ranked
    statuses = wanted.request.filter.statuses or (Status.ACTIVE,)
    found = {
        memory.pk: memory
        for memory in prepared.instances(Memory, rows, alias)
        if memory.status in statuses
    }
    return tuple(
        Hit(found[each.id], each.score, tuple(w for t, w in words.items() if t in each.matched))
        for each in best
        if each.id in found
    )
