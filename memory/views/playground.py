"""Trying a query on an agent's memory: what every mode finds, and why."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agents import audit
from agents.forms import AgentChoiceField
from agents.models import AuditEntry, Identity, validate_user_id
from agents.preferences import PageRequest
from agents.roles import VIEW_CONTENT, for_operators
from memory.analyzer import MAX_QUERY_CHARS
from memory.charts import score_plot
from memory.retrieval import calibration
from memory.retrieval.lexical import SearchRequest
from memory.services import people, recall, trying
from memory.services import playground as trial
from memory.views.people import ReasonForm

HITS = 10
ASKED = (
    ("query", gettext_lazy("as a query (search, memory_recall)")),
    ("message", gettext_lazy("as a message (prefetch)")),
    ("typed", gettext_lazy("as typed by a person (the list's search)")),
)


class PlaygroundForm(forms.Form):
    """Whose memories, what is asked, and above which score a hit counts."""

    agent = AgentChoiceField(label=gettext_lazy("Agent"), empty_label=None)
    user_id = forms.CharField(
        label=gettext_lazy("User ID"),
        strip=False,
        validators=[validate_user_id],
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    query = forms.CharField(
        label=gettext_lazy("Query"),
        max_length=MAX_QUERY_CHARS,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    asked = forms.ChoiceField(label=gettext_lazy("Asked"), choices=ASKED)
    threshold = forms.FloatField(
        label=gettext_lazy("Least score"),
        min_value=0,
        max_value=1,
        widget=forms.NumberInput(attrs={"type": "range", "step": "0.01"}),
    )

    def to_request(self) -> SearchRequest:
        """Return the search; the threshold is drawn afterwards, so that more can be seen."""
        asked = self.cleaned_data["asked"]
        return SearchRequest(
            self.cleaned_data["query"],
            limit=HITS,
            is_message=asked == "message",
            as_you_type=asked == "typed",
        )


@for_operators
@never_cache
@require_http_methods(["GET", "POST"])
def playground(request: PageRequest) -> HttpResponse:
    """Ask for a query, and show what every mode finds of it.

    What is typed comes by POST: it stays out of the addresses that logs keep.
    """
    context: dict[str, Any] = {}
    if request.method == "POST":
        form = PlaygroundForm(request.POST)
        context = _tried(request, form) if form.is_valid() else {}
    else:
        form = PlaygroundForm(initial=_initial(request))
    context |= {"form": form, "suggested": _suggested(request)}
    template = "memory/playground.html" + ("#tried" if request.htmx else "")
    is_refused = form.is_bound and "rows" not in context
    return render(request, template, context, status=422 if is_refused else 200)


def _tried(request: PageRequest, form: PlaygroundForm) -> dict[str, Any]:
    """Return what was found, or what is needed first."""
    value = form.cleaned_data
    agent, user_id, now = value["agent"], value["user_id"], timezone.now()
    if not people.is_known(agent, user_id):
        form.add_error("user_id", _("This agent knows nobody by this name."))
        return {}
    entry: AuditEntry | None = None
    if not trying.is_free(request.user, agent, user_id):
        entry = audit.open_trial(request.user, agent, user_id, now=now)
        # a permission that was taken away ends what it opened
        if entry is None or not request.user.has_perm(VIEW_CONTENT):
            return _asked_why(request, form)
    threshold = value["threshold"]
    found = trial.compare(agent, user_id, form.to_request(), threshold=threshold, now=now)
    if entry:
        audit.note_shown(entry, len(found.rows))
    return {
        "agent": agent,
        "entry": entry,
        "closes_at": entry and entry.created_at + audit.READING_TIME,
        "attempts": found.attempts,
        "rows": found.rows,
        "reading": found.reading,
        "plot": score_plot(found.scores, threshold),
        "threshold": threshold,
        "below": sum(
            all(cell is None or cell.is_below for cell in row.cells) for row in found.rows
        ),
        "is_paused": recall.is_paused(agent, user_id),
    }


def _asked_why(request: PageRequest, form: PlaygroundForm) -> dict[str, Any]:
    """Record the reason that was given and go on, or ask for one; both take the permission."""
    if not request.user.has_perm(VIEW_CONTENT):
        text = _("They are somebody else's; you may not read contents.")
        form.add_error("user_id", text)
        return {}
    why = ReasonForm(request.POST if "reason" in request.POST else None)
    if not why.is_valid():
        return {"why": why}
    value = form.cleaned_data
    trying.note_trial(
        request.user,
        value["agent"],
        value["user_id"],
        reason=why.cleaned_data["reason"],
        now=timezone.now(),
    )
    return _tried(request, form)


def _suggested(request: PageRequest) -> list[str]:
    """Return the user_ids that are one's own."""
    own = Identity.objects.filter(account=request.user).order_by("pk")
    return list(own.values_list("user_id", flat=True)[:20])


def _initial(request: PageRequest) -> dict[str, Any]:
    return {
        "agent": request.GET.get("agent", ""),
        "user_id": request.GET.get("user_id") or next(iter(_suggested(request)), ""),
        "threshold": calibration.MIN_SCORE,
    }
