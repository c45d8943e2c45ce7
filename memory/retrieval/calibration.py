"""From relevance to a score in [0, 1] that tells a hit from noise.

`doubt` is taken off the relevance first: a property of the query in its scope, so the order
stays. The logistic was fitted so that the score says how likely the query was asked of the
scope that knows of it, as far as one memory tells (docs/retrieval.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

MIN_SCORE = 0.28
"""Below it a hit is noise, by words alone as with meaning."""
KEPT_SHARE = 0.35
"""Where noise is to be left out, what has less than this of the best one's relevance is noise."""
WORDS_ALONE = 0.07
"""What the missing meaning is worth, so that one threshold does for both."""
STEEPNESS, _MIDDLE = 13.2, 0.229
_LENGTH, _USUAL_NATS, _FEW_NATS = 0.015, 20.0, 5.0
_UNKNOWN, _KNOWN = 0.3, 0.1
_SMALL, _SMALL_SCOPE = 0.03, 10


def doubt(nats: float, names_known: Sequence[bool]) -> float:
    """Return what speaks against a query's belonging to a scope.

    `nats`, all that the query asks for: much finds something anywhere. `names_known` says of each
    proper name in it whether the scope holds it: one that nobody spoke of is the strongest sign.
    """
    known = sum(names_known)
    unknown = len(names_known) - known
    return (
        _LENGTH * math.log(max(nats, _FEW_NATS) / _USUAL_NATS)
        + _UNKNOWN * unknown / (1 + unknown)
        - _KNOWN * known / (1 + known)
    )


def leniency(memory_count: int) -> float:
    """Return what a scope of a few memories is allowed: there is little to compare with."""
    return _SMALL * max(0.0, math.log(_SMALL_SCOPE / max(memory_count, 1)))


def evidence_of(relevance: float) -> float:
    """Return the log-odds of a relevance from which doubt was taken."""
    return STEEPNESS * (relevance - _MIDDLE)


def log_odds(score: float) -> float:
    """Return ln(p / (1 - p)), of 0 and 1 the infinities."""
    if score <= 0:
        return -math.inf
    return math.inf if score >= 1 else math.log(score / (1 - score))


def from_log_odds(value: float) -> float:
    """Return the score in [0, 1] of log-odds."""
    # of a large negative value the other form overflows
    if value < 0:
        return math.exp(value) / (1 + math.exp(value))
    return 1 / (1 + math.exp(-value))
