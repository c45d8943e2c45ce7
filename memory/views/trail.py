"""The audit: who did what, for operators; nobody changes it here."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents import trail
from agents.models import Agent, AuditAction, AuditEntry
from agents.preferences import PageRequest
from agents.roles import for_operators
from memory.forms import DAYS
from memory.services.transfers.cells import guarded

ENTRIES = 50
COLUMNS = (
    "created_at", "action", "actor", "subject", "user_id", "agent", "reason", "detail", "count",
)  # fmt: skip


class TrailForm(forms.Form):
    """What narrows the audit; all of it may be empty, and what is no date is left out."""

    action = forms.ChoiceField(
        label=_("Action"), required=False, choices=[("", _("every action")), *AuditAction.choices]
    )
    actor = forms.CharField(label=_("Who"), required=False, max_length=150)
    about = forms.CharField(
        label=_("User name or user ID"), required=False, max_length=255, strip=False
    )
    agent = forms.CharField(
        label=_("Agent"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"list": "agent-names"}),
    )
    since = forms.DateField(
        label=_("From"),
        required=False,
        validators=DAYS,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    until = forms.DateField(
        label=_("To"),
        required=False,
        validators=DAYS,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def wanted(self) -> trail.Wanted:
        """Return the filter; days are those of the reader's time zone, the last one included."""
        value: dict[str, Any] = self.cleaned_data
        since, until = value.get("since"), value.get("until")
        return trail.Wanted(
            action=value.get("action", ""),
            actor=value.get("actor", ""),
            about=value.get("about", ""),
            agent=value.get("agent", ""),
            since=timezone.make_aware(datetime.combine(since, time.min)) if since else None,
            until=(
                timezone.make_aware(datetime.combine(until + timedelta(days=1), time.min))
                if until
                else None
            ),
        )

    @property
    def narrowing(self) -> dict[str, str]:
        """Return what an address needs to narrow the audit in the same way."""
        return {name: self.data[name] for name in self.fields if self.data.get(name)}


@for_operators
@never_cache
@require_GET
def audit(request: PageRequest) -> HttpResponse:
    """Show a page of the audit, newest first."""
    form = TrailForm(request.GET)
    is_valid = form.is_valid()
    try:
        entries, following = trail.page(form.wanted(), request.GET.get("cursor", ""), limit=ENTRIES)
    except trail.NoCursor as error:
        raise Http404 from error
    kept = form.narrowing
    context = {
        "form": form,
        "entries": entries,
        "next": f"?{urlencode({**kept, 'cursor': following})}" if following else "",
        "narrowing": urlencode(kept),
        "agents": Agent.objects.values_list("name", flat=True),
    }
    template = "memory/audit.html" + ("#audit" if request.htmx else "")
    return render(request, template, context, status=200 if is_valid else 422)


@for_operators
@never_cache
@require_GET
def export(request: PageRequest, kind: str) -> StreamingHttpResponse:
    """Send the entries that the filters leave, all of them, as CSV or as JSON lines."""
    form = TrailForm(request.GET)
    if kind not in _WRITERS or not form.is_valid():
        raise Http404
    write, content_type = _WRITERS[kind]
    answer = StreamingHttpResponse(write(trail.walk(form.wanted())), content_type=content_type)
    name = f"hippo-audit-{timezone.localdate():%Y-%m-%d}.{kind}"
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


class _Line:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _csv(entries: Iterable[AuditEntry]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield "\ufeff"  # without it Excel takes Chinese for something else
    yield writer.writerow(COLUMNS)
    for entry in entries:
        yield writer.writerow([guarded(str(value)) for value in _record(entry).values()])


def _jsonl(entries: Iterable[AuditEntry]) -> Iterator[str]:
    for entry in entries:
        yield f"{json.dumps(_record(entry), ensure_ascii=False)}\n"


_WRITERS = {
    "csv": (_csv, "text/csv; charset=utf-8"),
    "jsonl": (_jsonl, "application/x-ndjson; charset=utf-8"),
}


def _record(entry: AuditEntry) -> dict[str, str | int]:
    values = (
        entry.created_at.astimezone(UTC).isoformat(),
        entry.action,
        entry.actor_name,
        entry.subject_name,
        entry.user_id,
        entry.agent_name,
        entry.reason,
        entry.detail,
        entry.count,
    )
    return dict(zip(COLUMNS, values, strict=True))
