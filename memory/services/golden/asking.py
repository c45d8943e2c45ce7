"""Asking golden questions as a message would be, with nothing noted or counted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents import audit
from agents.models import Agent, AuditEntry
from memory.analyzer import ANALYZER_VERSION
from memory.errors import HippoError
from memory.models import GoldenQuestion, GoldenRun
from memory.retrieval import embedder
from memory.retrieval.lexical import Hit, SearchRequest
from memory.services import jobs, recall
from memory.services.evaluation.metrics import percentile
from memory.services.golden import questions
from memory.services.golden.questions import Draft
from memory.services.jobs import Run

AT_ONCE = 20
"""More questions than this are asked by a job."""
KEPT_RUNS = 50
KIND = "golden"
_BEYOND = 50
_REPORTED = 10


class NothingToAsk(HippoError):
    """The questions are gone."""

    code = "nothing_to_ask"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a question, best first, and where in it what its lines mean is.

    Ranks begin at 1, None where nothing of the kind came. `beyond` are those of what is
    expected and did not come: among what the limit or the threshold keeps out.
    """

    passed: bool
    hits: tuple[Hit, ...]
    expected: tuple[int | None, ...]
    beyond: tuple[int | None, ...]
    unwanted: tuple[int | None, ...]
    milliseconds: float
    mode: str
    degraded: tuple[str, ...]


def ask(agent: Agent, draft: Draft, mode: str, *, now: datetime) -> Answer:
    """Ask one question: as many memories as the agent gives a message, at its threshold."""
    wanted = SearchRequest(
        draft.question,
        limit=agent.memory_config.prefetch_limit,
        min_score=recall.least_score(agent),
        is_message=True,
        cuts=True,
    )
    started = time.perf_counter()
    found = recall.look(agent, draft.user_id, wanted, mode=mode, now=now)
    milliseconds = (time.perf_counter() - started) * 1000
    expected = _ranks(draft.expected, found.hits)
    unwanted = _ranks(draft.unwanted, found.hits)
    beyond: tuple[int | None, ...] = (None,) * len(expected)
    if None in expected:
        wider = SearchRequest(draft.question, limit=_BEYOND, is_message=True)
        all_hits = recall.look(agent, draft.user_id, wider, mode=mode, now=now).hits
        places = _ranks(draft.expected, all_hits)
        beyond = tuple(
            place if rank is None else None for rank, place in zip(expected, places, strict=True)
        )
    is_silent_as_wanted = bool(draft.expected) or not found.hits
    passed = None not in expected and not any(unwanted) and is_silent_as_wanted
    return Answer(
        passed, found.hits, expected, beyond, unwanted, milliseconds, found.mode, found.degraded
    )


def _ranks(lines: Sequence[str], hits: Sequence[Hit]) -> tuple[int | None, ...]:
    return tuple(
        next((n for n, hit in enumerate(hits, 1) if questions.is_meant(line, hit.memory)), None)
        for line in lines
    )


def ask_all(
    agent: Agent,
    mode: str,
    asked: Sequence[GoldenQuestion],
    *,
    account_id: int | None = None,
    readings: Sequence[AuditEntry] = (),
    now: datetime,
) -> GoldenRun:
    """Ask questions of an agent and keep what came of it; the latest `KEPT_RUNS` stay.

    To the `readings`, which let the account ask about somebody else's memories, is added how
    many these questions showed.
    """
    asking = _asking(agent, mode, asked, now=now)
    return _keep(agent, mode, list(asking), account_id=account_id, readings=readings, now=now)


def _asking(
    agent: Agent, mode: str, asked: Sequence[GoldenQuestion], *, now: datetime
) -> Iterator[tuple[GoldenQuestion, Draft, Answer]]:
    for question in asked:
        draft = questions.drafted(question)
        yield question, draft, ask(agent, draft, mode, now=now)


