"""Ranking by words, ours and so the same on both engines.

BM25F (Robertson, Zaragoza, Taylor, CIKM 2004) over name, description and content with
the scope's own statistics. A score in [0, 1) says how much of the query's information a
memory shares: 1 - exp(-2 x / y), x its BM25F, y the most that the query could reach, or
`ENOUGH_NATS` where that is less: a message of many words need not find them all.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory.models import Scope

K1 = 1.0
NAME_WEIGHT, DESCRIPTION_WEIGHT, CONTENT_WEIGHT = 1.5, 1.2, 1.0
LENGTH_PENALTY = 0.1
"""BM25F's k1, the fields' w, and the content's b; name and description have b = 0. None
matters much on the development sets (docs/retrieval.md has the table)."""
ENOUGH_NATS = 24.0
Length = TypeVar("Length", float, NDArray[np.float64])
_FEW_TERMS = 10


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """Encoded terms with their weights; `prefix`, where there is one, is among them.

    So are `synonyms`, which stand for others: without them all of the query is found too.
    """

    weights: Mapping[str, float]
    prefix: str = ""
    synonyms: frozenset[str] = frozenset()

    @property
    def needles(self) -> list[tuple[str, str]]:
        """Return each term with the text that finds it: every word stands between spaces."""
        return [(t, f" {t}" if t == self.prefix else f" {t} ") for t in self.weights]


class Ranked(NamedTuple):
    """A candidate that is among the best, and the terms found in it."""

    id: int
    score: float
    matched: Collection[str]


@dataclass(frozen=True, slots=True)
class Weighed:
    """Candidates of a scope, and what makes their scores.

    `documents` are id, time of creation and BM25F's pseudo-frequency of every term. `gains`
    are the nats that a term adds where it is found without end, `nats` those of the whole query,
    of which `most` count as all.
    """

    documents: Sequence[tuple[int, Any, Mapping[str, float]]]
    frequency: Counter[str]
    gains: Mapping[str, float]
    nats: float
    most: float


def rank(
    scope: Scope,
    query: WeightedQuery,
    rows: Iterable[Sequence[Any]],
    counts: Counter[str],
    *,
    limit: int,
) -> list[Ranked]:
    """Return the `limit` best candidates, best first; ties by newest, then by id.

    `rows` hold id, created_at, terms and the length of the content in terms. Document
    frequencies are `counts`, for terms not in it the candidates' own.
    """
    weighed = weigh(scope, query, rows, counts)
    gains = weighed.gains
    places = [
        (reach(found, gains), created_at, memory_id, found)
        for memory_id, created_at, found in weighed.documents
    ]
    # scores rise with what is reached: only the best need theirs
    return [
        Ranked(memory_id, score(reached, weighed.most), found)
        for reached, _, memory_id, found in heapq.nlargest(limit, places)
    ]


def weigh(
    scope: Scope, query: WeightedQuery, rows: Iterable[Sequence[Any]], counts: Counter[str]
) -> Weighed:
    """Look for the query in every candidate, and weigh its terms; `rows` as `rank` takes them."""
    average, find = average_length(scope), finder(query)
    documents = [
        (memory_id, created_at, find(terms, content_weight(content_terms, average)))
        for memory_id, created_at, terms, content_terms in rows
    ]
    frequency = Counter(chain.from_iterable(found for _, _, found in documents)) | counts
    total = max(scope.memory_count, 1)
    gains = gains_of(query, frequency, total)
    nats = nats_of(query, gains)
    return Weighed(documents, frequency, gains, nats, most_of(nats))


def gains_of(query: WeightedQuery, frequency: Mapping[str, int], total: int) -> dict[str, float]:
    """Return the nats that each term of a query adds where it is found without end."""
    return {
        term: weight * math.log(1 + total / (frequency.get(term, 0) + 0.5))
        for term, weight in query.weights.items()
    }


def nats_of(query: WeightedQuery, gains: Mapping[str, float]) -> float:
    """Return the information of a whole query: of its own words, not of their synonyms."""
    return sum(gain for term, gain in gains.items() if term not in query.synonyms)


def most_of(nats: float) -> float:
    """Return what counts as all of a query of so much information."""
    return min(nats, ENOUGH_NATS)


def reach(found: Mapping[str, float], gains: Mapping[str, float]) -> float:
    """Return a memory's BM25F in nats; of one term alone what that adds to it."""
    reached = 0.0
    for term, occurrences in found.items():
        reached += gains[term] * occurrences / (K1 + occurrences)
    return reached


def score(reached: float, most: float) -> float:
    """Return the score in [0, 1) of what a memory reaches."""
    return 1 - math.exp(-2 * reached / most)


def average_length(scope: Scope) -> float:
    """Return how many terms a content of the scope has."""
    return max(scope.content_terms / max(scope.memory_count, 1), 1.0)


def content_weight(content_terms: Length, average: float) -> Length:
    """Return what a word in a content of so many terms counts: less in a long one."""
    return CONTENT_WEIGHT / (1 - LENGTH_PENALTY + LENGTH_PENALTY * content_terms / average)


def finder(query: WeightedQuery) -> Callable[[str, float], dict[str, float]]:
    """Return what finds the query in a memory's terms, given what a word of its content counts."""
    # looking for a few words is faster than cutting the text into all of its
    if len(query.weights) <= _FEW_TERMS:
        needles = query.needles
        return lambda terms, weight: _find_words(terms, needles, weight)
    return lambda terms, weight: _cut_words(terms, query, weight)


def _find_words(
    terms: str, needles: list[tuple[str, str]], content_weight: float
) -> dict[str, float]:
    """Return BM25F's pseudo-frequency of every query term in one memory."""
    found: dict[str, float] = {}
    name_end = terms.find("\n")
    description_end = terms.find("\n", name_end + 1)
    for term, needle in needles:
        at = terms.find(needle)
        if at < 0:
            continue
        occurrences = 0.0
        while at >= 0:
            if at > description_end:
                occurrences += content_weight
            else:
                occurrences += NAME_WEIGHT if at < name_end else DESCRIPTION_WEIGHT
            at = terms.find(needle, at + len(needle))
        found[term] = occurrences
    return found


def _cut_words(terms: str, query: WeightedQuery, content_weight: float) -> dict[str, float]:
    """Return the same as `_find_words`, in a time that hardly grows with the query."""
    found: dict[str, float] = {}
    weights = (NAME_WEIGHT, DESCRIPTION_WEIGHT, content_weight)
    for weight, text in zip(weights, terms.split("\n"), strict=True):
        words = text.split()
        for word in filter(query.weights.__contains__, words):
            found[word] = found.get(word, 0.0) + weight
        if prefix := query.prefix:
            begun = sum(word.startswith(prefix) and word != prefix for word in words)
            if begun:
                found[prefix] = found.get(prefix, 0.0) + weight * begun
    return found
