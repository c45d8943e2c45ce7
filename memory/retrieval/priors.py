"""What speaks for a memory whatever is asked: small terms, in log-odds, that order likes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime

from memory.models import Memory, MemoryType
from memory.retrieval.calibration import from_log_odds, log_odds

RECENCY, HALF_LIFE_DAYS = 0.1, 90
IMPORTANCE, USUAL_IMPORTANCE, PINNED = 0.3, 0.5, 0.3
USE, USED_OFTEN = 0.1, 100
TYPES: Mapping[str, float] = {MemoryType.FEEDBACK: 0.1, MemoryType.USER: 0.05}
"""How the agent is to work, and who the user is, matter whatever is talked about."""
MOST = RECENCY + IMPORTANCE / 2 + PINNED + USE + max(TYPES.values())
"""No memory gets more."""


def priors(memory: Memory, *, now: datetime) -> dict[str, float]:
    """Return each term by its name, those that add nothing left out.

    recency: halves in 90 days. importance: from -0.15 to 0.15. pinned. use: grows with the
    logarithm of the recalls, up to a hundred. type.
    """
    age_days = max((now - memory.created_at).total_seconds() / 86_400, 0.0)
    used = min(math.log1p(memory.access_count) / math.log1p(USED_OFTEN), 1.0)
    terms = {
        "recency": RECENCY * 0.5 ** (age_days / HALF_LIFE_DAYS),
        "importance": IMPORTANCE * (memory.importance - USUAL_IMPORTANCE),
        "pinned": PINNED * memory.pinned,
        "use": USE * used,
        "type": TYPES.get(memory.type, 0.0),
    }
    return {name: value for name, value in terms.items() if value}


def lifted(score: float, terms: Mapping[str, float]) -> float:
    """Return a score with its terms."""
    return from_log_odds(log_odds(score) + sum(terms.values()))