def _keep(
    agent: Agent,
    mode: str,
    answers: Sequence[tuple[GoldenQuestion, Draft, Answer]],
    *,
    account_id: int | None,
    readings: Sequence[AuditEntry],
    now: datetime,
) -> GoldenRun:
    for entry in readings:
        shown = sum(len(a.hits) for each, _, a in answers if each.user_id == entry.user_id)
        audit.note_shown(entry, shown)
    # of what was erased or deleted meanwhile nothing is kept
    ids = [question.pk for question, _, _ in answers]
    present = set(questions.of_agent(agent).filter(pk__in=ids).values_list("pk", flat=True))
    kept = [each for each in answers if each[0].pk in present]
    if not kept:
        raise NothingToAsk("There is no question left to ask; write one down first.")
    times = [answer.milliseconds for _, _, answer in kept]
    passed = sum(answer.passed for _, _, answer in kept)
    run = GoldenRun.objects.create(
        agent_id=agent.pk,
        mode=mode,
        account_id=account_id,
        passed=passed,
        failed=len(kept) - passed,
        p50_ms=percentile(times, 50) or 0.0,
        p95_ms=percentile(times, 95) or 0.0,
        settings=_settings(agent, [answer for _, _, answer in kept]),
        results=[_result(question, draft, answer) for question, draft, answer in kept],
        created_at=now,
    )
    old = GoldenRun.objects.filter(agent_id=agent.pk).order_by("-pk")[KEPT_RUNS:]
    GoldenRun.objects.filter(pk__in=list(old.values_list("pk", flat=True))).delete()
    return run


def _settings(agent: Agent, answers: Sequence[Answer]) -> dict[str, Any]:
    model = embedder.current()
    return {
        "threshold": recall.least_score(agent),
        "limit": agent.memory_config.prefetch_limit,
        "model": model.model if model else "",
        "analyzer": ANALYZER_VERSION,
        "modes": sorted({answer.mode for answer in answers}),
        "degraded": sorted({code for answer in answers for code in answer.degraded}),
    }


def _result(question: GoldenQuestion, draft: Draft, answer: Answer) -> dict[str, Any]:
    return {"question": question.pk, "mark": questions.mark(draft), **outcome(answer)}


def outcome(answer: Answer) -> dict[str, Any]:
    """Return what is kept of an answer: numbers only, for what is erased must be gone."""
    return {
        "passed": answer.passed,
        "came": [hit.memory.pk for hit in answer.hits],
        "expected": list(answer.expected),
        "beyond": list(answer.beyond),
        "unwanted": list(answer.unwanted),
    }


def request(
    agent: Agent,
    mode: str,
    asked: Sequence[GoldenQuestion],
    *,
    account_id: int,
    readings: Sequence[AuditEntry] = (),
    now: datetime,
) -> Any:
    """Leave the asking to a job and return it; its payload holds numbers only."""
    payload = {
        "agent_id": agent.pk,
        "mode": mode,
        "questions": [question.pk for question in asked],
        "readings": [entry.pk for entry in readings],
    }
    key = f"{KIND} {agent.pk} {account_id}"
    return jobs.enqueue(KIND, payload, key=key, account_id=account_id, now=now)


def work(run: Run, *, now: datetime) -> dict[str, Any]:
    """Ask what a job was given; return {"run", "asked", "passed"}.

    Killed half-way it begins anew: nothing is kept before all are asked.
    Raises NothingToAsk where the questions, or the agent, are gone.
    """
    payload = run.job.payload
    agent = Agent.objects.filter(pk=payload["agent_id"]).select_related("memory_config").first()
    if agent is None:
        raise NothingToAsk("The agent is gone.")
    asked = list(questions.of_agent(agent).filter(pk__in=payload["questions"]))
    answers = []
    run.report(step=agent.name, done=0, total=len(asked))
    for each in _asking(agent, payload["mode"], asked, now=now):
        answers.append(each)
        if len(answers) % _REPORTED == 0:
            run.report(done=len(answers))
    run.report(done=len(answers))
    readings = list(AuditEntry.objects.filter(pk__in=payload["readings"]))
    kept = _keep(
        agent,
        payload["mode"],
        answers,
        account_id=run.job.account_id,
        readings=readings,
        now=now,
    )
    return {"run": kept.pk, "asked": kept.passed + kept.failed, "passed": kept.passed}
