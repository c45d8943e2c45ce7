"""The order in which memories are given: by relevance, and by what speaks for them besides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
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
    """A memory's place in the order, and what its score is made of; both in log-odds.

    They differ where the memory is lifted by its neighbours: that tells where to look, not how
    well anything fits.
    """

    id: int
    order: float
    evidence: float
    relevance: float = 0.0

    @property
    def score(self) -> float:
        """Return the score in [0, 1]."""
        return from_log_odds(self.evidence)


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


def page(wanted: Wanted, best: Sequence[Placed], spans: Sequence[Span]) -> list[Placed]:
    """Return the memories up to the end of the page asked for and one more, with their priors.

    `best` are those that can come into it, in order. Only what can come to the least score is
    looked up. Where the request `cuts`, the best alone is to reach that score; what follows it is
    measured by it.
    """
    if not best:
        return []
    request, bar = wanted.request, log_odds(wanted.request.min_score) - most(spans)
    if request.cuts and max(each.evidence for each in best) >= bar:
        bar = -math.inf
    contenders = [each for each in best if each.evidence >= bar]
    rows = _rows(wanted, [each.id for each in contenders])
    lifted = []
    for each in contenders:
        if row := rows.get(each.id):
            prior = sum(priors(row, spans, now=wanted.now).values())
            with_prior = each._replace(order=each.order + prior, evidence=each.evidence + prior)
            lifted.append((with_prior.order, row.created_at, with_prior))
    lifted.sort(key=lambda one: (one[0], one[1], one[2].id), reverse=True)
    kept = [each for _, _, each in lifted]
    if request.cuts:
        return _cut(kept, request.min_score)[: request.reach]
    return [each for each in kept if each.score >= request.min_score][: request.reach]


def _cut(kept: list[Placed], min_score: float) -> list[Placed]:
    """Return what comes before the last good hit, or nothing where the best is noise."""
    if not kept or max(each.score for each in kept) < min_score:
        return []
    least = KEPT_SHARE * kept[0].relevance  # 0 of what was found letter by letter
    return [each for each in kept if each.relevance >= least]


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
