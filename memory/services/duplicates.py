"""What is remembered already of what a text says: word for word, or something like it.

A save, the pages and consolidation ask the same two questions. Neither costs more in a larger
scope or table: every statement reads by an index and stops at a bound.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
from django.db import DatabaseError
from numpy.typing import NDArray

from memory import fts, prepared
from memory.analyzer import encode_term, fold, query_terms, scope_key
from memory.indexing import content_digest
from memory.llm.embeddings import EmbeddedModel
from memory.models import Memory, MemoryVector, Scope
from memory.querysets import MemoryQuerySet
from memory.retrieval import embedder, likeness

logger = logging.getLogger(__name__)

SOUGHT = 8
"""Terms of a text that are looked up; those of long words say most."""
HOLDERS = 40
"""A term that more memories hold is common there, and nobody is found by it."""
READ = 8
"""Memories that are compared."""
_DIGESTED = 20
_LEAST_WEIGHT = 0.35
_LEAST_VOTES, _BESIDE_BEST = 0.3, 0.5
"""Who holds less than this of the rare terms, by information, or of what the best one holds,
shares a word by chance: to compare texts costs more than to find them."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A memory that says what a text says, and how much of it, from `likeness.SIMILAR` to 1.

    `is_exact` where they differ in case, width, stops, quotes and spaces at most, `is_same`
    where the text says nothing new, in nearly the same words; a likeness of 1 is neither by
    itself.
    """

    memory: Memory
    likeness: float
    is_exact: bool = False
    is_same: bool = False


class _Text:
    """What is looked for: its parts are made once, however many scopes are looked through."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.digest = content_digest(content)

    @cached_property
    def wording(self) -> likeness.Wording:
        return likeness.wording(self.content)

    @cached_property
    def vector(self) -> NDArray[np.float32] | None:
        """What the model that comes with Hippo makes of it; nobody waits for a server's."""
        model = embedder.current()
        return model.embed([self.content])[0] if isinstance(model, EmbeddedModel) else None


def find(
    scope: Scope,
    content: str,
    *,
    now: datetime,
    limit: int = 3,
    exclude: int | None = None,
    by_meaning: bool = False,
) -> tuple[Duplicate, ...]:
    """Return lasting memories of a scope that say what `content` says, likest first.

    Ties go to the oldest. At most five statements, whatever the scope holds.
    `exclude` is the id of the memory that has the content, where one has. `by_meaning` also
    compares vectors: those that are stored, and the content's own where none need wait for it.
    """
    return find_in([scope], content, now=now, limit=limit, exclude=exclude, by_meaning=by_meaning)


def find_in(
    scopes: Iterable[Scope],
    content: str,
    *,
    now: datetime,
    limit: int = 3,
    exclude: int | None = None,
    by_meaning: bool = False,
) -> tuple[Duplicate, ...]:
    """Return those of several scopes, as `find` does of one; the content is read once."""
    if not fold(content):
        return ()
    text = _Text(content)
    found: list[Duplicate] = []
    for scope in scopes:
        exact = find_exact(scope, content, now=now, digest=text.digest)
        exact = [each for each in exact if each.pk != exclude][:limit]
        found += [Duplicate(each, 1.0, is_exact=True, is_same=True) for each in exact]
        if len(exact) == limit:
            continue
        skipped = {each.pk for each in exact} | ({exclude} if exclude else set())
        memories = _candidates(scope, text.wording.terms, skipped, now=now)
        cosines = _cosines(scope, text, memories, exclude) if by_meaning else {}
        compared = (_compared(text.wording, each, cosines.get(each.pk)) for each in memories)
        found += [each for each in compared if each.likeness >= likeness.SIMILAR]
    return tuple(
        heapq.nlargest(
            limit,
            found,
            key=lambda each: (each.is_exact, each.is_same, each.likeness, -each.memory.pk),
        )
    )


def beside(memory: Memory, *, now: datetime) -> tuple[Duplicate, ...]:
    """Return what else says what a memory says that was saved just now.

    Nothing where the store does not answer any more: the memory is saved, and a caller that took
    it for failed would save it again.
    """
    try:
        return find(memory.scope, memory.content, exclude=memory.pk, now=now)
    except DatabaseError as error:
        logger.warning("memory %s is saved; its duplicates are not known: %s", memory.pk, error)
        return ()


def find_exact(
    scope: Scope, content: str, *, now: datetime, digest: str | None = None
) -> list[Memory]:
    """Return lasting memories of a scope with this content, apart from its spelling; oldest first.

    One statement by an index. What differs in spaces, stops, quotes, case and width is the same,
    and so is a traditional character and its simplified one.
    """
    alias = str(scope._state.db)

    def build(scope_id: int, digest: str, now: datetime) -> MemoryQuerySet:
        memories = Memory.objects.using(alias).lasting(now)
        held = memories.filter(embedded__scope_id=scope_id, embedded__digest=digest)
        return held.order_by("pk")[:_DIGESTED]

    values = (scope.pk, digest or content_digest(content), now)
    rows = prepared.run("of digest", build, values, alias)
    equal = prepared.instances(Memory, rows, alias)
    # the digest leaves out every sign, and C++ is not C#, 1.5 not 15
    return [memory for memory in equal if likeness.is_exact(content, memory.content)]


