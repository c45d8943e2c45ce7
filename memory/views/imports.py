"""Importing a file: uploaded, looked at row by row, and then done by a job."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import DatabaseError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.models import Agent
from agents.preferences import PageRequest
from memory.errors import HippoError
from memory.forms import TYPE_LABELS
from memory.models import Job, JobState
from memory.services import job_kinds
from memory.services.transfers import importing, uploads
from memory.services.transfers.importing import Wish
from memory.services.transfers.intake import Outcome
from memory.services.transfers.uploads import BadUpload
from memory.templatetags.job_tags import OUTCOME_LABELS
from memory.views.jobs import for_job
from memory.views.places import Place, PlaceForm

ROWS = 50
AT_ONCE_BYTES = 256 * 1024
"""What is smaller is looked at while the person waits, which takes less than a second."""


class ImportForm(PlaceForm):
    """A file, where its memories go, and their type where the file does not say."""

    type = forms.ChoiceField(
        label=gettext_lazy("Type of rows that name none"),
        choices=list(TYPE_LABELS.items()),
        initial="reference",
    )
    file = forms.FileField(label=gettext_lazy("File"))
    field_order = ("place", "agent", "user_id", "type", "file")

    def __init__(self, account: Any, *args: Any, **kwargs: Any) -> None:
        self.may_reach_others = account.is_staff
        super().__init__(account, *args, **kwargs)

    def clean_file(self) -> Any:
        """Return the file, unless it is too large."""
        file = self.cleaned_data["file"]
        if file.size > settings.IMPORT_MAX_MB * 1024 * 1024:
            raise forms.ValidationError(uploads.too_large())
        return file


@login_required
@require_http_methods(["GET", "POST"])
def upload(request: PageRequest) -> HttpResponse:
    """Show the form; look at a file, or say why it cannot be imported."""
    form = ImportForm(request.user, request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        try:
            kept = uploads.keep(file.name, file.chunks())
        except BadUpload as error:
            form.add_error("file", str(error))
        else:
            places, is_own = form.chosen()
            wish = Wish(kept, places, form.cleaned_data["type"], is_own)
            job = importing.request_check(request.user, wish, now=timezone.now())
            if file.size <= AT_ONCE_BYTES:
                # what fails is noted in the job, which is shown next
                with suppress(DatabaseError, HippoError, OSError):
                    job_kinds.perform(job.pk)
            return redirect("import-check", job.pk)
    status = 422 if form.errors else 200
    context = {"form": form, "limit": settings.IMPORT_MAX_MB}
    return render(request, "memory/import.html", context, status=status)


@require_GET
@for_job
def check(request: PageRequest, job: Job) -> HttpResponse:
    """Show what would become of every row; until that is known, how far the look is."""
    _require_own(request, job)
    if job.state != JobState.DONE:
        return redirect("job-detail", job.pk)
    outcome = request.GET.get("outcome", "")
    outcome = outcome if outcome in set(Outcome) else ""
    counts = {each: job.result["counts"].get(each, 0) for each in Outcome}
    rows = importing.shown_rows(job, outcome)
    context = {
        "job": job,
        "counts": [(each, OUTCOME_LABELS[each], count) for each, count in counts.items()],
        "outcome": outcome,
        "page": Paginator(rows, ROWS).get_page(request.GET.get("page")),
        "is_cut": len(rows) < (counts[Outcome(outcome)] if outcome else sum(counts.values())),
        "writes": counts[Outcome.NEW] + counts[Outcome.UPDATE],
        "imported": importing.latest_import(job),
        "most": importing.SHOWN_EACH,
        "places": _named(job),
    }
    return render(request, "memory/import_check.html", context)


@require_POST
@for_job
def start(request: PageRequest, job: Job) -> HttpResponse:
    """Begin the import of what was looked at."""
    _require_own(request, job)
    places_are_left = not job.payload["is_own"] or _owns_all(request, job)
    if job.state != JobState.DONE or not places_are_left:
        raise Http404
    if not job.payload["is_own"] and not request.user.is_staff:
        raise Http404
    begun = importing.request(request.user, job, now=timezone.now())
    return redirect("job-detail", begun.pk)


def _named(job: Job) -> list[Place]:
    """Return for which agents and user IDs the rows are meant; those that are gone are none."""
    places = job.payload["places"]
    agents = Agent.objects.in_bulk([agent_id for agent_id, _ in places])
    return [(agents[agent_id], user_id) for agent_id, user_id in places if agent_id in agents]


def _require_own(request: PageRequest, job: Job) -> None:
    """Raise Http404 unless the account itself uploaded the file."""
    if job.kind != "import_check" or job.account_id != request.user.pk:
        raise Http404


def _owns_all(request: PageRequest, job: Job) -> bool:
    """Return whether the places are the account's own still."""
    own = {(agent.pk, user_id) for agent, user_id in ImportForm(request.user).places.values()}
    return all((agent_id, user_id) in own for agent_id, user_id in job.payload["places"])
