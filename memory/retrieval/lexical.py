"""Search by words: the engine finds candidates, `bm25f` ranks them."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

from agents.models import Agent, is_user_id
from memory import analyzer, prepared
from memory.databases import store_alias
from memory.models import Memory, Scope, Status
from memory.querysets import MemoryQuerySet, ScopeQuerySet
from memory.retrieval import candidates
from memory.retrieval.bm25f import Ranked, Weighed, WeightedQuery, rank, weigh
from memory.retrieval.candidates import Candidates, Wanted
from memory.retrieval.candidates import SearchRequest as SearchRequest
from memory.understanding.phrases import loosened
from memory.understanding.synonyms import Groups


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory, its score in [0, 1], and the folded query terms it matched."""

    memory: Memory
    score: float
    matched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first; `truncated` where more memories matched than were ranked.

    `has_more` where others follow those that were asked for. `by_type` counts all that were
    ranked by words, whatever their score and the limit. `mode` is how they were found, `degraded`
    what could not be done as asked. `abstained` where there is nothing but noise: then the
    `nearest` of it are here.
    """

    hits: tuple[Hit, ...] = ()
    truncated: bool = False
    by_type: Counter[str] = field(default_factory=Counter)
    mode: str = "lexical"
    degraded: tuple[str, ...] = ()
    abstained: bool = False
    nearest: tuple[Hit, ...] = ()
    has_more: bool = False

    @property
    def all_degraded(self) -> tuple[str, ...]:
        """Return what was degraded, `truncated` among it."""
        return (*self.degraded, "truncated") if self.truncated else self.degraded


@dataclass(frozen=True, slots=True)
class Found:
    """What may match; `words` maps the terms that may have matched to what people read.

    `candidates` found by `queries`; or the `best`, found letter by letter by `literals` with
    `share`.
    """

    best: Sequence[Ranked] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    truncated: bool = False
    by_type: Counter[str] = field(default_factory=Counter)
    queries: Mapping[int, WeightedQuery] = field(default_factory=dict)
    candidates: Candidates = field(default_factory=Candidates)
    literals: tuple[str, ...] = ()
    share: float = 1.0

    @property
    def is_askable(self) -> bool:
        """Return whether there is a word to ask by: signs and greetings mean nothing."""
        return bool(self.literals) or any(query.weights for query in self.queries.values())


def synonyms_of(agents: Iterable[Agent]) -> dict[int, Groups]:
    """Return the groups of synonyms of each agent that has any, by its id."""
    configs = {agent.pk: agent.memory_config for agent in agents}
    return {pk: config.synonyms for pk, config in configs.items() if config.synonyms}


def search_scopes(
    scopes: Sequence[Scope],
    request: SearchRequest,
    *,
    now: datetime,
    synonyms: Mapping[int, Groups] | None = None,
) -> SearchResult:
    """Return the memories of several scopes in one store that hold any of the query's words.

    Ranked among each other, each scored by its own scope's statistics, with its own agent's
    `synonyms`. The queries are those of one scope: candidates (two on MySQL) and memories,
    past `candidates.MAX_CANDIDATES` candidates two more and one for every term that is admitted.
    A query without a letter, digit or symbol finds nothing.
    """
    if not scopes or request.limit < 1:
        return SearchResult()
    wanted = Wanted(scopes, request, now, synonyms or {})
    found = find(wanted)
    best = ranked(wanted, found, request.reach)
    kept = [each for each in best if each.score >= request.min_score]
    end = request.offset + request.limit
    hits = fetch(wanted, kept[request.offset : end], found.words)
    return SearchResult(hits, found.truncated, found.by_type, has_more=len(kept) > end)


def find(wanted: Wanted) -> Found:
    """Return the candidates, however they are found: by signs, by words, by short words."""
    request = wanted.request
    if found := _literal(wanted, analyzer.literals(request.query)):
        return found
    found = _by_terms(wanted)
    if found.candidates.rows:
        return found
    # parts of words, which no term finds
    parts = _literal(wanted, request.phrases, share=0.5)
    if request.phrases and not parts and (query := loosened(request.query)):
        return find(replace(wanted, request=replace(request, query=query)))
    if not parts and not request.is_message:
        parts = _literal(wanted, analyzer.short_words(request.query), share=0.5)
    return parts or found


def ranked(wanted: Wanted, found: Found, limit: int) -> list[Ranked]:
    """Return the `limit` best of what was found, best first, whatever their score."""
    if found.literals:
        return list(found.best[:limit])
    return _ranked(wanted, found.queries, found.candidates, limit)


def weigh_words(scope: Scope, found: Found) -> Weighed:
    """Weigh the candidates of a scope."""
    rows = (row[:4] for row in found.candidates.rows)
    return weigh(scope, found.queries[scope.pk], rows, found.candidates.counts)


def literal_field(folded: str, literal: str) -> int:
    """Return the first field of a memory's folded text that holds a literal: 0 is the name."""
    fields = folded.split("\n")
    return next((i for i, text in enumerate(fields) if literal in text), 2)


