"""One query, every mode side by side, each score explained; nothing is noted or counted."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import datetime

from agents.models import Agent
from memory.models import Memory
from memory.retrieval import explanations
from memory.retrieval.explanations import Explanation, Reading
from memory.retrieval.lexical import Hit, SearchRequest
from memory.services import recall
from memory.services.recall import MODES

PLOTTED = 40
"""So many scores are drawn."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one mode found: the mode that answered, what it could not do, and how long it took."""

    mode: str
    answered_by: str
    degraded: tuple[str, ...]
    hits: tuple[Hit, ...]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Cell:
    """Where one mode has a memory."""

    rank: int
    score: float
    is_below: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A memory beside its place in every mode; None where a mode does not find it."""

    memory: Memory
    matched: tuple[str, ...]
    cells: tuple[Cell | None, ...]
    explanation: Explanation | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of it; `reading` is how the words of the query were taken.

    `scores` are those of the first `PLOTTED` hits of the first mode, best first.
    """

    attempts: tuple[Attempt, ...]
    rows: tuple[Row, ...]
    reading: Reading
    scores: tuple[float, ...]


def compare(
    agent: Agent, user_id: str, request: SearchRequest, *, threshold: float, now: datetime
) -> Comparison:
    """Ask every mode; rows are in the order of the first mode, then what only others find."""
    recall.look(agent, user_id, request, now=now)  # fills caches, so that no mode pays for all
    attempts = tuple(_attempt(agent, user_id, request, mode, now=now) for mode in MODES)
    hits = {hit.memory.pk: hit for each in reversed(attempts) for hit in each.hits}
    scores = {hit.memory.pk: hit.score for each in reversed(attempts) for hit in each.hits}
    reading, explained = explanations.explain(agent, user_id, request, scores, now=now)
    order = dict.fromkeys(hit.memory.pk for each in attempts for hit in each.hits)
    rows = tuple(
        Row(
            hits[pk].memory,
            hits[pk].matched,
            tuple(_cell(each, pk, threshold) for each in attempts),
            explained.get(pk),
        )
        for pk in order
    )
    found = recall.look(agent, user_id, replace(request, limit=PLOTTED), now=now)
    return Comparison(attempts, rows, reading, tuple(hit.score for hit in found.hits))


def _attempt(
    agent: Agent, user_id: str, request: SearchRequest, mode: str, *, now: datetime
) -> Attempt:
    started = time.perf_counter()
    found = recall.look(agent, user_id, request, mode=mode, now=now)
    milliseconds = (time.perf_counter() - started) * 1000
    return Attempt(mode, found.mode, found.degraded, found.hits, milliseconds)


def _cell(attempt: Attempt, memory_id: int, threshold: float) -> Cell | None:
    for rank, hit in enumerate(attempt.hits, start=1):
        if hit.memory.pk == memory_id:
            return Cell(rank, hit.score, hit.score < threshold)
    return None
