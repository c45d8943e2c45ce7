"""Measuring retrieval: labelled sets loaded into throw-away scopes and searched.

recall@k, MRR@10 and nDCG@10 with binary relevance, means over queries.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from agents.models import Agent
from memory.drafts import parse_time
from memory.filters import MemoryFilter
from memory.models import Memory
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services.transfers.transfer import import_lines

_AGENT_PREFIX = "evaluate."
APART = "adversarial"
"""Questions without an answer: kept out of a set's figures and shown on a line of their own."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A question, the ids that answer it, and where and when it was asked."""

    qid: str
    scope: str
    text: str
    relevant: frozenset[str]
    category: str
    language: str
    asked_at: datetime | None


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """One data set: the file of its memories and its questions."""

    name: str
    memories: Path
    queries: tuple[LabelledQuery, ...]


@dataclass(slots=True)
class Figures:
    """Sums over `queries`; the means are what is reported."""

    queries: int = 0
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(METRICS, 0.0))

    def add(self, ranked: Sequence[str], relevant: frozenset[str]) -> None:
        """Count one query's answer, best first."""
        self.queries += 1
        for name, metric in METRICS.items():
            self.sums[name] += metric(ranked, relevant)

    def means(self) -> dict[str, float]:
        """Return the mean of every metric."""
        return {name: total / max(self.queries, 1) for name, total in self.sums.items()}


def recall_at(k: int) -> Callable[[Sequence[str], frozenset[str]], float]:
    """Return the metric: the share of the relevant that is among the first k."""

    def recall(ranked: Sequence[str], relevant: frozenset[str]) -> float:
        return len(relevant.intersection(ranked[:k])) / len(relevant) if relevant else 0.0

    return recall


def reciprocal_rank(ranked: Sequence[str], relevant: frozenset[str]) -> float:
    """Return 1 / rank of the first relevant among the first ten, or 0."""
    ranks = (rank for rank, found in enumerate(ranked[:10], 1) if found in relevant)
    return 1 / next(ranks, math.inf)


def discounted_gain(ranked: Sequence[str], relevant: frozenset[str]) -> float:
    """Return nDCG@10 (Järvelin and Kekäläinen, TOIS 2002), binary relevance."""
    if not relevant:
        return 0.0
    gain = sum(1 / math.log2(i + 2) for i, found in enumerate(ranked[:10]) if found in relevant)
    return gain / sum(1 / math.log2(i + 2) for i in range(min(len(relevant), 10)))


METRICS: dict[str, Callable[[Sequence[str], frozenset[str]], float]] = {
    "recall@5": recall_at(5),
    "recall@10": recall_at(10),
    "MRR@10": reciprocal_rank,
    "nDCG@10": discounted_gain,
}


def read_sets(folder: Path) -> list[LabelledSet]:
    """Return the sets of a folder, by name: pairs of *.memories.jsonl and *.queries.jsonl.

    Raises ValueError naming file and line where a question is malformed.
    """
    found = []
    for memories in sorted(folder.glob("*.memories.jsonl")):
        name = memories.name.removesuffix(".memories.jsonl")
        queries = memories.with_name(f"{name}.queries.jsonl")
        if queries.exists():
            found.append(LabelledSet(name, memories, tuple(_read_queries(queries))))
    return found


def evaluate(
    labelled: LabelledSet, backend: str, *, now: datetime
) -> dict[tuple[str, str], Figures]:
    """Search every question of a set; return figures by (language, category group).

    The group is '' or `APART`. The memories are loaded into scopes of an agent that is
    erased at the end. A question sees only memories older than its `asked_at`.
    """
    figures: dict[tuple[str, str], Figures] = defaultdict(Figures)
    with _throw_away_agent(backend) as agent:
        with labelled.memories.open("rb") as lines:
            report = import_lines(agent, lines, now=now)
        if report.errors:
            number, message = report.errors[0]
            raise ValueError(f"{labelled.memories.name}, line {number}: {message}")
        names = dict(Memory.objects.for_agent(agent).values_list("pk", "external_id"))
        for query in labelled.queries:
            request = SearchRequest(
                query.text, limit=10, filter=MemoryFilter(created_before=query.asked_at)
            )
            hits = search(agent, query.scope, request, now=now).hits
            ranked = [names[hit.memory.pk] or "" for hit in hits]
            group = APART if query.category == APART else ""
            figures[query.language, group].add(ranked, query.relevant)
    return figures


@contextmanager
def _throw_away_agent(backend: str) -> Iterator[Agent]:
    # a run that was killed left its agent; its name tells the process
    for left in Agent.objects.filter(name__startswith=_AGENT_PREFIX):
        ours = re.fullmatch(r"evaluate\.(?:sqlite|mysql)\.(\d+)", left.name)
        # in a container every run may have the same number
        if ours and (int(ours[1]) == os.getpid() or not Path(f"/proc/{ours[1]}").exists()):
            left.delete()
    name = f"{_AGENT_PREFIX}{backend}.{os.getpid()}"
    agent = Agent.objects.create_agent(name, backend=backend)
    try:
        yield agent
    finally:
        agent.delete()  # its memories go with it


def _read_queries(path: Path) -> Iterator[LabelledQuery]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record: dict[str, Any] = json.loads(line)
                yield LabelledQuery(
                    qid=record["qid"],
                    scope=record["scope"],
                    text=record["query"],
                    relevant=frozenset(record["relevant"]),
                    category=record.get("category", ""),
                    language=record.get("lang", ""),
                    asked_at=parse_time(record.get("asked_at")),
                )
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path.name}, line {number}: {error}") from error
