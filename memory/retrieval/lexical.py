"""Search by words: candidates from the engine, ranking ours and the same on both.

BM25F (Robertson, Zaragoza, Taylor, CIKM 2004) over name, description and content with
the scope's own statistics. A score in [0, 1) says how much of the query's information a
memory shares: 1 - exp(-2 x / y), x its BM25F, y the most that the query could reach, or
`_ENOUGH_NATS` where that is less: a message of many words need not find them all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from agents.models import Agent
from memory import analyzer, fts
from memory.filters import MemoryFilter
from memory.models import Memory, Scope
from memory.querysets import MemoryQuerySet

MAX_CANDIDATES = 2_000
MAX_QUERY_TERMS = 96
_K1 = 1.0
_NAME_WEIGHT, _DESCRIPTION_WEIGHT, _CONTENT_WEIGHT = 1.5, 1.2, 1.0
_LENGTH_PENALTY = 0.1
_ENOUGH_NATS = 24.0
"""BM25F's k1, the fields' w, and the content's b; name and description have b = 0. None
matters much on the development sets (docs/retrieval.md has the table)."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is asked for. `as_you_type` also matches words that begin with the last one."""

    query: str
    limit: int = 10
    filter: MemoryFilter = field(default_factory=MemoryFilter)
    min_score: float = 0.0
    as_you_type: bool = False


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
class _Ranked:
    score: float
    created_at: datetime
    id: int
    matched: tuple[str, ...]


def search(agent: Agent, user_id: str, request: SearchRequest, *, now: datetime) -> SearchResult:
    """Return the memories of (agent, user_id) that match `request.query`.

    Any of the query's words may match. Ties go to the newest. Three queries: scope,
    candidates, memories; two more and one per admitted term past `MAX_CANDIDATES`
    candidates. A query without a letter, digit or symbol finds nothing.
    """
    scope = Scope.objects.of_user(agent, user_id).first()
    if scope is None or request.limit < 1:
        return SearchResult()
    memories = request.filter.recalled(Memory.objects.of_scope(scope), now)
    ranked, truncated = _literal(memories, analyzer.literals(request.query))
    if not ranked:
        ranked, truncated = _by_terms(scope, request, now)
    if not ranked:
        ranked, truncated = _literal(memories, analyzer.short_words(request.query))
    kept = [each for each in ranked if each.score >= request.min_score]
    kept.sort(key=lambda each: (each.score, each.created_at, each.id), reverse=True)
    return SearchResult(_fetch(scope, kept[: request.limit]), truncated)


def _fetch(scope: Scope, ranked: list[_Ranked]) -> tuple[Hit, ...]:
    if not ranked:
        return ()
    found = Memory.objects.of_scope(scope).in_bulk([each.id for each in ranked])
    # a memory may have been erased since it was ranked
    return tuple(
        Hit(found[each.id], each.score, each.matched) for each in ranked if each.id in found
    )


def _literal(memories: MemoryQuerySet, literals: tuple[str, ...]) -> tuple[list[_Ranked], bool]:
    """Rank memories that contain every literal: in the name 1, description 0.9, content 0.8."""
    if not literals:
        return [], False
    rows = list(
        memories.containing(literals)
        .order_by("-id")
        .values_list("id", "created_at", "indexed__folded")[: MAX_CANDIDATES + 1]
    )
    ranked = []
    for memory_id, created_at, folded in rows[:MAX_CANDIDATES]:
        fields = folded.split("\n")
        first = min(
            next((i for i, text in enumerate(fields) if literal in text), 2) for literal in literals
        )
        ranked.append(_Ranked(1.0 - first / 10, created_at, memory_id, literals))
    return ranked, len(rows) > MAX_CANDIDATES


@dataclass(frozen=True, slots=True)
class _Query:
    """Encoded terms → their plain form and weight; `prefix` also stands among them."""

    plain: Mapping[str, str]
    weights: Mapping[str, float]
    prefix: str = ""

    def condition(self) -> fts.TermQuery:
        return fts.TermQuery(tuple(self.finding()), self.prefix)

    def finding(self) -> list[str]:
        """Return the terms that candidates are found by."""
        least = analyzer.MIN_FINDING_WEIGHT
        return [t for t, weight in self.weights.items() if weight >= least and t != self.prefix]


