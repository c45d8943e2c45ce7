"""The order in which memories are given: by relevance, and by what speaks for them besides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np

from memory import prepared
from memory.models import Memory
from memory.retrieval.calibration import KEPT_SHARE, STEEPNESS, from_log_odds, log_odds
from memory.retrieval.candidates import SearchRequest, Wanted
from memory.retrieval.priors import LEAST, USE, Traits, most, priors, use
from memory.retrieval.vectors import Floats
from memory.understanding.times import Span

_PADDED = 50


class Placed(NamedTuple):
    """A memory's place in the order, and what it has without its neighbours; both in log-odds."""

    id: int
    order: float
    own: float
    relevance: float = 0.0


class Given(NamedTuple):
    """A memory that is given, and its score."""

    id: int
    score: float


def contending(relevance: Floats, reach: int, spans: Sequence[Span]) -> int:
    """Return how many of the first in order priors could bring among the first `reach`."""
    if len(relevance) <= reach:
        return len(relevance)
    last = relevance[reach - 1] - (most(spans) - LEAST) / STEEPNESS
    return int(np.searchsorted(-relevance, -last, side="right"))


def shortlist(
    wanted: Wanted,
    best: Sequence[Placed],
    spans: Sequence[Span],
    known: Callable[[Iterable[int]], Mapping[int, Traits]] | None,
) -> list[Placed]:
    """Return, with their priors, those that may be on the page; what their use adds is not known.

    `best` are those that can come into it, in order. Nothing where none comes to the least score.
    """
    bar = log_odds(wanted.request.min_score)
    if not best or max(each.own for each in best) + most(spans) < bar:
        return []
    ids = [each.id for each in best]
    traits = known(ids) if known else _traits(wanted, ids)
    lifted = []
    for each in best:
        if one := traits.get(each.id):
            prior = sum(priors(one, spans, now=wanted.now).values())
            lifted.append(each._replace(order=each.order + prior, own=each.own + prior))
    lifted.sort(key=attrgetter("order"), reverse=True)
    if max((each.own for each in lifted), default=-math.inf) + USE < bar:
        return []
    last = lifted[min(wanted.request.reach, len(lifted)) - 1].order - USE
    return [each for each in lifted if each.order >= last]


def page(
    request: SearchRequest, listed: Sequence[Placed], memories: Mapping[int, Memory]
) -> list[Given]:
    """Return the memories up to the end of the page and one more; scores fall, ties by newest.

    No score is above what the best memory has without its neighbours: these tell where to look,
    not how well anything fits. Where the request `cuts`, the best alone is to reach the least
    score; what follows it is measured by it.
    """
    found = []
    for each in listed:
        if memory := memories.get(each.id):
            added = use(memory.access_count)
            found.append((each.order + added, memory.created_at, each.id, each.own + added, each))
    found.sort(key=itemgetter(0, 1, 2), reverse=True)
    cap = max((own for *_, own, _ in found), default=-math.inf)
    if from_log_odds(cap) < request.min_score:
        return []
    # 0 of what was found letter by letter
    least_kept = KEPT_SHARE * found[0][-1].relevance if found else 0.0
    given = []
    for order, _created, pk, _own, each in found:
        score = from_log_odds(min(order, cap))
        if each.relevance >= least_kept if request.cuts else score >= request.min_score:
            given.append(Given(pk, score))
    return given[: request.reach]


def scored(best: Sequence[Placed], count: int) -> list[Given]:
    """Return the first few with their scores, without priors."""
    cap = max((each.own for each in best), default=0.0)
    return [Given(each.id, from_log_odds(min(each.order, cap))) for each in best[:count]]


def _traits(wanted: Wanted, ids: list[int]) -> dict[int, Traits]:
    alias = wanted.alias

    def build(*ids: int) -> Any:
        return Memory.objects.using(alias).filter(pk__in=ids).values_list(*Traits._fields)

    # the query has one shape for every fifty: the last id fills the list up
    filled = [*ids, *ids[-1:] * (-len(ids) % _PADDED)]
    rows = prepared.run(("traits", len(filled)), build, filled, alias)
    return {row[0]: Traits(*row) for row in rows}
