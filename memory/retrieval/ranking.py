"""The order in which memories are given: by relevance, and by what speaks for them besides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import compress
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from memory import prepared
from memory.models import Memory
from memory.retrieval.calibration import KEPT_SHARE, STEEPNESS, from_log_odds, log_odds
from memory.retrieval.candidates import Wanted
from memory.retrieval.priors import least, most, priors
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


class _Row(NamedTuple):
    """The columns that priors look at."""

    pk: int
    created_at: datetime
    due_at: datetime | None
    importance: float
    pinned: bool
    access_count: int
    type: str


def contending(relevance: Floats, reach: int, spans: Sequence[Span]) -> int:
    """Return how many of the first in order priors could bring among the first `reach`."""
    if len(relevance) <= reach:
        return len(relevance)
    last = relevance[reach - 1] - (most(spans) - least()) / STEEPNESS
    return int(np.searchsorted(-relevance, -last, side="right"))


def page(wanted: Wanted, best: Sequence[Placed], spans: Sequence[Span]) -> list[Given]:
    """Return the memories up to the end of the page asked for and one more, with their scores.

    `best` are those that can come into it, in order; scores fall along it. No score is above what
    the best memory has without its neighbours: these tell where to look, not how well anything
    fits. Where the request `cuts`, the best alone is to reach the least score; what follows it is
    measured by it.
    """
    request, bar = wanted.request, log_odds(wanted.request.min_score)
    if not best or max(each.own for each in best) + most(spans) < bar:
        return []
    rows = _rows(wanted, [each.id for each in best])
    lifted = []
    for each in best:
        if row := rows.get(each.id):
            prior = sum(priors(row, spans, now=wanted.now).values())
            lifted.append((each.order + prior, row.created_at, each.id, each.own + prior, each))
    lifted.sort(key=itemgetter(0, 1, 2), reverse=True)
    cap = max((own for _, _, _, own, _ in lifted), default=-math.inf)
    if cap < bar:
        return []
    kept = [each for *_, each in lifted]
    scores = [from_log_odds(min(order, cap)) for order, *_ in lifted]
    if request.cuts:
        least_kept = KEPT_SHARE * kept[0].relevance  # 0 of what was found letter by letter
        is_kept = [each.relevance >= least_kept for each in kept]
    else:
        is_kept = [score >= request.min_score for score in scores]
    given = [Given(each.id, score) for each, score in zip(kept, scores, strict=True)]
    return list(compress(given, is_kept))[: request.reach]


def scored(best: Sequence[Placed], count: int) -> list[Given]:
    """Return the first few with their scores, without priors."""
    cap = max((each.own for each in best), default=0.0)
    return [Given(each.id, from_log_odds(min(each.order, cap))) for each in best[:count]]


def _rows(wanted: Wanted, ids: list[int]) -> dict[int, _Row]:
    if not ids:
        return {}
    alias = wanted.alias

    def build(*ids: int) -> Any:
        return Memory.objects.using(alias).filter(pk__in=ids).values_list(*_Row._fields)

    # the query has one shape for every fifty: the last id fills the list up
    filled = [*ids, *ids[-1:] * (-len(ids) % _PADDED)]
    rows = prepared.run(("priors", len(filled)), build, filled, alias)
    return {row[0]: _Row(*row) for row in rows}