def adds_nothing(name: str, memory: Memory) -> bool:
    """Return whether a name says nothing that a memory does not: `office` for one in the office.

    Two memories may have one content, "blue", and only their names tell what of.
    """
    known = query_terms(f"{memory.name}\n{memory.content}")
    return query_terms(name).keys() <= known.keys()


def _candidates(
    scope: Scope, weights: Mapping[str, float], skipped: set[int], *, now: datetime
) -> list[Memory]:
    """Return at most `READ` lasting memories: those that hold most of the text's rare terms.

    Where the text's terms are common in the scope, those are the newest.
    """
    alias = str(scope._state.db)
    key = scope_key(scope.pk)
    terms = [encode_term(term, key) for term in _telling(weights)]
    held = fts.holders(terms, alias, HOLDERS + 1)
    rare = [set(ids) - skipped for ids in held.values() if len(ids) <= HOLDERS]
    votes: defaultdict[int, float] = defaultdict(float)
    least = 0.0
    for holders in filter(None, rare):
        gain = math.log(1 + (scope.memory_count + 1) / len(holders))
        least += _LEAST_VOTES * gain
        for memory_id in holders:
            votes[memory_id] += gain
    least = max(least, _BESIDE_BEST * max(votes.values(), default=0.0))
    likely = (each for each, gain in votes.items() if gain >= least)
    ids = heapq.nlargest(READ, likely, key=lambda each: (votes[each], each))
    is_common = len(rare) * 2 <= len(terms)
    if is_common and len(ids) < READ:
        newest = _newest(scope, now=now)
        ids += [each for each in newest if each not in skipped.union(ids)][: READ - len(ids)]
    return _memories(scope, ids, now=now)


def _telling(weights: Mapping[str, float]) -> list[str]:
    """Return at most `SOUGHT` of a text's terms, by which memories like it are found.

    Half of them are the longest, which tend to be rare; the others stand evenly in the text, so
    that no change of one place leaves nothing to find it by.
    """
    telling = [t for t, w in weights.items() if w >= _LEAST_WEIGHT and not t.endswith("~")]
    telling = telling or list(weights)
    if len(telling) <= SOUGHT:
        return telling
    longest = heapq.nlargest(SOUGHT // 2, telling, key=lambda term: (weights[term], len(term)))
    others = [term for term in telling if term not in longest]
    step = len(others) / (SOUGHT - len(longest))
    return longest + [others[int(place * step)] for place in range(SOUGHT - len(longest))]


def _newest(scope: Scope, *, now: datetime) -> list[int]:
    alias = str(scope._state.db)

    def build(scope_id: int) -> MemoryQuerySet:
        newest = Memory.objects.using(alias).filter(scope_id=scope_id, status="active")
        return newest.newest_first().values_list("pk")[: 2 * READ]  # type: ignore[return-value]

    return [row[0] for row in prepared.run("newest", build, (scope.pk,), alias)]


def _memories(scope: Scope, ids: Sequence[int], *, now: datetime) -> list[Memory]:
    """Return those of the ids that are lasting memories of the scope; one statement."""
    if not ids:
        return []
    alias = str(scope._state.db)

    def build(scope_id: int, now: datetime, *ids: int) -> MemoryQuerySet:
        found = Memory.objects.using(alias).lasting(now)
        return found.filter(scope_id=scope_id, pk__in=ids)

    # one shape of the query: the last id fills the list up
    filled = [*ids, *[ids[-1]] * (READ - len(ids))]
    rows = prepared.run("likely", build, (scope.pk, now, *filled), alias)
    return prepared.instances(Memory, rows, alias)


def _compared(wanted: likeness.Wording, memory: Memory, cosine: float | None = None) -> Duplicate:
    """Return how much a memory says of what is wanted; the mean of words and meaning."""
    said = likeness.wording(memory.content)
    share = likeness.by_words(wanted, said)
    is_same = likeness.is_same(wanted, said)
    if cosine is not None and not is_same:
        share = (share + max(cosine, 0.0)) / 2
    return Duplicate(memory, share, is_same=is_same)


def _cosines(
    scope: Scope, text: _Text, memories: Iterable[Memory], own: int | None
) -> Mapping[int, float]:
    """Return the cosine of the content's vector with that of each memory that has one."""
    model = embedder.current()
    ids = [memory.pk for memory in memories]
    if model is None or not ids:
        return {}
    stored = MemoryVector.objects.of_scope(scope).filter(model=model.model)
    rows = stored.filter(memory_id__in=[*ids, *([own] if own else [])])
    vectors = {
        row.memory_id: (row.digest, np.frombuffer(row.vector, dtype="<f2").astype(np.float32))
        for row in rows
    }
    digest, kept = vectors.get(own or 0, ("", None))
    mine = kept if digest == text.digest else text.vector
    if mine is None:
        return {}
    return {
        each: float(mine @ vector)
        for each in ids
        if each in vectors and len(vector := vectors[each][1]) == len(mine)
    }
