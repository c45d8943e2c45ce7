"""Which memories a search ranks: what the engine finds, and at most so many of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from itertools import accumulate, chain
from operator import or_
from typing import Any

from django.db import models
from django.db.models import Q

from memory import analyzer, fts, prepared
from memory.filters import MemoryFilter
from memory.models import Memory, MemoryVector, Scope
from memory.querysets import MemoryQuerySet
from memory.retrieval.bm25f import WeightedQuery
from memory.understanding import synonyms, telling
from memory.understanding.phrases import phrases

MAX_CANDIDATES = 2_000
LARGE = 20_000
"""Where scopes hold more memories than this, what is typed is sought as `_typed` says."""
WALKED, SAMPLED = 5_000, 1_000
OFTEN = 25
"""What one in so many of the newest memories holds is common."""
WRITTEN_LAST = 16
"""So many memories of a scope are looked through where the engine may not find them yet."""
COLUMNS = (
    "id", "created_at", "indexed__terms", "indexed__content_terms", "scope_id", "type",
)  # fmt: skip
Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is asked for. `as_you_type` also matches words that begin with the last one.

    A query is what somebody looks for, and what it holds in quotes must occur; `is_message`
    is what somebody says: of stop words alone, or of a letter or two, it finds nothing.
    `offset` leaves out so many of the best, for the page that follows them; `cuts` leaves out
    what is far less relevant than the best.
    """

    query: str
    limit: int = 10
    offset: int = 0
    filter: MemoryFilter = field(default_factory=MemoryFilter)
    min_score: float = 0.0
    as_you_type: bool = False
    is_message: bool = False
    cuts: bool = False

    @property
    def reach(self) -> int:
        """Return how many of the best tell the page asked for, and whether there is another."""
        return self.offset + self.limit + 1

    @property
    def phrases(self) -> tuple[str, ...]:
        """Return the folded phrases that must occur."""
        return () if self.is_message else phrases(self.query)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request inside the scopes it was found to concern, all of one store.

    `synonyms` are the groups of each agent, by its id.
    """

    scopes: Sequence[Scope]
    request: SearchRequest
    now: datetime
    synonyms: Mapping[int, synonyms.Groups] = field(default_factory=dict)

    @property
    def alias(self) -> str:
        return str(self.scopes[0]._state.db)

    @property
    def filter(self) -> MemoryFilter:
        """Return the request's filter, and that its phrases must occur."""
        wanted, quoted = self.request.filter, self.request.phrases
        return replace(wanted, words=(*wanted.words, *quoted)) if quoted else wanted

    def recalled(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        """Return those of `memories` that the search considers."""
        return self.filter.recalled(memories, self.now)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows of `COLUMNS`, and exact document frequencies of some terms.

    `truncated` where more memories match than are here.
    """

    rows: Rows = ()
    counts: Counter[str] = field(default_factory=Counter)
    truncated: bool = False


def encoded(wanted: Wanted) -> tuple[dict[int, WeightedQuery], dict[str, str]]:
    """Return the query in each scope's terms, and the plain word behind each term."""
    request = wanted.request
    asked = telling.query_terms(request.query, keep_stop_words=not request.is_message)
    typed = analyzer.last_word(request.query) if request.as_you_type else ""
    queries: dict[int, WeightedQuery] = {}
    words: dict[str, str] = {}
    for scope in wanted.scopes:
        key = analyzer.scope_key(scope.pk)
        groups = wanted.synonyms.get(scope.agent_id or 0, ())
        added = synonyms.expand(request.query, asked, groups)
        plain = {analyzer.encode_term(term, key): term for term in (*asked, *added)}
        weights = {encoded: (asked.get(term) or added[term]) for encoded, term in plain.items()}
        words.update(plain)
        prefix = analyzer.encode_term(typed, key) if typed else ""
        if prefix:
            weights[prefix] = 1.0
            words[prefix] = typed
        also = frozenset(encoded for encoded, term in plain.items() if term in added)
        queries[scope.pk] = WeightedQuery(weights, prefix, also - {prefix})
    return queries, words


def find(
    wanted: Wanted, queries: Mapping[int, WeightedQuery], words: Mapping[str, str]
) -> Candidates:
    """Return at most about `MAX_CANDIDATES` memories in which a telling term occurs.

    `queries` are the query in each scope's terms, `words` the plain word behind each. Past
    the limit the rarest words are admitted first, and of the last one the newest memories.
    """
    size = sum(scope.memory_count for scope in wanted.scopes)
    if wanted.request.as_you_type and size > LARGE:
        return _typed(wanted, queries, words)
    condition = _condition(queries.values())
    rows = _matching(wanted, condition) if condition else []
    if len(rows) <= MAX_CANDIDATES:
        return Candidates(rows)
    counts = _counts(wanted, queries.values())
    admitted = _admitted(wanted, queries.values(), counts, words)
    memories = Memory.objects.of_scopes(wanted.scopes).filter(id__in=admitted)
    return Candidates(list(memories.values_list(*COLUMNS)), counts, truncated=True)


def _typed(
    wanted: Wanted, queries: Mapping[int, WeightedQuery], words: Mapping[str, str]
) -> Candidates:
    """Return candidates for what somebody types into a search of very many memories.

    A common word, or a letter or two, is in so many that an engine takes seconds to list them:
    such are sought among the newest memories. Rare words are sought by the engine, in all, and
    so is what begins as the last word where a sample of the newest holds little of it.
    """
    finding = list(chain.from_iterable(map(_finding, queries.values())))
    prefixes = tuple(query.prefix for query in queries.values() if query.prefix)
    counts = _counts(wanted, queries.values())
    by_rarity = sorted((t for t in finding if counts[t]), key=lambda t: (counts[t], words[t]))
    sums = accumulate(counts[term] for term in by_rarity)
    rare = [t for t, upto in zip(by_rarity, sums, strict=True) if upto <= MAX_CANDIDATES]
    common = by_rarity[len(rare) :]
    begun = [f" {prefix}" for prefix in prefixes]
    is_begun_often = len(_newest_holding(wanted, begun, SAMPLED)) * OFTEN >= SAMPLED
    needles = [f" {term} " for term in common] + (begun if is_begun_often else [])
    newest = _newest_holding(wanted, needles, WALKED)
    sought = [fts.TermQuery(tuple(rare), () if is_begun_often else prefixes)]
    if common and not newest:
        sought.append(fts.TermQuery(tuple(common)))
    lists = [_matching(wanted, condition) for condition in sought if condition]
    is_cut = bool(needles) or any(len(rows) > MAX_CANDIDATES for rows in lists)
    rows = {row[0]: row for row in chain(newest, *lists)}
    return Candidates(list(rows.values()), counts, is_cut)


def _newest_holding(wanted: Wanted, needles: Sequence[str], walked: int) -> Rows:
    """Return those of the newest `walked` memories whose terms hold any of the needles.

    At most `MAX_CANDIDATES` / 2 of them, the newest.
    """
    if not needles:
        return []
    of_scopes = Memory.objects.of_scopes(wanted.scopes)
    ages = of_scopes.order_by("-created_at").values_list("created_at", flat=True)
    oldest = next(iter(ages[walked - 1 : walked]), None)
    newest = of_scopes.filter(created_at__gte=oldest) if oldest else of_scopes
    holding = reduce(or_, (Q(indexed__terms__contains_exact=needle) for needle in needles))
    rows = wanted.recalled(newest.filter(holding)).order_by("-created_at", "-id")
    return list(rows.values_list(*COLUMNS)[: MAX_CANDIDATES // 2])


def _counts(wanted: Wanted, queries: Iterable[WeightedQuery]) -> Counter[str]:
    """Return in how many memories each whole term is, exactly."""
    terms = (term for query in queries for term in query.weights if term != query.prefix)
    return Counter(fts.document_counts(terms, wanted.alias))


def _condition(queries: Iterable[WeightedQuery]) -> fts.TermQuery:
    """Return what finds candidates: the telling terms, and words that begin as the last one."""
    queries = list(queries)
    terms = tuple(chain.from_iterable(map(_finding, queries)))
    return fts.TermQuery(terms, tuple(query.prefix for query in queries if query.prefix))


def _finding(query: WeightedQuery) -> list[str]:
    """Return the terms that candidates are found by, the prefix apart."""
    least = analyzer.MIN_FINDING_WEIGHT
    return [t for t, weight in query.weights.items() if weight >= least and t != query.prefix]


def _matching(wanted: Wanted, condition: fts.TermQuery) -> Rows:
    """Return what matches; more rows than `MAX_CANDIDATES` mean that there may be others."""
    alias, has_prefix = wanted.alias, bool(condition.prefixes)
    ids = [scope.pk for scope in wanted.scopes]

    def build(text: str, now: datetime, *scope_ids: int) -> models.QuerySet[Any, Any]:
        found = Memory.objects.matching_text(alias, scope_ids, text, has_prefix=has_prefix)
        recalled = wanted.filter.recalled(found, now)
        return recalled.values_list(*COLUMNS)[: MAX_CANDIDATES + 1]

    text = fts.match_text(condition, alias)
    if wanted.filter == MemoryFilter() and len(ids) == 1:
        shape = ("candidates", has_prefix, MAX_CANDIDATES)
        rows = prepared.run(shape, build, (text, wanted.now, *ids), alias, convert=False)
    else:
        rows = list(build(text, wanted.now, *ids))
    found = {row[0] for row in rows}
    if late := _late(wanted, condition, found):
        # all anew, in one form: times as the driver gives them do not compare with times of Django
        memories = Memory.objects.of_scopes(wanted.scopes).filter(pk__in=[*found, *late])
        return list(wanted.recalled(memories).values_list(*COLUMNS))
    return rows


def _late(wanted: Wanted, condition: fts.TermQuery, found: set[int]) -> list[int]:
    """Return what was written last and matches, as far as the engine has not `found` it yet."""
    alias = wanted.alias
    if fts.finds_at_once(alias):
        return []

    def build(*scope_ids: int) -> models.QuerySet[Any, Any]:
        written = [
            MemoryVector.objects.using(alias)
            .filter(scope_id=scope_id)
            .order_by("-stamp")
            .values_list("pk", "memory__indexed__terms")[:WRITTEN_LAST]
            for scope_id in scope_ids
        ]
        return written[0].union(*written[1:], all=True) if written[1:] else written[0]

    ids = [scope.pk for scope in wanted.scopes]
    written = prepared.run(("written last", len(ids)), build, ids, alias, convert=False)
    return [pk for pk, terms in written if pk not in found and condition.occurs_in(terms or "")]


def _admitted(
    wanted: Wanted,
    queries: Iterable[WeightedQuery],
    counts: Mapping[str, int],
    words: Mapping[str, str],
) -> set[int]:
    """Return `MAX_CANDIDATES` ids: those of the rarest words, of the last word the newest."""
    admitted: set[int] = set()
    queries = list(queries)
    by_word: dict[str, list[str]] = defaultdict(list)
    for term in chain.from_iterable(map(_finding, queries)):
        if counts[term]:
            by_word[words[term]].append(term)
    by_rarity = sorted(by_word, key=lambda word: (sum(counts[t] for t in by_word[word]), word))
    conditions = [fts.TermQuery(tuple(by_word[word])) for word in by_rarity]
    if prefixes := tuple(query.prefix for query in queries if query.prefix):
        conditions.append(fts.TermQuery((), prefixes))
    for condition in conditions:
        matching = wanted.recalled(Memory.objects.matching(wanted.scopes, condition))
        newest = matching.order_by("-id").values_list("id", flat=True)
        for memory_id in newest[:MAX_CANDIDATES]:
            admitted.add(memory_id)
            if len(admitted) == MAX_CANDIDATES:
                return admitted
    return admitted
