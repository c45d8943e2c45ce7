"""Measuring retrieval: labelled sets loaded into throw-away scopes and searched.

Means over questions: recall@k, MRR@10 and nDCG@10 with binary relevance, precision and recall
of what reaches the threshold, and how many questions get no answer there.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from agents.models import Agent
from memory.filters import MemoryFilter
from memory.models import Memory
from memory.retrieval.calibration import MIN_SCORE
from memory.retrieval.lexical import SearchRequest
from memory.services import recall
from memory.services.evaluation import scratch
from memory.services.evaluation.metrics import Figures
from memory.services.evaluation.sets import APART, LabelledQuery, LabelledSet

LIMIT = 10
_SEED = 1


@dataclass(frozen=True, slots=True)
class Way:
    """How questions are asked: the mode of search, and below which score a hit is noise."""

    mode: str = "auto"
    threshold: float = MIN_SCORE


@dataclass(slots=True)
class Measured:
    """Figures by (language, group), where the group is '' or `APART`; what was done instead.

    `modes` are the modes that answered and `degraded` what could not be done as asked.
    """

    figures: dict[tuple[str, str], Figures] = field(default_factory=lambda: defaultdict(Figures))
    modes: set[str] = field(default_factory=set)
    degraded: set[str] = field(default_factory=set)


def evaluate(
    labelled: LabelledSet, backend: str, way: Way | None = None, *, now: datetime
) -> Measured:
    """Ask every question of a set, and each of a scope where it does not belong, too.

    The memories are loaded into scopes of an agent that is erased at the end. A question sees
    only memories older than its `asked_at`; elsewhere it sees all. Where else it is asked is
    chosen by chance, with the same outcome each time; a set of one scope has no elsewhere.
    Raises ValueError naming the line that is no memory.
    """
    way, measured = way or Way(), Measured()
    choice = random.Random(f"{_SEED} {labelled.name}")  # noqa: S311 - no secret
    scopes = sorted({query.scope for query in labelled.queries})
    with scratch.throw_away_agent(backend) as agent:
        try:
            with labelled.memories.open("rb") as lines:
                scratch.load(agent, lines, embeds=way.mode != "lexical", now=now)
        except ValueError as error:
            raise ValueError(f"{labelled.memories.name}, {error}") from error
        asking = _Asking(agent, way, measured, now)
        for query in labelled.queries:
            others = [scope for scope in scopes if scope != query.scope]
            asking.ask(query, choice.choice(others) if others else None)
    return measured


class _Asking:
    """Asks questions of one agent and counts what comes back."""

    def __init__(self, agent: Agent, way: Way, measured: Measured, now: datetime) -> None:
        self._agent, self._way, self._measured, self._now = agent, way, measured, now
        named = Memory.objects.for_agent(agent).values_list("pk", "external_id")
        self._names = {pk: name or "" for pk, name in named}

    def ask(self, query: LabelledQuery, elsewhere: str | None) -> None:
        """Ask a question where it belongs, and elsewhere unless it has no answer anyway."""
        group = APART if query.category == APART else ""
        figures = self._measured.figures[query.language, group]
        seen = MemoryFilter(created_before=query.asked_at)
        figures.add(self._search(query.scope, query.text, seen, 0.0), query.relevant)
        started = time.perf_counter()
        given = self._search(query.scope, query.text, seen, self._way.threshold)
        figures.milliseconds.append((time.perf_counter() - started) * 1000)
        figures.add_given(given, query.relevant)
        if elsewhere is not None and not group:
            found = self._search(elsewhere, query.text, MemoryFilter(), self._way.threshold)
            figures.add_elsewhere(is_silent=not found)

    def _search(
        self, user_id: str, text: str, seen: MemoryFilter, min_score: float
    ) -> Sequence[str]:
        request = SearchRequest(
            text, limit=LIMIT, filter=seen, min_score=min_score, cuts=min_score > 0
        )
        found = recall.look(self._agent, user_id, request, mode=self._way.mode, now=self._now)
        self._measured.modes.add(found.mode)
        self._measured.degraded.update(found.degraded)
        return [self._names[hit.memory.pk] for hit in found.hits]