def literal_score(fields: Iterable[int], share: float) -> float:
    """Return the score of a memory whose literals stand in these fields: the first one counts."""
    return share * (1.0 - min(fields) / 10)


def find_scope(agent: Agent, user_id: str) -> Scope | None:
    """Return the scope of (agent, user_id), None before its first save."""
    alias = store_alias(agent)
    if not is_user_id(user_id):
        return None

    def build(agent_id: int, user_id: str) -> ScopeQuerySet:
        return Scope.objects.using(alias).filter(kind="user", agent_id=agent_id, user_id=user_id)

    rows = prepared.run("scope", build, (agent.pk, user_id), alias)
    return next(iter(prepared.instances(Scope, rows, alias)), None)


def _literal(wanted: Wanted, literals: tuple[str, ...], share: float = 1.0) -> Found | None:
    """Rank memories that contain every literal: in the name 1, description 0.9, content 0.8.

    `share` of that where a literal may be part of a word.
    """
    if not literals:
        return None
    rows = list(
        wanted.recalled(Memory.objects.of_scopes(wanted.scopes))
        .containing(literals)
        .order_by("-id")
        .values_list("id", "created_at", "indexed__folded", "type")[: candidates.MAX_CANDIDATES + 1]
    )
    if not rows:
        return None
    places = []
    for memory_id, created_at, folded, _ in rows[: candidates.MAX_CANDIDATES]:
        fields = (literal_field(folded, literal) for literal in literals)
        places.append((literal_score(fields, share), created_at, memory_id))
    best = [
        Ranked(memory_id, score, literals) for score, _, memory_id in sorted(places, reverse=True)
    ]
    words = {literal: literal for literal in literals}
    return Found(
        best,
        words,
        len(rows) > candidates.MAX_CANDIDATES,
        Counter(row[-1] for row in rows),
        literals=literals,
        share=share,
    )


def _by_terms(wanted: Wanted) -> Found:
    """Find memories in which any telling term of the query occurs."""
    queries, words = candidates.encoded(wanted)
    found = candidates.find(wanted, queries, words)
    by_type = Counter(row[-1] for row in found.rows)
    return Found((), words, found.truncated, by_type, queries, found)


def _ranked(
    wanted: Wanted, queries: Mapping[int, WeightedQuery], found: Candidates, limit: int
) -> list[Ranked]:
    """Rank every scope's candidates by its statistics, and return the best of all."""
    by_scope: dict[int, list[Sequence[Any]]] = defaultdict(list)
    for *row, scope_id, _ in found.rows:
        by_scope[scope_id].append(row)
    best = [
        rank(scope, queries[scope.pk], by_scope[scope.pk], found.counts, limit=limit)
        for scope in wanted.scopes
        if scope.pk in by_scope
    ]
    if len(best) == 1:
        return best[0]
    # ids grow with time, so ties go to the newest here too
    return heapq.nlargest(limit, chain.from_iterable(best), key=lambda each: (each.score, each.id))


def fetch(wanted: Wanted, best: Sequence[Ranked], words: Mapping[str, str]) -> tuple[Hit, ...]:
    """Return ranked memories as hits, without those that are not to be recalled any more."""
    found = read(wanted, [each.id for each in best])
    return tuple(
        Hit(found[each.id], each.score, tuple(w for t, w in words.items() if t in each.matched))
        for each in best
        if each.id in found
    )


def read(wanted: Wanted, ids: Sequence[int]) -> dict[int, Memory]:
    """Return memories by id, without those that are not to be recalled any more."""
    if not ids:
        return {}
    alias = wanted.alias

    def build(*ids: int) -> MemoryQuerySet:
        return Memory.objects.using(alias).filter(pk__in=ids)

    # the query has one shape for every ten hits: the last id fills the list up
    filled = [*ids, *[ids[-1]] * (-len(ids) % 10)]
    rows = prepared.run(("memories", len(filled)), build, filled, alias)
    scope_ids = {scope.pk for scope in wanted.scopes}
    # one may have been erased or trashed since it was ranked
    statuses = wanted.request.filter.statuses or (Status.ACTIVE,)
    return {
        memory.pk: memory
        for memory in prepared.instances(Memory, rows, alias)
        if memory.status in statuses
        and memory.scope_id in scope_ids
        and (wanted.request.filter.statuses or not _has_expired(memory, wanted.now))
    }


def _has_expired(memory: Memory, now: datetime) -> bool:
    return memory.expires_at is not None and memory.expires_at <= now
