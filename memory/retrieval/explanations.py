"""Why a memory has the score it has: what each word adds, by the code that ranked it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from agents.models import Agent
from memory import analyzer
from memory.models import Memory, Scope
from memory.retrieval import bm25f, evidence, hybrid, lexical, search
from memory.retrieval.bm25f import DESCRIPTION_WEIGHT, NAME_WEIGHT, Weighed, WeightedQuery
from memory.retrieval.calibration import evidence_of, from_log_odds
from memory.retrieval.candidates import MAX_CANDIDATES, SearchRequest, Wanted, encoded
from memory.retrieval.lexical import Found
from memory.retrieval.priors import lifted, priors, use
from memory.retrieval.search import Weighing
from memory.understanding.times import Span

_VISIBLE = 1e-6
FIELDS = ("name", "description", "content")


@dataclass(frozen=True, slots=True)
class FieldCount:
    """How often a word stands in a field, and what each time counts there."""

    name: str
    times: int
    weight: float


@dataclass(frozen=True, slots=True)
class Share:
    """What one word adds to the relevance, or of a literal to the score.

    `gain` and `nats` are information, 0 of a literal. `weight` is the word's own in the query,
    `frequency` in how many memories it is.
    """

    word: str
    fields: tuple[FieldCount, ...]
    adds: float
    weight: float = 1.0
    frequency: int = 0
    gain: float = 0.0
    nats: float = 0.0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a score comes from.

    The shares of the words, the largest first, what the meaning adds and what the neighbours in
    time do, are the `relevance`; less the `doubt` in the query it makes `before`, the score before
    the `priors`, which are in log-odds. `is_capped`: with them it would be above what the best
    memory has without its neighbours, and none is. Of letters `before` is the sum of the shares.
    `cosine` is None by words alone. `content_weight` is what a word of the content counts after
    its length; `nats` of `most` are reached.
    """

    score: float
    before: float
    shares: tuple[Share, ...] = ()
    cosine: float | None = None
    meaning: float = 0.0
    beside: float = 0.0
    relevance: float | None = None
    doubt: float = 0.0
    priors: Mapping[str, float] = field(default_factory=dict)
    is_capped: bool = False
    content_terms: int = 0
    content_weight: float = 1.0
    nats: float = 0.0
    most: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """How a query was read, and how much there was to rank.

    `way` is `words`, `signs` (every word held one), `short` (no such word, so parts of words),
    or `nothing`.
    """

    way: str = "nothing"
    terms: Mapping[str, float] = field(default_factory=dict)
    stop_words: tuple[str, ...] = ()
    prefix: str = ""
    literals: tuple[str, ...] = ()
    candidates: int = 0
    truncated: bool = False
    scope_size: int = 0
    average_terms: float = 0.0


def explain(
    agent: Agent,
    user_id: str,
    request: SearchRequest,
    scores: Mapping[int, float],
    *,
    mode: str = "auto",
    now: datetime,
) -> tuple[Reading, dict[int, Explanation]]:
    """Return how a query is read, and why memories have the `scores` that a search gave them.

    Costs what the search costs, and a query or two more.
    """
    scope, ids = lexical.find_scope(agent, user_id), scores.keys()
    if scope is None:
        return Reading(), {}
    wanted = Wanted([scope], request, now, lexical.synonyms_of([agent]))
    found = lexical.find(wanted)
    words = evidence.of_engine(wanted, found)
    meaning = search.meaning_of(wanted, words, mode).meaning
    if found.literals:
        explained = _of_literals(wanted, found, ids)
    else:
        by_words = {} if mode == "vector" else _of_words(scope, found, ids)
        explained = _weighed(search.weigh(words, meaning, mode), by_words, ids)
    spans = search.spans_of(wanted)
    memories = Memory.objects.of_scopes([scope]).in_bulk(list(explained))
    return _reading(wanted, found), {
        pk: _with_priors(each, _priors(memories[pk], spans, now), scores[pk])
        for pk, each in explained.items()
        if pk in memories
    }


def _weighed(
    weighing: Weighing, by_words: Mapping[int, Explanation], ids: Collection[int]
) -> dict[int, Explanation]:
    """Explain with meaning, neighbours and doubt, by what ranks."""
    weighed, explained = weighing.weighed, {}
    relevance = weighed.relevance
    for place in np.flatnonzero(np.isin(weighed.ids, list(ids))).tolist():
        pk, reached = int(weighed.ids[place]), float(relevance[place])
        cosine = float(weighed.meaning[place])
        explained[pk] = replace(
            by_words.get(pk, Explanation(0.0, 0.0)),
            before=from_log_odds(evidence_of(reached - weighing.off)),
            cosine=cosine if weighing.has_meaning else None,
            meaning=weighed.weight * cosine,
            beside=float(weighed.beside[place]),
            relevance=reached,
            doubt=weighing.off,
        )
    return explained


