"""The words of one scope, kept in memory while it is asked again and again.

For each query the engine would look up the same rows, and their terms would be looked through
again. What is here is made of those rows, finds and scores as `candidates` and `bm25f` do, and
is as the rows are: the scope's stamp says whether it is behind, as it does of vectors.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory import analyzer
from memory.models import Memory, MemoryVector, Scope, Status
from memory.retrieval import bm25f
from memory.retrieval.bm25f import DESCRIPTION_WEIGHT, NAME_WEIGHT, WeightedQuery
from memory.retrieval.candidates import MAX_CANDIDATES
from memory.retrieval.priors import Traits
from memory.retrieval.scope_cache import ScopeCache, bound_bytes

Floats = NDArray[np.float64]
_COLUMNS = ("status", "expires_at", "indexed__terms", "indexed__content_terms", *Traits._fields)
_CACHE_SHARE = 4
"""The words of one scope may take a quarter of the cache."""
_DEAD_SHARE = 4
"""Where more than a quarter of the places are of rows that are no more, all is built anew."""
_TERM_BYTES, _POSTING_BYTES, _PLACE_BYTES = 500, 24, 500
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class WordShares:
    """Memories that hold a telling word of a query: ids, how much of its information each has.

    1 is what counts as all of it; of a long query a memory may hold more. `terms_of` returns the
    terms of the query that a memory holds, `frequency` how many of them hold a term. `nats`
    are the information of the whole query.
    """

    ids: NDArray[np.int64]
    shares: Floats
    terms_of: Callable[[int], Collection[str]]
    frequency: Mapping[str, int]
    nats: float


NOTHING = WordShares(np.zeros(0, dtype=np.int64), np.zeros(0), lambda _: (), {}, 0.0)


class _Posting:
    """Where a term stands, what it counts in name and description, how often it is in content."""

    __slots__ = ("fixed", "places", "times")

    def __init__(self) -> None:
        self.places, self.fixed, self.times = array("i"), array("d"), array("d")


class ScopePostings:
    """One scope's words; a lock keeps those who read from those who renew."""

    def __init__(self, scope: Scope) -> None:
        self.stamp = scope.vector_stamp
        self._lock = threading.Lock()
        self._place: dict[int, int] = {}
        self._ids = array("q")
        self._alive_until, self._lengths = array("d"), array("d")
        self._traits: dict[int, Traits] = {}
        self._postings: dict[str, _Posting] = {}
        self._size = 0
        self._add(_rows(scope))

    def __len__(self) -> int:
        return len(self._place)

    @property
    def nbytes(self) -> int:
        """Return about how much memory it takes."""
        of_places = _PLACE_BYTES * len(self._ids) + _POSTING_BYTES * self._size
        return of_places + _TERM_BYTES * len(self._postings)

    def renew(self, scope: Scope) -> bool:
        """Take in what was written since; return whether all is there, and little that is dead."""
        rows = MemoryVector.objects.of_scope(scope)
        with self._lock:
            changed = list(rows.filter(stamp__gt=self.stamp).values_list("pk", flat=True))
            self._drop(changed)
            self._add(_rows(scope, changed) if changed else [])
            if len(self._place) > scope.memory_count:
                self._drop(self._place.keys() - set(rows.values_list("pk", flat=True)))
            self.stamp = scope.vector_stamp
            dead = len(self._ids) - len(self._place)
            # there are more where somebody saved since the scope was read
            return dead * _DEAD_SHARE <= len(self._ids) and len(self) >= scope.memory_count

    def shares(self, scope: Scope, query: WeightedQuery, now: datetime) -> WordShares:
        """Return what `bm25f` says of the memories that the engine would find, in no order."""
        with self._lock:
            return self._shares(scope, query, now)

    def alive(self, now: datetime) -> NDArray[np.int64]:
        """Return the ids of all memories that may be recalled, sorted."""
        with self._lock:
            is_alive = np.frombuffer(self._alive_until) > now.timestamp()
            return np.sort(np.frombuffer(self._ids, dtype=np.int64)[is_alive])

    def traits(self, memory_ids: Iterable[int]) -> dict[int, Traits]:
        """Return what speaks for memories whatever is asked, of those that are there."""
        with self._lock:
            return {pk: self._traits[pk] for pk in memory_ids if pk in self._traits}

    def _shares(self, scope: Scope, query: WeightedQuery, now: datetime) -> WordShares:
        ids = np.frombuffer(self._ids, dtype=np.int64)
        terms = [term for term in query.weights if term in self._postings]
        postings = [self._postings[term] for term in terms]
        # all postings one after the other, each with its term's row: a loop over terms takes longer
        rows = np.repeat(np.arange(len(terms)), [len(posting.places) for posting in postings])
        places = _joined([_integers(posting.places) for posting in postings], np.int32)
        finds = np.array([query.weights[t] >= analyzer.MIN_FINDING_WEIGHT for t in terms], bool)
        is_candidate = np.zeros(len(ids), dtype=bool)
        is_candidate[places[finds[rows]]] = True
        is_candidate &= np.frombuffer(self._alive_until) > now.timestamp()
        is_kept = is_candidate[places]
        rows, places = rows[is_kept], places[is_kept]
        counts = np.bincount(rows, minlength=len(terms))
        frequency = dict(zip(terms, counts.tolist(), strict=True))
        gains = bm25f.gains_of(query, frequency, max(scope.memory_count, 1))
        lengths = np.frombuffer(self._lengths)
        content = bm25f.content_weight(lengths, bm25f.average_length(scope))
        fixed = _joined([_numbers(posting.fixed) for posting in postings], np.float64)
        times = _joined([_numbers(posting.times) for posting in postings], np.float64)
        occurrences = fixed[is_kept] + times[is_kept] * content[places]
        gained = np.array([gains[term] for term in terms], np.float64)[rows]
        added = gained * occurrences / (bm25f.K1 + occurrences)
        reached = np.bincount(places, added, minlength=len(ids))
        found = np.zeros((len(terms), len(ids)), dtype=bool)
        found[rows, places] = True
        best = np.flatnonzero(is_candidate)
        row_of = dict(zip(ids[best].tolist(), best.tolist(), strict=True))

        def terms_of(memory_id: int) -> list[str]:
            if memory_id not in row_of:
                return []
            return [terms[row] for row in np.flatnonzero(found[:, row_of[memory_id]]).tolist()]

        nats = bm25f.nats_of(query, gains)
        return WordShares(ids[best], reached[best] / bm25f.most_of(nats), terms_of, frequency, nats)

    def _add(self, rows: Iterable[Sequence[Any]]) -> None:
        for status, expires_at, terms, content_terms, *columns in rows:
            traits = Traits(*columns)
            place = self._place[traits.pk] = len(self._ids)
            self._ids.append(traits.pk)
            self._traits[traits.pk] = traits
            until = expires_at.timestamp() if expires_at else math.inf
            self._alive_until.append(until if status == Status.ACTIVE else -math.inf)
            self._lengths.append(content_terms)
            name, description, content = (Counter(text.split()) for text in terms.split("\n"))
            for term in name.keys() | description.keys() | content.keys():
                posting = self._postings.get(term)
                if posting is None:
                    posting = self._postings[term] = _Posting()
                posting.places.append(place)
                fixed = NAME_WEIGHT * name[term] + DESCRIPTION_WEIGHT * description[term]
                posting.fixed.append(fixed)
                posting.times.append(content[term])
                self._size += 1

    def _drop(self, memory_ids: Iterable[int]) -> None:
        """Leave the places of memories behind as dead: postings are only ever added to."""
        for memory_id in memory_ids:
            place = self._place.pop(memory_id, None)
            if place is not None:
                self._alive_until[place] = -math.inf
                del self._traits[memory_id]


