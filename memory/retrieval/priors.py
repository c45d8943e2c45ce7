"""What speaks for a memory besides words and meaning: small terms in log-odds.

They order likes; none is a match by itself. All are 0 or nearly so for a usual memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from memory.models import Memory, MemoryType
from memory.retrieval.calibration import from_log_odds, log_odds
from memory.understanding.times import Span, preference

RECENCY, HALF_LIFE_DAYS = 0.05, 90
IMPORTANCE, USUAL_IMPORTANCE = 0.1, 0.5
PINNED = 0.1
USE, USED_OFTEN = 0.05, 100
TYPES: Mapping[str, float] = {MemoryType.FEEDBACK: 0.05, MemoryType.USER: 0.02}
"""How the agent is to work, and who the user is, matter whatever is talked about."""
TIME = 0.5
"""What a memory gets that is of the time that the query names."""
LEAST = -IMPORTANCE * USUAL_IMPORTANCE
"""No memory's terms fall below it."""


class Traits(NamedTuple):
    """The columns that the terms look at; `writing` tells caches of their changes."""

    pk: int
    created_at: datetime
    due_at: datetime | None
    importance: float
    pinned: bool
    type: str


def priors(memory: Traits | Memory, spans: Sequence[Span], *, now: datetime) -> dict[str, float]:
    """Return each term but `use` by its name, those that add nothing left out.

    recency: halves in 90 days. importance: from -0.05 to 0.05. pinned. type. time: of `spans`,
    by when the memory was made or is due.
    """
    age_days = max((now - memory.created_at).total_seconds() / 86_400, 0.0)
    terms = {
        "recency": RECENCY * 0.5 ** (age_days / HALF_LIFE_DAYS),
        "importance": IMPORTANCE * (memory.importance - USUAL_IMPORTANCE),
        "pinned": PINNED * memory.pinned,
        "type": TYPES.get(memory.type, 0.0),
    }
    if spans:
        moments = [memory.created_at, *([memory.due_at] if memory.due_at else [])]
        terms["time"] = TIME * max(preference(spans, moment) for moment in moments)
    return {name: value for name, value in terms.items() if value}


def use(access_count: int) -> float:
    """Return what its recalls add to a memory: by their logarithm, up to a hundred."""
    return USE * min(math.log1p(access_count) / math.log1p(USED_OFTEN), 1.0)


def most(spans: Sequence[Span]) -> float:
    """Return what no memory's terms exceed."""
    of_time = TIME if spans else 0.0
    return (
        RECENCY + IMPORTANCE * (1 - USUAL_IMPORTANCE) + PINNED + USE + max(TYPES.values()) + of_time
    )


def lifted(score: float, terms: Mapping[str, float]) -> float:
    """Return a score with its terms."""
    return from_log_odds(log_odds(score) + sum(terms.values()))
