"""Figures over days as bars that a page draws in SVG."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from memory import recall_log
from memory.models import Memory

DAYS = 30
HEIGHT = 48
_STEP = 10


@dataclass(frozen=True, slots=True)
class Bar:
    """One day: its count, and where its bar stands in a picture of `HEIGHT`."""

    day: date
    count: int
    x: int
    y: float
    height: float


def recall_bars(memory: Memory, *, today: date) -> list[Bar]:
    """Return how often a memory was recalled on each of the last `DAYS` days, oldest first."""
    counts = recall_log.days_of(memory.recall_log)
    days = [today - timedelta(days=age) for age in reversed(range(DAYS))]
    most = max((counts.get(day, 0) for day in days), default=0) or 1
    bars = []
    for place, day in enumerate(days):
        count = counts.get(day, 0)
        height = round(max(HEIGHT * count / most, 2 if count else 1), 1)
        bars.append(Bar(day, count, place * _STEP, HEIGHT - height, height))
    return bars
