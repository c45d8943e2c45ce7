"""Exporting memories: chosen by the filters of the list, written by a job."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from agents import audit
from agents.models import AuditAction
from agents.preferences import PageRequest
from agents.roles import VIEW_CONTENT
from memory.forms import BrowseForm
from memory.services.transfers import exporting
from memory.services.transfers.exporting import Choice
from memory.views.people import validate_reason
from memory.views.places import PlaceForm

_FILTERS = ("type", "tag", "after", "before", "status", "kind", "source", "importance", "unused")
FORMAT_LABELS = {
    "jsonl": gettext_lazy("JSON lines: everything, with all earlier versions"),
    "csv": gettext_lazy("Table (CSV), for spreadsheets"),
    "markdown": gettext_lazy("Markdown, a file for each memory, in a ZIP"),
}


class ExportForm(PlaceForm):
    """Whose memories, in which format; for others' a reason."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("At least ten characters. Whoever the memories are about sees it."),
    )
    format = forms.ChoiceField(label=gettext_lazy("Format"), choices=list(FORMAT_LABELS.items()))
    field_order = ("place", "agent", "user_id", "reason", "format")

    ALL_LABEL = gettext_lazy("all")

    def __init__(self, account: Any, *args: Any, **kwargs: Any) -> None:
        self.may_reach_others = account.is_staff and account.has_perm(VIEW_CONTENT)
        super().__init__(account, *args, **kwargs)
        if not self.may_reach_others:
            del self.fields["reason"]

    def clean(self) -> dict[str, Any]:
        """Return the fields, if there is a reason where one is due."""
        cleaned = super().clean()
        if not self.errors:
            _places, is_own = self.chosen()
            if not is_own:
                try:
                    validate_reason(cleaned["reason"])
                except ValidationError as error:
                    self.add_error("reason", error)
        return cleaned


@login_required
@require_http_methods(["GET", "POST"])
def export(request: PageRequest) -> HttpResponse:
    """Show the form, filled in with what the list was narrowed to; leave an export to be done."""
    now = timezone.now()
    given = request.POST if request.method == "POST" else request.GET
    browse = BrowseForm(given)
    form = ExportForm(request.user, request.POST or None, initial=_initial(request, browse))
    if request.method == "POST" and form.is_valid() and _can_be_met(form, browse):
        places, is_own = form.chosen()
        entry = 0
        if not is_own:
            # committed before anything is read: no export without a record
            [(agent, user_id)] = places
            reason, action = form.cleaned_data["reason"], AuditAction.EXPORTED
            noted = audit.note_content_read(
                request.user, agent, user_id, reason=reason, now=now, action=action
            )
            entry = noted.pk
        choice = Choice(places, browse.to_filter(now=now), form.cleaned_data["format"], entry)
        job = exporting.request(request.user, choice, now=now)
        return redirect("job-detail", job.pk)
    context = {"form": form, "filters": [browse[name] for name in _FILTERS]}
    return render(request, "memory/export.html", context, status=422 if form.errors else 200)


def _can_be_met(form: ExportForm, browse: BrowseForm) -> bool:
    """Return whether every filter is understood; one that is not must not let everything out."""
    for name in browse.errors.keys() & {*_FILTERS, "q", "type"}:
        form.add_error(
            None, f"{browse.fields[name].label}: {' '.join(map(str, browse.errors[name]))}"
        )
    after, before = (browse.cleaned_data.get(name) for name in ("after", "before"))
    if after and before and after > before:
        form.add_error(None, _("The first day comes after the last: nothing lies between."))
    return form.is_valid()


def _initial(request: PageRequest, browse: BrowseForm) -> dict[str, Any]:
    """Return the place that the list showed."""
    own = ExportForm(request.user).places
    named = [value for value, (agent, _user) in own.items() if agent.name == browse.value["agent"]]
    return {"place": named[0] if named else ("*" if len(own) > 1 else next(iter(own), ""))}
