"""Figures over days as shapes that a page draws in SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from memory import recall_log
from memory.models import Memory, MemoryType
from memory.services.figures.sums import Day, saved

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


@dataclass(frozen=True, slots=True)
class Spark:
    """A line without axes in a picture of 104 by 38, what lies under it, and its last point."""

    line: str
    area: str
    x: float
    y: float


def spark(values: Sequence[float | None]) -> Spark | None:
    """Return values in order as a line; what is None is left out. None for less than two."""
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return None
    least, most = min(value for _, value in known), max(value for _, value in known)
    points = [
        (
            round(2 + 98 * place / (len(values) - 1), 1),
            round(34 - 28 * (value - least) / (most - least), 1) if most > least else 34.0,
        )
        for place, value in known
    ]
    line = " ".join(f"{x},{y}" for x, y in points)
    (first, _), (x, y) = points[0], points[-1]
    return Spark(line, f"{first},38 {line} {x},38", x, y)


_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 820.0, 12.0, 296.0
_LINES = 5
_LABELS = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """What was saved of one type on a day, as a part of its bar."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """A day: the room it has, its bar in parts from the bottom, and its figures."""

    day: date
    figures: Day
    x: float
    middle: float
    pieces: list[Piece]
    has_label: bool
    is_main: bool
    """Whether the label is there on a small screen, too."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What was saved each day as stacked bars, and the recalls as a line, with an axis each.

    `room` is the width of a day, `bar` that of its bar, `half` the half of it. `lines` are the
    heights of the grid with the numbers to its left and right. `uncounted` is the width of the
    days before anything was counted. `is_empty`: there is nothing to draw.
    """

    columns: list[Column]
    line: str
    room: float
    bar: float
    half: float
    lines: list[tuple[float, int, int]]
    uncounted: float
    is_empty: bool


def chart(days: Sequence[tuple[date, Day]], *, since: date) -> Chart:
    """Return the chart of days in order; those before `since` were not counted."""
    room = (_RIGHT - _LEFT) / len(days)
    bar = round(room * (0.6 if room > 8 else 0.8), 1)
    saves = _step(max(saved(day) for _, day in days))
    recalls = _step(max(day["recalls"] for _, day in days))
    every = math.ceil(len(days) / _LABELS)
    columns, points = [], []
    for place, (each, day) in enumerate(days):
        x = _LEFT + place * room
        middle = round(x + room / 2, 1)
        # from the right, so that today has its label
        number, left = divmod(len(days) - 1 - place, every)
        pieces = _pieces(day, saves * _LINES)
        labels = (left == 0, left == 0 and number % 3 == 0)
        columns.append(Column(each, day, round(x, 1), middle, pieces, *labels))
        if each >= since:
            points.append(f"{middle},{_height(day['recalls'], recalls * _LINES)}")
    lines = [
        (_height(number, _LINES), number * saves, number * recalls) for number in range(_LINES + 1)
    ]
    uncounted = sum(each < since for each, _ in days) * room
    is_empty = not any(saved(day) or day["recalls"] for _, day in days)
    return Chart(
        columns,
        " ".join(points),
        round(room, 1),
        bar,
        round(bar / 2, 2),
        lines,
        round(uncounted, 1),
        is_empty,
    )


def _pieces(day: Day, top: int) -> list[Piece]:
    pieces, below = [], 0
    for kind in MemoryType.values:
        if count := day[f"saved_{kind}"]:
            y, foot = _height(below + count, top), _height(below, top)
            pieces.append(Piece(kind, y, round(foot - y, 1)))
            below += count
    return pieces


def _height(value: float, top: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * value / top, 1)


def _step(most: int) -> int:
    """Return the distance of grid lines, 1, 2 or 5 times a power of ten, so that `most` fits."""
    wanted = max(most / _LINES, 1)
    power = 10 ** math.floor(math.log10(wanted))
    return next(int(power * each) for each in (1, 2, 5, 10) if power * each >= wanted)


_PLOT_LEFT, _PLOT_RIGHT, _PLOT_TOP, _PLOT_BOTTOM = 34.0, 852.0, 10.0, 170.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A hit in a picture of 860 by 190: where its score stands, and whether it is noise."""

    score: float
    x: float
    y: float
    is_below: bool


@dataclass(frozen=True, slots=True)
class ScorePlot:
    """Scores in their order with the line of the threshold; `lines` are the grid's heights."""

    dots: list[Dot]
    threshold_y: float
    above: int
    lines: list[tuple[float, str]]
    foot: float = _PLOT_BOTTOM


def score_plot(scores: Sequence[float], threshold: float) -> ScorePlot:
    """Return the plot of scores, best first, at most some fifty."""
    room = (_PLOT_RIGHT - _PLOT_LEFT) / max(len(scores), 1)
    dots = [
        Dot(score, round(_PLOT_LEFT + room * (place + 0.5), 1), _score_y(score), score < threshold)
        for place, score in enumerate(scores)
    ]
    lines = [(_score_y(number / 4), f"{number / 4:.2f}") for number in range(5)]
    return ScorePlot(dots, _score_y(threshold), sum(not d.is_below for d in dots), lines)


def _score_y(score: float) -> float:
    return round(_PLOT_BOTTOM - (_PLOT_BOTTOM - _PLOT_TOP) * score, 1)
