"""Times in English: patterns, and what each means seen from today."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from memory.understanding import days
from memory.understanding.days import Days

Meaning = Callable[[re.Match[str], date], list[Days]]
Rule = tuple[re.Pattern[str], Meaning]

_NUMBERS = dict.fromkeys(("a", "an", "one"), 1) | {
    "a couple of": 2, "couple of": 2, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip
_WORDS = sorted((name for name in _NUMBERS if "couple" not in name), key=len, reverse=True)
_N = rf"(?P<n>\d{{1,3}}|a couple of|couple of|{'|'.join(_WORDS)})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_YEAR = r"(?P<year>(?:19|20)\d\d)(?![\d/.-]*\d)"
_MONTHS = {
    "january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7,
    "august": 8, "september": 9, "october": 10, "november": 11, "december": 12, "jan": 1,
    "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sept": 9, "sep": 9,
    "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})\b\.?"
_WORDS_TOO = {"may", "march", "mar", "dec", "jan", "sep"}
"""Months that are also other words: in lower case they need more to be a time."""
_DAY = r"(?P<day>\d{1,2})(?P<nth>st|nd|rd|th)?(?![\w%:]|[./]\d)"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT_WEEKDAYS = {"mon": 0, "tue": 1, "tues": 1, "wed": 2, "thu": 3, "thurs": 3, "fri": 4}
_SHIFTS = {"last": -1, "previous": -1, "this": 0, "current": 0, "next": 1, "coming": 1}
_NTH = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)"


def _near_day(match: re.Match[str], today: date) -> list[Days]:
    words = " ".join(match["words"].lower().split())
    shifts = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1,
              "the day after tomorrow": 2}  # fmt: skip
    return [days.day(today + timedelta(days=shifts.get(words, 0)))]


def _count(match: re.Match[str]) -> int:
    text = " ".join(match["n"].lower().split())
    return int(text) if text.isdigit() else _NUMBERS[text]


def _ago(match: re.Match[str], today: date) -> list[Days]:
    return [days.ago(today, _count(match), match["unit"].lower())]


def _few_ago(match: re.Match[str], today: date) -> list[Days]:
    unit = match["unit"].lower()
    return [Days(days.back(today, 6, unit), days.back(today, 1, unit))]


def _rolling(match: re.Match[str], today: date) -> list[Days]:
    count, unit = _count(match) if match["n"] else 1, match["unit"].lower()
    if match["which"].lower() == "next":
        return [Days(today, days.back(today, -count, unit) + timedelta(days=1))]
    return [Days(days.back(today, count, unit), today + timedelta(days=1))]


def _period(match: re.Match[str], today: date) -> list[Days]:
    shift, unit = _SHIFTS[match["which"].lower()], match["unit"].lower()
    if unit == "week":
        return [days.week(today, shift)]
    if unit == "weekend":
        return [days.weekend(today, shift)]
    if unit == "month":
        return [days.month(today.year, today.month + shift)]
    if unit == "quarter":
        return [days.quarter(today.year, (today.month + 2) // 3 + shift)]
    return [days.whole_year(today.year + shift)]


def _weekday(match: re.Match[str], today: date) -> list[Days]:
    name, which = match["name"].lower(), match["which"].lower()
    number = _SHORT_WEEKDAYS[name] if name in _SHORT_WEEKDAYS else _WEEKDAYS.index(name)
    if which in {"this", "next", "coming"}:
        return [days.weekday(today, number, int(which == "next"))]
    yesterday = today - timedelta(days=1)
    return [days.latest_weekday(today if which == "on" else yesterday, number)]


def _month_number(match: re.Match[str]) -> int:
    return _MONTHS[match["month"].lower()]


def _is_word(match: re.Match[str]) -> bool:
    """Return whether a month may be another word here: `may`, `march`."""
    return match["month"] in _WORDS_TOO


def _date(match: re.Match[str], today: date) -> list[Days]:
    number, day = _month_number(match), int(match["day"])
    is_sure = match["nth"] or match["year"] or match["on"] or match.groupdict().get("of")
    if _is_word(match) and not is_sure:
        rest = match.string[match.end() :].lstrip()
        if "of" in match.re.groupindex or rest[:1].isalpha():  # 5 may fail, march 5 miles
            return []
    return _dates(match["year"], number, day, today)


def _dates(year: str | None, number: int, day: int, today: date) -> list[Days]:
    if not 1 <= day <= 31:
        return []
    if year:
        return [days.day(date(int(year), number, day))]
    return days.in_some_year(lambda each: days.day(date(each, number, day)), today)


def _month(match: re.Match[str], today: date) -> list[Days]:
    number, which = _month_number(match), (match["which"] or "").lower()
    if match["year"]:
        return [days.month(int(match["year"]), number)]
    if _is_word(match) and which in {"this", "of", "by"}:  # this may take long
        return []
    return _in_year(which, lambda year: days.month(year, number), today)


def _season(match: re.Match[str], today: date) -> list[Days]:
    name = match["season"].lower()
    if match.groupdict().get("year"):
        return [days.season(int(match["year"]), name)]
    return _in_year(match["which"].lower(), lambda year: days.season(year, name), today)


def _in_year(which: str, make: Callable[[int], Days], today: date) -> list[Days]:
    """Return the stretch that "last", "this", "next" or no such word means."""
    if which == "this":
        return [make(today.year)]
    if which == "next":
        return [next(each for year in (0, 1) if (each := make(today.year + year)).first > today)]
    if which in {"last", "previous"}:
        return [next(each for year in (0, 1, 2) if (each := make(today.year - year)).end <= today)]
    return days.in_some_year(make, today)


def _quarter(match: re.Match[str], today: date) -> list[Days]:
    given = match.groupdict()
    number = int(given["q"]) if given.get("q") else _NTH[match["nth"].lower()]
    if given.get("year"):
        return [days.quarter(int(given["year"]), number)]
    return days.in_some_year(lambda year: days.quarter(year, number), today)


def _year(match: re.Match[str], today: date) -> list[Days]:
    return [days.whole_year(int(match["year"]))]


def _rule(pattern: str, meaning: Meaning) -> Rule:
    # \b would end a word where Chinese begins
    pattern = pattern.replace(" ", r"\s+").replace(r"\b", r"(?![A-Za-z0-9_])")
    return re.compile(rf"(?<![A-Za-z0-9_./-]){pattern}", re.IGNORECASE), meaning


RULES: tuple[Rule, ...] = (
    _rule(
        r"(?P<words>the day before yesterday|the day after tomorrow|today|tonight|yesterday"
        r"|tomorrow|last night|this (?:morning|afternoon|evening))\b",
        _near_day,
    ),
    _rule(rf"{_N} {_UNIT} (?:ago|back)\b", _ago),
    _rule(rf"(?:a few|few|several|some) {_UNIT} (?:ago|back)\b", _few_ago),
    _rule(rf"(?P<which>last|past|previous|next) {_N} {_UNIT}\b", _rolling),
    _rule(r"(?P<which>past)(?P<n>) (?P<unit>day|week|month|year)\b", _rolling),
    _rule(
        rf"(?P<which>{'|'.join(_SHIFTS)}) (?P<unit>week|weekend|month|quarter|year)\b",
        _period,
    ),
    _rule(
        r"(?P<which>on|last|previous|this|next|coming|since) "
        rf"(?P<name>{'|'.join((*_WEEKDAYS, *sorted(_SHORT_WEEKDAYS, reverse=True)))})\b",
        _weekday,
    ),
    _rule(rf"(?P<on>(?:on|since) )?{_MONTH} {_DAY}(?:(?:,)? {_YEAR})?", _date),
    _rule(rf"(?P<on>(?:on|since) )?(?:the )?{_DAY} (?P<of>of )?{_MONTH}(?:,? {_YEAR})?", _date),
    _rule(rf"(?P<which>){_MONTH},? (?:of )?{_YEAR}", _month),
    _rule(
        rf"(?P<year>)(?P<which>in|during|since|last|previous|this|next|of|early|late|mid|by) "
        rf"{_MONTH}(?![A-Za-z0-9_-])",
        _month,
    ),
    _rule(rf"(?P<which>last|previous|this|next) {_SEASON}\b", _season),
    _rule(r"(?P<which>in|during|over) the (?P<season>summer|autumn|winter)\b", _season),
    _rule(rf"{_SEASON} (?:of )?{_YEAR}", _season),
    _rule(rf"(?-i:Q)(?P<q>[1-4])(?![\w-])(?:,? (?:of )?{_YEAR})?", _quarter),
    _rule(rf"q(?P<q>[1-4]),? (?:of )?{_YEAR}", _quarter),
    _rule(r"(?P<year>(?:19|20)\d\d)(?:\s|-)?q(?P<q>[1-4])\b", _quarter),
    _rule(rf"(?P<nth>{'|'.join(_NTH)}) quarter(?: of)?(?: {_YEAR})?", _quarter),
    _rule(rf"(?:in|during|since|year|of) {_YEAR}(?!\s+[a-z]+s\b)(?![A-Za-z0-9_])", _year),
)
