"""Words and meaning in one measure, which means the same for every query of an agent.

    relevance = 0.6 x words + 0.4 x meaning + 0.3 x what its neighbours have of these

`words` is the share of the query's information that a memory holds (BM25F over what counts as
all of it, docs/retrieval.md), `meaning` the cosine without the scope's mean. Linear and
absolute: nothing depends on what else was found, so scores can be compared across queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memory.retrieval.postings import NOTHING, WordShares
from memory.retrieval.vectors import Floats, Ids, ScopeVectors

WORDS, MEANING, NEIGHBOURS = 0.6, 0.4, 0.3
MEANING_ALONE = 0.6
"""Where words are not asked."""
NEIGHBOUR_SECONDS = 3600
"""Memories saved one after the other within an hour are of one conversation."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """What speaks for each memory, arrays of one length: `words`, `meaning`, `beside`.

    `ids` are those with a vector, then the candidates without one, whose meaning is 0. `weight`
    is that of the meaning.
    """

    ids: Ids
    words: Floats
    meaning: Floats
    beside: Floats
    weight: float = MEANING

    @property
    def relevance(self) -> Floats:
        """Return the sum; it ranks, and `calibration` makes a score of it."""
        return np.asarray(self.own + self.beside)

    @property
    def own(self) -> Floats:
        """Return what a memory has without its neighbours."""
        return np.asarray(WORDS * self.words + self.weight * self.meaning)


def weigh(vectors: ScopeVectors, query: Floats, words: WordShares | None) -> Weighed:
    """Weigh all memories of a scope for a query's vector and its words, or for the vector alone."""
    weight = MEANING if words else MEANING_ALONE
    words = words or NOTHING
    found, shares = words.ids, words.shares.astype(np.float32)
    places, is_there = vectors.places(found)
    of_vectors = np.zeros(len(vectors.ids), dtype=np.float32)
    of_vectors[places[is_there]] = shares[is_there]
    meaning = vectors.cosines(query) if len(vectors.ids) else of_vectors
    beside = _beside(vectors, WORDS * of_vectors + weight * meaning)
    nothing = np.zeros(len(found) - int(is_there.sum()), dtype=np.float32)
    return Weighed(
        np.concatenate([vectors.ids, found[~is_there]]),
        np.concatenate([of_vectors, shares[~is_there]]),
        np.concatenate([meaning, nothing]),
        np.concatenate([beside, nothing]),
        weight,
    )


def weigh_words(words: WordShares) -> Weighed:
    """Weigh the memories that hold any of a query's words by these alone."""
    nothing = np.zeros(len(words.ids), dtype=np.float32)
    return Weighed(words.ids, words.shares.astype(np.float32), nothing, nothing)


def _beside(vectors: ScopeVectors, own: Floats) -> Floats:
    """Return what the memories saved directly before and after add to each."""
    if len(own) < 2:
        return np.zeros_like(own)
    is_near = np.abs(np.diff(vectors.created)) <= NEIGHBOUR_SECONDS
    given = np.maximum(own, 0)
    before, after = np.zeros_like(own), np.zeros_like(own)
    before[1:] = np.where(is_near, given[:-1], 0)
    after[:-1] = np.where(is_near, given[1:], 0)
    return np.asarray(NEIGHBOURS * np.hypot(before, after))


def order(weighed: Weighed, count: int) -> Ids:
    """Return the places of the `count` most relevant, best first; ties by newest."""
    relevance = weighed.relevance
    if count < len(relevance):
        least = np.partition(relevance, len(relevance) - count)[len(relevance) - count]
        places = np.flatnonzero(relevance >= least)
    else:
        places = np.arange(len(relevance))
    return np.asarray(places[np.lexsort((-weighed.ids[places], -relevance[places]))][:count])
