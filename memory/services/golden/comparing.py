"""Two runs side by side: which questions pass no more, which do again, and what moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Agent
from memory.models import GoldenQuestion, GoldenRun
from memory.services.golden import questions


@dataclass(frozen=True, slots=True)
class Difference:
    """A question in two runs; a result is None where it was not asked.

    `turn` is `broken`, `mended`, `moved` (of the same outcome at other ranks), `same`,
    `added`, `left_out`, or `changed` where it asked something else by then. `question` is
    None where it was deleted.
    """

    question_id: int
    question: GoldenQuestion | None
    turn: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


TURNS = ("broken", "mended", "moved", "changed", "added", "left_out", "same")
"""In the order in which they matter."""


def runs_of(agent: Agent) -> list[GoldenRun]:
    """Return an agent's runs, newest first."""
    return list(GoldenRun.objects.filter(agent_id=agent.pk).order_by("-pk"))


def latest_results(runs: Sequence[GoldenRun]) -> dict[int, tuple[GoldenRun, dict[str, Any]]]:
    """Return, for each question, the last run that asked it and what came of it."""
    latest: dict[int, tuple[GoldenRun, dict[str, Any]]] = {}
    for run in sorted(runs, key=lambda run: run.pk):
        latest |= {result["question"]: (run, result) for result in run.results}
    return latest


def is_of(result: dict[str, Any], question: GoldenQuestion) -> bool:
    """Return whether a question still asks what it asked when the result came."""
    return bool(result["mark"] == questions.mark(questions.drafted(question)))


def compare(agent: Agent, before: GoldenRun, after: GoldenRun) -> list[Difference]:
    """Return how every question of either run fared in both, what broke first."""
    old = {result["question"]: result for result in before.results}
    new = {result["question"]: result for result in after.results}
    ids = old.keys() | new.keys()
    known = questions.of_agent(agent).in_bulk(ids)
    found = [
        Difference(pk, known.get(pk), _turn(old.get(pk), new.get(pk)), old.get(pk), new.get(pk))
        for pk in ids
    ]
    return sorted(found, key=lambda each: (TURNS.index(each.turn), each.question_id))


def _turn(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    if before is None:
        return "added"
    if after is None:
        return "left_out"
    if before["mark"] != after["mark"]:
        return "changed"
    if before["passed"] != after["passed"]:
        return "mended" if after["passed"] else "broken"
    ranks = ("expected", "unwanted")
    return "same" if all(before[name] == after[name] for name in ranks) else "moved"