def _encoded(scope: Scope, request: SearchRequest) -> _Query:
    key = analyzer.scope_key(scope.pk)
    weighted = list(analyzer.query_terms(request.query).items())[:MAX_QUERY_TERMS]
    plain = {analyzer.encode_term(term, key): term for term, _ in weighted}
    weights = dict(zip(plain, (weight for _, weight in weighted), strict=True))
    typed = analyzer.last_word(request.query) if request.as_you_type else ""
    prefix = analyzer.encode_term(typed, key) if typed else ""
    if prefix:
        plain[prefix] = typed
        weights[prefix] = 1.0
    return _Query(plain, weights, prefix)


def _by_terms(scope: Scope, request: SearchRequest, now: datetime) -> tuple[list[_Ranked], bool]:
    query = _encoded(scope, request)

    def candidates(condition: fts.TermQuery) -> MemoryQuerySet:
        return request.filter.recalled(Memory.objects.matching(scope, condition), now)

    found = candidates(query.condition())
    columns = ("id", "created_at", "indexed__terms", "indexed__content_terms")
    rows = list(found.values_list(*columns)[: MAX_CANDIDATES + 1])
    if len(rows) <= MAX_CANDIDATES:
        return _bm25f(scope, query, rows, Counter()), False
    counts = fts.document_counts((t for t in query.weights if t != query.prefix), found.db)
    admitted = _admitted(candidates, query, counts)
    rows = list(Memory.objects.of_scope(scope).filter(id__in=admitted).values_list(*columns))
    return _bm25f(scope, query, rows, Counter(counts)), True


def _admitted(
    candidates: Callable[[fts.TermQuery], MemoryQuerySet], query: _Query, counts: dict[str, int]
) -> set[int]:
    """Return `MAX_CANDIDATES` ids: those of the rarest terms, of the last term the newest."""
    admitted: set[int] = set()
    by_rarity = sorted(query.finding(), key=lambda term: (counts[term], query.plain[term]))
    conditions = [fts.TermQuery((term,)) for term in by_rarity if counts[term]]
    if query.prefix:
        conditions.append(fts.TermQuery((), query.prefix))
    for condition in conditions:
        newest = candidates(condition).order_by("-id").values_list("id", flat=True)
        for memory_id in newest[:MAX_CANDIDATES]:
            admitted.add(memory_id)
            if len(admitted) == MAX_CANDIDATES:
                return admitted
    return admitted


def _bm25f(
    scope: Scope,
    query: _Query,
    rows: Iterable[tuple[int, datetime, str, int]],
    counts: Counter[str],
) -> list[_Ranked]:
    """Score candidates; document frequencies are `counts`, for others the candidates' own."""
    weights, prefix = query.weights, query.prefix
    average = max(scope.content_terms / max(scope.memory_count, 1), 1.0)
    documents = []
    frequency: Counter[str] = Counter()
    for memory_id, created_at, terms, content_terms in rows:
        length = 1 - _LENGTH_PENALTY + _LENGTH_PENALTY * content_terms / average
        found = _weighted_occurrences(terms, weights, prefix, length)
        frequency.update(found.keys())
        documents.append((memory_id, created_at, found))
    frequency |= counts
    total = max(scope.memory_count, 1)
    gains = {
        term: weight * math.log(1 + total / (frequency[term] + 0.5))
        for term, weight in weights.items()
    }
    most = min(sum(gains.values()), _ENOUGH_NATS)
    ranked = []
    for memory_id, created_at, found in documents:
        reached = sum(gains[term] * tf / (_K1 + tf) for term, tf in found.items())
        score = 1 - math.exp(-2 * reached / most)
        matched = tuple(query.plain[term] for term in weights if term in found)
        ranked.append(_Ranked(score, created_at, memory_id, matched))
    return ranked


def _weighted_occurrences(
    terms: str, weights: Mapping[str, float], prefix: str, content_length: float
) -> dict[str, float]:
    """Return BM25F's pseudo-frequency of every query term in one memory."""
    following = iter((_DESCRIPTION_WEIGHT, _CONTENT_WEIGHT / content_length, 0.0))
    weight = _NAME_WEIGHT
    found: dict[str, float] = {}
    for word in terms.split(" "):
        if word in weights:
            found[word] = found.get(word, 0.0) + weight
        elif word == "\n":
            weight = next(following)
        if prefix and word != prefix and word.startswith(prefix):
            found[prefix] = found.get(prefix, 0.0) + weight
    return found