def _priors(memory: Memory, spans: Sequence[Span], now: datetime) -> dict[str, float]:
    terms = priors(memory, spans, now=now)
    return {**terms, "use": used} if (used := use(memory.access_count)) else terms


def _with_priors(explained: Explanation, terms: Mapping[str, float], score: float) -> Explanation:
    is_capped = score < lifted(explained.before, terms) - _VISIBLE
    return replace(explained, score=score, priors=terms, is_capped=is_capped)


def _reading(wanted: Wanted, found: Found) -> Reading:
    [scope], request = wanted.scopes, wanted.request
    queries, words = encoded(wanted)
    query = queries[scope.pk]
    terms = {words[term]: weight for term, weight in query.weights.items()}
    stop_words = tuple(w for w in analyzer.stop_words(request.query) if w not in terms)
    ways = {0.5: "short", 1.0: "signs"}
    return Reading(
        way=ways[found.share] if found.literals else "words" if found.by_type else "nothing",
        terms={} if found.literals else terms,
        stop_words=() if found.literals else stop_words,
        prefix=words.get(query.prefix, ""),
        literals=found.literals,
        # one row more than are ranked says that there are more
        candidates=min(sum(found.by_type.values()), MAX_CANDIDATES)
        if found.literals
        else sum(found.by_type.values()),
        truncated=found.truncated,
        scope_size=scope.memory_count,
        average_terms=bm25f.average_length(scope),
    )


def _of_words(scope: Scope, found: Found, ids: Collection[int]) -> dict[int, Explanation]:
    rows = {row[0]: row for row in found.candidates.rows}
    if not rows:
        return {}
    query, average = found.queries[scope.pk], bm25f.average_length(scope)
    weighed = lexical.weigh_words(scope, found)
    explained = {}
    for memory_id, _created_at, occurrences in weighed.documents:
        if memory_id in ids:
            terms, content_terms = rows[memory_id][2:4]
            weight = bm25f.content_weight(content_terms, average)
            fields = _by_field(query, terms, weight)
            reached = bm25f.reach(occurrences, weighed.gains)
            explained[memory_id] = Explanation(
                0.0,
                0.0,
                _shares(found, query, weighed, occurrences, fields),
                content_terms=content_terms,
                content_weight=weight,
                nats=reached,
                most=weighed.most,
            )
    return explained


def _shares(
    found: Found,
    query: WeightedQuery,
    weighed: Weighed,
    occurrences: Mapping[str, float],
    fields: Mapping[str, tuple[FieldCount, ...]],
) -> tuple[Share, ...]:
    """Share what the words add to the relevance among them."""
    shares = []
    for term, times in occurrences.items():
        nats = bm25f.reach({term: times}, weighed.gains)
        shares.append(
            Share(
                word=found.words[term],
                fields=fields[term],
                adds=hybrid.WORDS * nats / weighed.most,
                weight=query.weights[term],
                frequency=weighed.frequency[term],
                gain=weighed.gains[term],
                nats=nats,
            )
        )
    return tuple(sorted(shares, key=lambda share: (-share.nats, share.word)))


def _by_field(
    query: WeightedQuery, terms: str, content_weight: float
) -> dict[str, tuple[FieldCount, ...]]:
    """Return where each term stands: the ranking's own search, a field at a time."""
    find, texts = bm25f.finder(query), terms.split("\n")
    weights = (NAME_WEIGHT, DESCRIPTION_WEIGHT, content_weight)
    counts: dict[str, list[FieldCount]] = {}
    for place, (name, weight) in enumerate(zip(FIELDS, weights, strict=True)):
        alone = "\n".join(text if i == place else "" for i, text in enumerate(texts))
        for term, occurrences in find(alone, content_weight).items():
            counts.setdefault(term, []).append(
                FieldCount(name, round(occurrences / weight), weight)
            )
    return {term: tuple(each) for term, each in counts.items()}


def _of_literals(wanted: Wanted, found: Found, ids: Collection[int]) -> dict[int, Explanation]:
    """Explain memories that hold every literal: the first field that holds one decides."""
    rows = Memory.objects.of_scopes(wanted.scopes).filter(pk__in=ids)
    explained = {}
    for memory_id, folded in rows.values_list("pk", "indexed__folded"):
        places = [lexical.literal_field(folded, literal) for literal in found.literals]
        score = lexical.literal_score(places, found.share)
        shares = tuple(
            Share(
                literal,
                (FieldCount(FIELDS[place], 1, lexical.literal_score([place], found.share)),),
                score / len(places),
            )
            for literal, place in zip(found.literals, places, strict=True)
        )
        explained[memory_id] = Explanation(score, score, shares)
    return explained
