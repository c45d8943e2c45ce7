"""What is measured of an answer, and means of it over questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


def recall_at(k: int) -> Callable[[Sequence[str], frozenset[str]], float]:
    """Return the metric: the share of the relevant that is among the first k."""

    def recall(ranked: Sequence[str], relevant: frozenset[str]) -> float:
        return len(relevant.intersection(ranked[:k])) / len(relevant) if relevant else 0.0

    return recall


def reciprocal_rank(ranked: Sequence[str], relevant: frozenset[str]) -> float:
    """Return 1 / rank of the first relevant among the first ten, or 0."""
    ranks = (rank for rank, found in enumerate(ranked[:10], 1) if found in relevant)
    return 1 / next(ranks, math.inf)


def discounted_gain(ranked: Sequence[str], relevant: frozenset[str]) -> float:
    """Return nDCG@10 (Järvelin and Kekäläinen, TOIS 2002), binary relevance."""
    if not relevant:
        return 0.0
    gain = sum(1 / math.log2(i + 2) for i, found in enumerate(ranked[:10]) if found in relevant)
    return gain / sum(1 / math.log2(i + 2) for i in range(min(len(relevant), 10)))


METRICS: dict[str, Callable[[Sequence[str], frozenset[str]], float]] = {
    "recall@5": recall_at(5),
    "recall@10": recall_at(10),
    "MRR@10": reciprocal_rank,
    "nDCG@10": discounted_gain,
}
"""Of all that is ranked, whatever its score."""
GIVEN = ("precision", "recall")
"""Of what reaches the threshold, at most ten: how much is relevant, how much of that is there."""
SILENCE = ("silent", "silent elsewhere")
"""How many questions get no answer at the threshold: asked where they belong, and elsewhere."""
SHARES = (*METRICS, *GIVEN, *SILENCE)


@dataclass(slots=True)
class Mean:
    """A mean that grows; None of nothing."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        """Count one more value."""
        self.total += value
        self.count += 1

    @property
    def value(self) -> float | None:
        """Return the mean."""
        return self.total / self.count if self.count else None


@dataclass(slots=True)
class Figures:
    """Means over `queries`, and how long each search took."""

    queries: int = 0
    _means: dict[str, Mean] = field(default_factory=lambda: {name: Mean() for name in SHARES})
    milliseconds: list[float] = field(default_factory=list)

    def add(self, ranked: Sequence[str], relevant: frozenset[str]) -> None:
        """Count one query's answer, best first, whatever the scores."""
        self.queries += 1
        for name, metric in METRICS.items():
            self._means[name].add(metric(ranked, relevant))

    def add_given(self, given: Sequence[str], relevant: frozenset[str]) -> None:
        """Count what a query is given at the threshold; of nothing there is no precision."""
        if given:
            self._means["precision"].add(len(relevant.intersection(given)) / len(given))
        self._means["recall"].add(recall_at(len(given))(given, relevant))
        self._means["silent"].add(not given)

    def add_elsewhere(self, *, is_silent: bool) -> None:
        """Count what a query got in a scope that does not hold its answer."""
        self._means["silent elsewhere"].add(is_silent)

    def means(self) -> dict[str, float | None]:
        """Return the mean of every share, and the times; None for what was not measured."""
        found = {name: mean.value for name, mean in self._means.items()}
        return found | {"p50 ms": percentile(self.milliseconds, 50)} | {
            "p95 ms": percentile(self.milliseconds, 95)
        }  # fmt: skip


def percentile(values: Sequence[float], percent: int) -> float | None:
    """Return the smallest value that `percent` of all do not exceed; None of nothing."""
    return sorted(values)[max(math.ceil(len(values) * percent / 100), 1) - 1] if values else None


def mean_of(rows: Sequence[dict[str, float | None]]) -> dict[str, float | None]:
    """Return the mean of each figure over the rows that have it."""
    means: dict[str, Mean] = {}
    for row in rows:
        for name, value in row.items():
            mean = means.setdefault(name, Mean())
            if value is not None:
                mean.add(value)
    return {name: mean.value for name, mean in means.items()}
