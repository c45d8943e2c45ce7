"""From relevance to a score in [0, 1], and the score below which there is only noise."""

from __future__ import annotations

import math

MIN_SCORE = 0.22
"""What is silent by default, the same number by words and by meaning (docs/retrieval.md)."""
_STEEPNESS = 8.0
_LEAST_RELEVANCE = 0.3
"""The relevance whose score is `MIN_SCORE`, and how fast scores rise there."""


def score_of(relevance: float) -> float:
    """Return the score of a hybrid relevance: logistic, so it ranks alike."""
    return from_log_odds(_STEEPNESS * (relevance - _LEAST_RELEVANCE) + log_odds(MIN_SCORE))


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
