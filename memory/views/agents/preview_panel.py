"""The panel beside the settings: what would be put into the prompt for a message."""

from __future__ import annotations

import logging
from typing import Any

from django import forms
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone
from django.utils.translation import gettext_lazy

from agents import audit
from agents.models import Agent
from agents.preferences import PageRequest
from agents.roles import VIEW_CONTENT
from memory.errors import BackendUnavailable
from memory.services import previewing
from memory.services.context import Measure
from memory.services.previewing import Preview, Subject
from memory.services.recall import is_paused
from memory.views.people import ReasonForm

MAX_MESSAGE_CHARS = 4_000
_BAR = 400
"""How wide the budget's bar is drawn."""
logger = logging.getLogger(__name__)


class TryForm(forms.Form):
    """A message, and what of the settings it is tried with; what is not valid counts as saved."""

    message = forms.CharField(required=False, max_length=MAX_MESSAGE_CHARS)
    user_id = forms.CharField(required=False, strip=False)
    prefetch_limit = forms.IntegerField(required=False, min_value=1, max_value=50)
    budget_tokens = forms.IntegerField(required=False, min_value=50, max_value=100_000)
    language = forms.ChoiceField(required=False, choices=settings.LANGUAGES)
    min_score = forms.FloatField(required=False, min_value=0, max_value=1)

    def measure(self, agent: Agent) -> Measure:
        """Return the limits to try."""
        saved, value = Measure.of(agent), self.cleaned_data
        return Measure(
            value.get("prefetch_limit") or saved.limit,
            value.get("budget_tokens") or saved.budget_tokens,
            value.get("language") or saved.language,
            saved.min_score if value.get("min_score") is None else value["min_score"],
        )


class SubjectForm(ReasonForm):
    """Whose memories are to be tried, and why."""

    user_id = forms.CharField(label=gettext_lazy("User ID, exactly"), max_length=255, strip=False)
    field_order = ("user_id", "reason")


def panel(request: PageRequest, agent: Agent, form: TryForm | None = None) -> dict[str, Any]:
    """Return what the panel shows; of a silent store only that it is silent."""
    form = form or TryForm({})
    form.is_valid()
    context: dict[str, Any] = {
        "message": form.cleaned_data.get("message", form.data.get("message", "")),
        "max_chars": MAX_MESSAGE_CHARS,
        "may_read": request.user.has_perm(VIEW_CONTENT),
        "reason": SubjectForm(),
    }
    try:
        return context | _found(request, agent, form)
    except (DatabaseError, BackendUnavailable) as error:
        logger.warning("agent %s: no preview: %s", agent.pk, type(error).__name__)
        return context | {"is_silent": True}


def _found(request: PageRequest, agent: Agent, form: TryForm) -> dict[str, Any]:
    subjects = previewing.find_subjects(request.user, agent, now=timezone.now())
    wanted = form.cleaned_data.get("user_id", "")
    chosen = [each for each in subjects if each.user_id == wanted] or subjects[:1]
    context: dict[str, Any] = {"subjects": subjects, "subject": chosen[0] if chosen else None}
    if wanted and (not chosen or chosen[0].user_id != wanted):
        return context | {"is_closed": True}
    if not chosen:
        return context
    if chosen[0].reading:
        context["closes_at"] = chosen[0].reading.created_at + audit.READING_TIME
    message, measure = form.cleaned_data.get("message", ""), form.measure(agent)
    if not message.strip():
        return context | {"measure": measure}
    shown = previewing.preview(agent, chosen[0], message, measure, now=timezone.now())
    return context | _result(agent, chosen[0], shown, measure)


def _result(agent: Agent, subject: Subject, shown: Preview, measure: Measure) -> dict[str, Any]:
    found = shown.found
    return {
        "found": found,
        "measure": measure,
        "milliseconds": max(round(shown.milliseconds), 1),
        "entries": list(zip(found.hits, found.costs, strict=True)),
        "bar": min(round(_BAR * found.tokens / measure.budget_tokens), _BAR),
        "bar_width": _BAR,
        "least_score": measure.min_score,
        "is_paused": is_paused(agent, subject.user_id),
    }
