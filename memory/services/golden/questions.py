"""Golden questions: what is asked of whose memories, what must come back and what must not."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import Agent, is_user_id
from memory.analyzer import fold
from memory.models import GoldenQuestion, GoldenRun, Memory
from memory.numbers import whole_number

MAX_CHARS = 2_000
MAX_LINES = 20
MAX_LINE_CHARS = 500
MAX_QUESTIONS = 500
"""So many an agent may have: all of them are asked at once."""
UNDO_TIME = timedelta(hours=1)
"""For so long a deleted question can be put back."""


class InvalidQuestion(Exception):
    """A question that cannot be asked; `field` is what is wrong with it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked question; `expected` and `unwanted` hold ids of memories, or words of theirs.

    Where nothing is expected, nothing at all may come back.
    """

    user_id: str
    question: str
    expected: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()


def parse(values: Mapping[str, Any]) -> Draft:
    """Return the question that `values` hold. Raises InvalidQuestion.

    `expected` and `unwanted` are lists of texts, or one text with a line for each.
    """
    user_id, question = values.get("user_id"), values.get("question")
    if not isinstance(user_id, str) or not is_user_id(user_id):
        raise InvalidQuestion("user_id", _("A user ID of 1 to 255 characters."))
    if not isinstance(question, str) or not (question := question.strip()):
        raise InvalidQuestion("question", _("Say what is asked."))
    if len(question) > MAX_CHARS:
        text = _("At most %d characters.")
        raise InvalidQuestion("question", text % MAX_CHARS)
    expected, unwanted = (_lines(values, field) for field in ("expected", "unwanted"))
    both = {fold(line) for line in expected}.intersection(fold(line) for line in unwanted)
    if both:
        raise InvalidQuestion("unwanted", _("The same cannot be expected and unwanted."))
    return Draft(user_id, question, expected, unwanted)


def _lines(values: Mapping[str, Any], field: str) -> tuple[str, ...]:
    given = values.get(field) or []
    given = given.splitlines() if isinstance(given, str) else given
    if not isinstance(given, Sequence) or not all(isinstance(line, str | int) for line in given):
        raise InvalidQuestion(field, _("A text for each line."))
    lines = tuple(dict.fromkeys(text for line in given if (text := str(line).strip())))
    if len(lines) > MAX_LINES:
        raise InvalidQuestion(field, _("At most %d lines.") % MAX_LINES)
    if any(len(line) > MAX_LINE_CHARS for line in lines):
        raise InvalidQuestion(field, _("At most %d characters a line.") % MAX_LINE_CHARS)
    if not all(map(fold, lines)):
        raise InvalidQuestion(field, _("Each line needs something that can be read."))
    return lines


def of_agent(agent: Agent) -> QuerySet[GoldenQuestion]:
    """Return an agent's questions, oldest first."""
    return GoldenQuestion.objects.filter(agent_id=agent.pk).order_by("pk")


def drafted(question: GoldenQuestion) -> Draft:
    """Return what a kept question asks."""
    lines = tuple(question.expected), tuple(question.unwanted)
    return Draft(question.user_id, question.question, *lines)


def add(agent: Agent, draft: Draft, *, now: datetime) -> GoldenQuestion:
    """Keep a question. Raises InvalidQuestion where the agent has `MAX_QUESTIONS`."""
    purge(now=now)
    if of_agent(agent).count() >= MAX_QUESTIONS:
        text = _("An agent can have %d of them; delete one first.")
        raise InvalidQuestion("question", text % MAX_QUESTIONS)
    return GoldenQuestion.objects.create(agent_id=agent.pk, created_at=now, **_values(draft))


def edit(question: GoldenQuestion, draft: Draft) -> None:
    """Let a question ask something else; what runs say of it is about what it asked then."""
    GoldenQuestion.objects.filter(pk=question.pk).update(**_values(draft))


def _values(draft: Draft) -> dict[str, Any]:
    return {
        "user_id": draft.user_id,
        "question": draft.question,
        "expected": list(draft.expected),
        "unwanted": list(draft.unwanted),
    }


def delete(question: GoldenQuestion, *, now: datetime) -> bool:
    """Delete a question; for `UNDO_TIME` it can be put back.

    Until then it waits under the agent's number with a minus, and with the time of the
    deletion; erasing the agent or the user takes it along.
    """
    purge(now=now)
    present = GoldenQuestion.objects.filter(pk=question.pk, agent_id__gt=0)
    return bool(present.update(agent_id=-question.agent_id, created_at=now))


def restore(agent: Agent, question_id: int, *, now: datetime) -> bool:
    """Put back a question that was just deleted; return whether it was still there."""
    deleted = GoldenQuestion.objects.filter(pk=question_id, agent_id=-agent.pk)
    return bool(deleted.filter(created_at__gt=now - UNDO_TIME).update(agent_id=agent.pk))


def purge(*, now: datetime) -> int:
    """Remove what was deleted more than `UNDO_TIME` ago; return how many."""
    deleted = GoldenQuestion.objects.filter(agent_id__lt=0, created_at__lte=now - UNDO_TIME)
    return deleted.delete()[0]


def forget_user(agent_id: int, user_id: str) -> int:
    """Remove the questions about a user, and what runs say of them; return how many."""
    about = _about(agent_id, user_id)
    ids = set(about.values_list("pk", flat=True))
    if not ids:
        return 0
    about.delete()
    for run in GoldenRun.objects.filter(agent_id=agent_id):
        left = [result for result in run.results if result["question"] not in ids]
        if len(left) == len(run.results):
            continue
        if not left:
            run.delete()
            continue
        run.results, run.passed = left, sum(result["passed"] for result in left)
        run.failed = len(left) - run.passed
        run.save(update_fields=["results", "passed", "failed"])
    return len(ids)


def asks_about(agent_id: int, user_id: str) -> bool:
    """Return whether there is a question about a user, those that were just deleted included."""
    return _about(agent_id, user_id).exists()


def _about(agent_id: int, user_id: str) -> QuerySet[GoldenQuestion]:
    return GoldenQuestion.objects.filter(agent_id__in=[agent_id, -agent_id], user_id=user_id)


def forget_agent(agent_id: int) -> None:
    """Remove an agent's questions and runs."""
    GoldenQuestion.objects.filter(agent_id__in=[agent_id, -agent_id]).delete()
    GoldenRun.objects.filter(agent_id=agent_id).delete()


def mark(draft: Draft) -> int:
    """Return a number that tells whether a question still asks what it asked in a run."""
    texts = (draft.user_id, draft.question, draft.expected, draft.unwanted)
    return zlib.crc32(repr(texts).encode("utf-8", "surrogatepass"))


def is_meant(line: str, memory: Memory) -> bool:
    """Return whether a line of a question means a memory: by its id, or by words that it holds.

    Case, width and space do not matter.
    """
    if whole_number(line) == memory.pk:
        return True
    return any(fold(line) in fold(text) for text in (memory.name, memory.content))
