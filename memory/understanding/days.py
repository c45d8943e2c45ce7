"""Stretches of the calendar, as people name them: a day, a week, a month, a season."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple

FIRST_YEAR, LAST_YEAR = 1900, 2999
_COMING = timedelta(days=60)
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month that each begins in, on the northern half of the earth."""


class Days(NamedTuple):
    """The days from `first` up to `end`, which is not among them."""

    first: date
    end: date


def day(first: date, length: int = 1) -> Days:
    """Return so many days from `first` on."""
    return Days(first, first + timedelta(days=length))


def week(today: date, shift: int = 0) -> Days:
    """Return the week of `today`, from Monday on, or one `shift` weeks later."""
    return day(today + timedelta(days=7 * shift - today.weekday()), 7)


def weekend(today: date, shift: int = 0) -> Days:
    """Return the Saturday and Sunday of that week."""
    return day(week(today, shift).first + timedelta(days=5), 2)


def weekday(today: date, number: int, shift: int = 0) -> Days:
    """Return a day of the week of `today`, or of one later; Monday is 0."""
    return day(week(today, shift).first + timedelta(days=number))


def latest_weekday(today: date, number: int) -> Days:
    """Return the latest such day up to `today`."""
    return day(today - timedelta(days=(today.weekday() - number) % 7))


def month(year: int, number: int, length: int = 1) -> Days:
    """Return so many months; a `number` past 12 or before 1 is one of another year."""
    first, end = number - 1, number - 1 + length
    return Days(
        date(year + first // 12, first % 12 + 1, 1), date(year + end // 12, end % 12 + 1, 1)
    )


def quarter(year: int, number: int) -> Days:
    """Return a quarter; number 0 is the last one of the year before."""
    return month(year, 3 * number - 2, 3)


def season(year: int, name: str) -> Days:
    """Return the season that begins in `year`."""
    return month(year, SEASONS[name], 3)


def whole_year(number: int) -> Days:
    """Return a year."""
    return month(number, 1, 12)


def back(today: date, count: int, unit: str) -> date:
    """Return the day so many days, weeks, months or years before `today`, about."""
    return today - timedelta(days=count * {"day": 1, "week": 7, "month": 30, "year": 365}[unit])


def ago(today: date, count: int, unit: str) -> Days:
    """Return what "three weeks ago" may mean: the day, the days round it, the month, the year."""
    if unit == "year":
        return whole_year(today.year - count)
    if unit == "month":
        return month(today.year, today.month - count)
    first = back(today, count, unit)
    return day(first) if unit == "day" else Days(first - timedelta(days=3), day(first, 4).end)


def in_some_year(make: Callable[[int], Days], today: date) -> list[Days]:
    """Return the latest that has begun, and the next one where it comes within two months.

    `make` may raise ValueError for a year that has no such day.
    """
    found: list[Days] = []
    for year in (today.year + 1, today.year, today.year - 1, today.year - 2, today.year - 3):
        try:
            stretch = make(year)
        except ValueError:  # 29 February
            continue
        if stretch.first <= today:
            return [stretch, *found]
        if stretch.first <= today + _COMING:
            found.append(stretch)
    return found
