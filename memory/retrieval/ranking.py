"""The order in which memories are given: by score, and by what speaks for them besides."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from memory import prepared
from memory.models import Memory
from memory.retrieval.bm25f import Ranked
from memory.retrieval.calibration import log_odds
from memory.retrieval.candidates import Wanted
from memory.retrieval.priors import least, lifted, most, priors
from memory.understanding.times import Span

_PADDED = 50


class _Row(NamedTuple):
    """The columns that priors look at."""

    pk: int
    created_at: datetime
    due_at: datetime | None
    importance: float
    pinned: bool
    access_count: int
    type: str


def page(wanted: Wanted, best: Sequence[Ranked], spans: Sequence[Span]) -> list[Ranked]:
    """Return the memories up to the end of the page asked for and one more, with their priors.

    `best` is in order of its scores. Only those that priors could bring into the page are looked
    up, and those that could come to the least score.
    """
    request, span = wanted.request, most(spans) - least()
    if not best:
        return []
    last = log_odds(best[min(request.reach, len(best)) - 1].score)
    bar = max(last - span, log_odds(request.min_score) - most(spans))
    contenders = [each for each in best if log_odds(each.score) >= bar]
    rows = _rows(wanted, [each.id for each in contenders])
    with_priors = [
        (lifted(each.score, priors(row, spans, now=wanted.now)), row.created_at, each)
        for each in contenders
        if (row := rows.get(each.id))
    ]
    with_priors.sort(key=lambda one: (one[0], one[1], one[2].id), reverse=True)
    return [
        each._replace(score=score)
        for score, _, each in with_priors[: request.reach]
        if score >= request.min_score
    ]


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
