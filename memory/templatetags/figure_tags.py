"""Figures and jobs in the words of a page."""

from __future__ import annotations

from django import template
from django.utils.formats import number_format

from memory import latency
from memory.services.figures import sums
from memory.services.figures.sums import Day

register = template.Library()


@register.filter
def percent(share: float | None) -> str:
    """Return a share in whole percent: 0 and 100 only where it is exactly that."""
    if share is None:
        return "–"
    whole = round(share * 100)
    return str(min(max(whole, 1), 99) if 0 < share < 1 else whole)


@register.filter
def short(number: int) -> str:
    """Return a number in at most four signs, for the axis of a chart: 800, 12k, 3.5M."""
    for unit, sign in ((1_000_000, "M"), (10_000, "k")):
        if number >= unit:
            return f"{number / (1_000 if sign == 'k' else unit):g}{sign}"
    return str(number)


@register.filter
def in_ms(milliseconds: float | None) -> str:
    """Return milliseconds without the unit: whole ones from ten on, else with one decimal."""
    if milliseconds is None:
        return "–"
    if milliseconds >= latency.LONGEST_MS:
        return "> 1000"
    return number_format(milliseconds, 0 if milliseconds >= 10 else 1)


@register.filter
def answered_of(day: Day) -> float | None:
    """Return the share of a day's recalls that found something."""
    return sums.share_answered(day)


@register.filter
def saved_of(day: Day) -> int:
    """Return how many memories were saved on a day."""
    return sums.saved(day)
