"""On which days a memory was recalled, and how often: ten characters a day, the newest first.

A column of the memory itself: noting a recall stays one statement, and a copy takes it along.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from django.db.models import Case, CharField, F, IntegerField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Concat, Least, Left, LPad, Substr

MAX_DAYS = 30
MAX_CHARS = MAX_DAYS * 10
_MOST = 9_999


def noted(now: datetime) -> Combinable:
    """Return the new value of `recall_log` after one more recall at `now`, for an update."""
    today = f"{now.date().toordinal():06}"
    log = F("recall_log")
    count = Least(Cast(Substr(log, 7, 4), IntegerField()) + 1, Value(_MOST))
    again = Concat(Value(today), LPad(Cast(count, CharField()), 4, Value("0")), Substr(log, 11))
    first = Left(Concat(Value(f"{today}0001"), log), MAX_CHARS)
    return Case(When(recall_log__startswith=today, then=again), default=first)


def days_of(log: str) -> dict[date, int]:
    """Return how often the memory was recalled on each of its last `MAX_DAYS` days with any."""
    return {
        date.fromordinal(int(log[place : place + 6])): int(log[place + 6 : place + 10])
        for place in range(0, len(log), 10)
    }


def log_of(days: Mapping[date, int]) -> str:
    """Return the log of days with their counts; the newest `MAX_DAYS` of them."""
    newest = sorted(days.items(), reverse=True)[:MAX_DAYS]
    return "".join(f"{day.toordinal():06}{min(count, _MOST):04}" for day, count in newest)
