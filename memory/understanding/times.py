"""Times that a query names: last week, 上个月, 3月5日, March 5, 2026-03-05."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

import rjieba

from memory import analyzer
from memory.understanding import chinese, days, english
from memory.understanding.days import Days

MAX_CHARS = 2_000
"""Of longer texts the beginning and the end are read."""
MAX_SPANS = 8

_HAN, _LATIN = re.compile(r"[\u3400-\u9fff]+"), re.compile("[A-Za-z]")
_ISO = re.compile(
    r"(?<![A-Za-z0-9_./-])(?P<year>(?:19|20)\d\d)(?:-(?P<m>\d{1,2})(?:-(?P<d>\d{1,2}))?"
    r"|/(?P<m2>\d{1,2})(?:/(?P<d2>\d{1,2}))?|\.(?P<m3>\d{1,2})\.(?P<d3>\d{1,2}))"
    r"(?:T\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?)?(?![A-Za-z0-9_-]|[./]\w)"
)
_FROM_THERE = re.compile(r"\b(?:since|after)\s+(?:the\s+)?$|自从?$|从$", re.IGNORECASE)
_ON_AND_ON = re.compile(r"\s*(?:以来|至今|之后|以后)")
_UP_TO = re.compile(r"\b(?:before|until|till)\s+(?:the\s+)?$", re.IGNORECASE)
_NOT_YET = re.compile(r"(?:份|底|初)?(?:之前|以前|前)")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, `end` not in it, and the words of the query that name it."""

    words: str
    start: datetime
    end: datetime


def spans(text: str, *, now: datetime, zone: tzinfo) -> tuple[Span, ...]:
    """Return the times that `text` names, in its order; days begin and end in `zone`.

    A date without a year is the latest that has begun, and the next one too where it comes
    within two months; so words may have two spans, the likelier first. What is before a time
    ("until March", 3月之前) names none. Words that may be others (may, march, second, 天天)
    count where what stands beside them makes them times.
    """
    plain = analyzer.unify(text if len(text) <= MAX_CHARS else _ends(text))
    today = now.astimezone(zone).date()
    found: list[Span] = []
    for match, meant in _chosen(_matches(plain, today)):
        if _UP_TO.search(_before(plain, match)) or _NOT_YET.match(plain, match.end()):
            continue
        goes_on = _goes_on(plain, match)
        for stretch in meant[:1] if goes_on else meant:
            end = max(stretch.end, today + timedelta(days=1)) if goes_on else stretch.end
            words = " ".join(match.group().split())
            found.append(Span(words, _midnight(stretch.first, zone), _midnight(end, zone)))
    return tuple(found[:MAX_SPANS])


def preference(wanted: Iterable[Span], moment: datetime) -> float:
    """Return how well `moment` fits the spans, in [0, 1]: 1 within one, 0 without any.

    Outside it halves with every half length of the span, or every day of a shorter one.
    """
    return max((_fit(span, moment) for span in wanted), default=0.0)


def _fit(span: Span, moment: datetime) -> float:
    if span.start <= moment < span.end:
        return 1.0
    distance = span.start - moment if moment < span.start else moment - span.end
    return float(0.5 ** (distance / max((span.end - span.start) / 2, timedelta(days=1))))


def _ends(text: str) -> str:
    return f"{text[: MAX_CHARS // 2]}\n{text[-MAX_CHARS // 2 :]}"


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), tzinfo=zone)


def _before(text: str, match: re.Match[str]) -> str:
    return text[max(match.start() - 15, 0) : match.start()]


def _goes_on(text: str, match: re.Match[str]) -> bool:
    words = match.group().lower()
    is_since = words.startswith("since") or _FROM_THERE.search(_before(text, match))
    return bool(is_since or _ON_AND_ON.match(text, match.end()))


def _matches(text: str, today: date) -> Iterator[tuple[re.Match[str], list[Days]]]:
    for match in _ISO.finditer(text):
        if meant := _meant(_iso, match, today):
            yield match, meant
    # each names at least a letter of its script
    rules = (*(english.RULES if _LATIN.search(text) else ()),
             *(chinese.RULES if _HAN.search(text) else ()))  # fmt: skip
    for pattern, meaning in rules:
        for match in pattern.finditer(text):
            if _begins_word(text, match.start()) and (meant := _meant(meaning, match, today)):
                yield match, meant


def _meant(meaning: english.Meaning, match: re.Match[str], today: date) -> list[Days]:
    """Return what a match means, nothing where there is no such day."""
    try:
        meant = meaning(match, today)
    except (ValueError, OverflowError):
        return []
    return [
        stretch
        for stretch in meant
        if stretch.first.year >= days.FIRST_YEAR and stretch.end.year <= days.LAST_YEAR
    ]


def _iso(match: re.Match[str], today: date) -> list[Days]:
    year, month = int(match["year"]), int(match["m"] or match["m2"] or match["m3"])
    day = match["d"] or match["d2"] or match["d3"]
    if not day:
        return [days.month(year, month)] if 1 <= month <= 12 else []
    return [days.day(date(year, month, int(day)))]


def _chosen(
    matches: Iterable[tuple[re.Match[str], list[Days]]],
) -> Sequence[tuple[re.Match[str], list[Days]]]:
    """Return matches that do not overlap, in order: the first, of those the longest."""
    chosen: list[tuple[re.Match[str], list[Days]]] = []
    for each in sorted(matches, key=lambda each: (each[0].start(), -each[0].end())):
        if not chosen or each[0].start() >= chosen[-1][0].end():
            chosen.append(each)
    return chosen


def _begins_word(text: str, at: int) -> bool:
    """Return whether a word begins there: 聪明天真 holds no 明天, 以上周期 no 上周."""
    if at == 0 or not (_HAN.match(text, at) and _HAN.match(text, at - 1)):
        return True
    run = next(run for run in _HAN.finditer(text) if run.start() < at < run.end())
    start = run.start()
    for word in rjieba.cut(run.group()):
        if start >= at:
            break
        start += len(word)
    return start == at
