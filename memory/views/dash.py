"""Tiles and charts of figures: the same on the overview and on an agent's own page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.conf import settings

from agents.models import Agent
from memory.charts import Spark, chart, spark
from memory.models import MemoryType
from memory.services.figures import sums
from memory.services.figures.counting import day_of
from memory.services.figures.sums import RECENT_DAYS, Day, Figures

RANGES = (7, 30, 90)
"""How many days can be looked at."""
_WEEK = 7


@dataclass(frozen=True, slots=True)
class Span:
    """The days that are shown, up to today."""

    first: date
    today: date

    @classmethod
    def until(cls, now: datetime, days: int) -> Span:
        """Return so many days, the last of them today by the server's TIME_ZONE."""
        today = day_of(now)
        return cls(today - timedelta(days=days - 1), today)

    @property
    def earliest(self) -> date:
        """Return the first day that is needed: today is compared with the week before it."""
        return min(self.first, self.today - timedelta(days=_WEEK))

    def recent_spark(self, found: Figures, agent: Agent) -> Spark | None:
        """Return an agent's recalls on each of the last `RECENT_DAYS` as a line."""
        days = found.recent.get(agent.pk, {})
        ages = reversed(range(RECENT_DAYS))
        dates = [self.today - timedelta(days=age) for age in ages]
        return spark([days[each]["recalls"] if each in days else 0 for each in dates])


def figures_context(found: Figures, span: Span) -> dict[str, Any]:
    """Return what the tiles, the chart and its table show."""
    days = [(each, day) for each, day in found.all_days() if each >= span.first]
    since = max(found.counted_since(), span.first)
    counted = [(each, day) for each, day in days if each >= since]
    whole = sums.total(day for _, day in counted)
    growth = sums.growth(sums.total(day for _, day in found.all_days()[-_WEEK:]))
    week = [day for each, day in found.all_days()[-_WEEK - 1 : -1] if each >= since]

    def line(value: Callable[[Day], float | None]) -> Spark | None:
        return spark([value(day) for _, day in counted])

    return {
        "span": span,
        "zone": settings.TIME_ZONE,
        "ranges": RANGES,
        "kinds": MemoryType.values,
        "silent": sorted(found.silent),
        "since": since if since > span.first else None,
        "chart": chart(days, since=since),
        "table": list(reversed(counted)),
        "whole": whole,
        "memories": sum(found.memories.values()),
        "growth": growth,
        "shrinkage": -growth,
        "memories_spark": spark(_totals(found, [day for _, day in counted])),
        "recalls_today": found.days[span.today]["recalls"],
        "recalls_a_day": sums.total(week)["recalls"] / len(week) if week else None,
        "recalls_spark": line(lambda day: day["recalls"]),
        "answered": sums.share_answered(whole),
        "answered_spark": line(sums.share_answered),
        "prefetches": sums.prefetches(whole),
        "p50": sums.prefetch_ms(whole, 0.5),
        "p95": sums.prefetch_ms(whole, 0.95),
        "p95_spark": line(lambda day: sums.prefetch_ms(day, 0.95)),
    }


def _totals(found: Figures, days: list[Day]) -> list[float | None]:
    """Return how many memories there were at the end of each day, reckoned back from now."""
    left, totals = sum(found.memories.values()), []
    for day in reversed(days):
        totals.append(max(left, 0))
        left -= sums.growth(day)
    return list(reversed(totals))
