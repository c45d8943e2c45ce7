"""What the golden questions' tab shows: each question with what came of it last."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.db import DatabaseError
from django.utils.translation import gettext_lazy

from agents.models import Agent, validate_user_id
from agents.preferences import PageRequest
from agents.roles import VIEW_CONTENT
from memory.errors import BackendUnavailable
from memory.models import GoldenQuestion, GoldenRun, Job
from memory.services import jobs
from memory.services.golden import access, asking, comparing, questions
from memory.services.golden.access import Access
from memory.services.golden.questions import Draft, InvalidQuestion
from memory.services.recall import MODES
from memory.views.people import ReasonForm

logger = logging.getLogger(__name__)


class QuestionForm(forms.Form):
    """A golden question as it is typed; a valid one has a `draft`."""

    user_id = forms.CharField(
        label=gettext_lazy("User ID"),
        strip=False,
        max_length=255,
        validators=[validate_user_id],
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Whose memories are asked."),
    )
    question = forms.CharField(
        label=gettext_lazy("Question"),
        max_length=questions.MAX_CHARS,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("As a user would say it to the agent."),
    )
    expected = forms.CharField(
        label=gettext_lazy("Must come back"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy(
            "A line for each memory: its number, or words that its name or content holds. "
            "Left empty: nothing at all may come back."
        ),
    )
    unwanted = forms.CharField(
        label=gettext_lazy("Must not come back"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("Lines of the same kind."),
    )

    @classmethod
    def of(cls, question: GoldenQuestion) -> QuestionForm:
        """Return the form of a question that is kept."""
        return cls(
            initial={
                "user_id": question.user_id,
                "question": question.question,
                "expected": "\n".join(question.expected),
                "unwanted": "\n".join(question.unwanted),
            }
        )

    def clean(self) -> dict[str, Any]:
        """Check it as a whole."""
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            try:
                values["draft"] = questions.parse(values)
            except InvalidQuestion as error:
                self.add_error(error.field, str(error))
        return values

    @property
    def draft(self) -> Draft:
        """Return what a valid form says."""
        draft: Draft = self.cleaned_data["draft"]
        return draft


@dataclass(frozen=True, slots=True)
class Row:
    """A question beside its last result.

    `state` is `new`, `changed` (since it was asked), `passed` or `failed`. `expected` are its
    lines with the rank of what came and of what was kept out, `unwanted` those with the rank.
    What is not `is_open` is somebody else's, and its texts are not shown.
    """

    question: GoldenQuestion
    is_open: bool
    state: str
    run: GoldenRun | None
    expected: Sequence[tuple[str, int | None, int | None]]
    unwanted: Sequence[tuple[str, int | None]]
    came: int


def find_access(request: PageRequest, agent: Agent, *, now: datetime) -> tuple[Access, bool]:
    """Return whose questions may be asked, and whether the store is silent."""
    try:
        return access.access_of(request.user, agent, now=now), False
    except (DatabaseError, BackendUnavailable) as error:
        logger.warning("agent %s: its store is silent: %s", agent.pk, type(error).__name__)
        return access.own_of(request.user, agent, now=now), True


def list_context(
    request: PageRequest, agent: Agent, *, mode: str = "", now: datetime
) -> dict[str, Any]:
    """Return what the list shows; four queries, and those for whose questions are open."""
    opened, is_silent = find_access(request, agent, now=now)
    runs = comparing.runs_of(agent)
    latest = comparing.latest_results(runs)
    rows = [
        _row(each, opened, *latest.get(each.pk, (None, None))) for each in questions.of_agent(agent)
    ]
    newest = runs[0] if runs else None
    return {
        "rows": rows,
        "run": newest,
        "runs": len(runs),
        "closed": sum(not row.is_open for row in rows),
        "are_some_open": any(row.is_open for row in rows),
        "may_read": request.user.has_perm(VIEW_CONTENT),
        "is_silent": is_silent,
        "modes": MODES,
        "mode": mode or (newest.mode if newest else MODES[0]),
        "reason": ReasonForm(),
        **_job_context(request, agent, newest),
    }


def _row(
    question: GoldenQuestion, opened: Access, run: GoldenRun | None, result: dict[str, Any] | None
) -> Row:
    nothing = [None] * max(len(question.expected), len(question.unwanted))
    state, expected, beyond, unwanted, came = "new", nothing, nothing, nothing, 0
    if result is not None:
        state = "changed"
        if comparing.is_of(result, question):
            state = "passed" if result["passed"] else "failed"
            expected, beyond, unwanted = (
                result[name] for name in ("expected", "beyond", "unwanted")
            )
            came = len(result["came"])
    return Row(
        question,
        opened.opens(question.user_id),
        state,
        run,
        list(zip(question.expected, expected, beyond, strict=False)),
        list(zip(question.unwanted, unwanted, strict=False)),
        came,
    )


def _job_context(request: PageRequest, agent: Agent, newest: GoldenRun | None) -> dict[str, Any]:
    """Return the asking that is at work, or that has failed since the last run."""
    own = Job.objects.filter(kind=asking.KIND, agent_id=agent.pk, account_id=request.user.pk)
    job = own.order_by("-pk").first()
    if job is None:
        return {}
    if not jobs.has_ended(job):
        return {"job": job}
    is_later = newest is None or newest.created_at < job.created_at
    return {"failed_job": job} if job.state == "failed" and is_later else {}