cache: ScopeCache[ScopePostings] = ScopeCache()
_asked: OrderedDict[Hashable, None] = OrderedDict()
_asked_lock = threading.Lock()


def of_scope(scope: Scope, kept: ScopeCache[ScopePostings] = cache) -> ScopePostings | None:
    """Return the scope's words as of its stamp, or later; None where the engine is to be asked.

    That is the first time in this process, since most scopes are asked once in a long while,
    always for a scope that is too large, be it for the cache or for the engine to rank all of
    it, and where others write at the same moment, so that what is here is not what `scope` counts.
    """
    key = (str(scope._state.db), scope.pk)
    if scope.memory_count > MAX_CANDIDATES or _largest(scope) > bound_bytes() // _CACHE_SHARE:
        kept.drop(key)
        return None
    known = kept.get(key)
    if known is None or known.stamp < scope.vector_stamp:
        if known is None and not _was_asked(key):
            return None
        if known is None or not known.renew(scope):
            known = ScopePostings(scope)
        kept.keep(key, known)
    return known if len(known) == scope.memory_count else None


def _largest(scope: Scope) -> int:
    """Return how much memory the contents' words take at most, before they are read."""
    return scope.content_terms * _POSTING_BYTES


def _was_asked(key: Hashable) -> bool:
    with _asked_lock:
        was_asked = key in _asked
        _asked[key] = None
        _asked.move_to_end(key)
        while len(_asked) > _REMEMBERED:
            _asked.popitem(last=False)
    return was_asked


def _rows(scope: Scope, memory_ids: Collection[int] | None = None) -> Iterable[Sequence[Any]]:
    memories = Memory.objects.of_scopes([scope]).filter(indexed__isnull=False)
    if memory_ids is not None:
        memories = memories.filter(pk__in=memory_ids)
    return memories.values_list(*_COLUMNS)


def _integers(values: array[int]) -> NDArray[np.int32]:
    return np.frombuffer(values, dtype=np.int32)


def _numbers(values: array[float]) -> Floats:
    return np.frombuffer(values)


def _joined(arrays: Sequence[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0, kind)
