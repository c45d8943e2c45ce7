"""Background work: what is done, how far it is, what came of it; to cancel and to try again."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents import audit
from agents.models import Agent, AuditAction
from agents.preferences import PageRequest
from memory.errors import JobNotEnded, UnknownJob
from memory.models import Job, JobState
from memory.numbers import whole_number
from memory.services import job_list, jobs
from memory.services.transfers import exporting, importing, job_files
from memory.services.transfers.exporting import FORMATS
from memory.templatetags.job_tags import KIND_LABELS

PAGE = 30
View = Callable[..., HttpResponseBase]


def for_job(view: View) -> View:
    """Give the view the job of its number; one that is not the account's is not there."""

    @login_required
    @wraps(view)
    def guarded(request: PageRequest, job_id: int, **kwargs: Any) -> HttpResponseBase:
        try:
            job = job_list.find(request.user, job_id)
        except UnknownJob as error:
            raise Http404 from error
        return view(request, job, **kwargs)

    return guarded


@login_required
@require_GET
def job_list_page(request: PageRequest) -> HttpResponse:
    """Show the account's jobs, newest first; for operators those of all."""
    found = job_list.visible_to(request.user)
    kept = {name: request.GET.get(name, "") for name in ("state", "kind")}
    if kept["state"] in JobState.values:
        found = found.filter(state=kept["state"])
    if kept["kind"] in KIND_LABELS:
        found = found.filter(kind=kept["kind"])
    before = whole_number(request.GET.get("before", ""))
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = list(found[: PAGE + 1])
    shown = rows[:PAGE]
    more = urlencode({**kept, "before": shown[-1].pk}) if len(rows) > PAGE else ""
    context = {
        "rows": _described(request, shown),
        "next": f"?{more}" if more else "",
        "states": JobState.choices,
        "kinds": KIND_LABELS.items(),
        "kept": kept,
        "is_narrowed": any(kept.values()) or before,
    }
    return render(request, "memory/jobs.html", context)


@require_GET
@for_job
def row(request: PageRequest, job: Job) -> HttpResponse:
    """Show a job's row; it asks again until the job has ended."""
    [described] = _described(request, [job])
    return render(request, "memory/_job_row.html", {"row": described})


@require_GET
@for_job
def detail(request: PageRequest, job: Job) -> HttpResponse:
    """Show a job's steps and what came of it; a fragment asks again until it has ended."""
    now, is_mine = timezone.now(), job.account_id == request.user.pk
    [described] = _described(request, [job])
    context = {
        "row": described,
        "job": job,
        "steps": job_list.steps_of(job, now=now),
        "seconds_left": job_list.seconds_left(job, now=now),
        "has_ended": jobs.has_ended(job),
        "may_retry": job.state in {JobState.FAILED, JobState.CANCELLED},
        "is_mine": is_mine,
        "failed": is_mine and _failed_rows(job) is not None,
        "export": exporting.file_for(request.user, job, now=now),
        "expires_at": job_files.expires_at(job),
        "is_checked": job.kind == "import_check" and job.state == JobState.DONE and is_mine,
    }
    template = "memory/job.html" + ("#job" if request.htmx else "")
    return render(request, template, context)


@require_POST
@for_job
def cancel(request: PageRequest, job: Job) -> HttpResponse:
    """End a waiting job, or ask a running one to end at its next chunk."""
    if jobs.has_ended(job):
        messages.info(request, _("It had ended already."))
        return redirect("job-detail", job.pk)
    now = timezone.now()
    _note(request, AuditAction.JOB_CANCELLED, job)
    job = jobs.cancel(job.pk, now=now)
    ends = job.state == JobState.CANCELLED
    messages.success(request, _("Cancelled.") if ends else _("It ends after the present chunk."))
    return redirect("job-detail", job.pk)


@require_POST
@for_job
def retry(request: PageRequest, job: Job) -> HttpResponse:
    """Let a failed or cancelled job go on from where it was."""
    try:
        again = jobs.retry(job.pk, now=timezone.now())
    except JobNotEnded:
        messages.info(request, _("Only what failed or was cancelled is tried again."))
        return redirect("job-detail", job.pk)
    _note(request, AuditAction.JOB_RETRIED, job)
    messages.success(request, _("It goes on."))
    return redirect("job-detail", again.pk)


@require_GET
@for_job
def failed(request: PageRequest, job: Job) -> FileResponse:
    """Send the rows that failed, with the reasons, to whose job it is."""
    path = _failed_rows(job) if job.account_id == request.user.pk else None
    if path is None:
        raise Http404
    return _sent(path, f"hippo-{job.pk}-failed.csv", "text/csv; charset=utf-8")


@require_GET
@for_job
def download(request: PageRequest, job: Job) -> FileResponse:
    """Send the file of an export, to whose it is and while it is theirs."""
    path = exporting.file_for(request.user, job, now=timezone.now())
    if path is None:
        raise Http404
    local = timezone.localdate(job.created_at)
    name = f"hippo-{local:%Y-%m-%d}-{job.pk}.{FORMATS[job.payload['format']]}"
    return _sent(path, name, "application/octet-stream")


@login_required
@require_GET
def pill(request: PageRequest) -> HttpResponse:
    """Show what of the account's runs; `job` is what ran when it was asked last."""
    asked = whole_number(request.GET.get("job", ""))
    ended = None
    if asked is not None:
        ended = job_list.visible_to(request.user).filter(pk=asked).first()
        ended = ended if ended and jobs.has_ended(ended) else None
    context = {"at_work": job_list.at_work(request.user), "ended": ended}
    return render(request, "memory/_job_pill.html", context)


def _described(request: PageRequest, found: list[Job]) -> list[dict[str, Any]]:
    """Return jobs with whose they are and about which agent; two queries."""
    agents = Agent.objects.in_bulk({job.agent_id for job in found if job.agent_id})
    ids = {job.account_id for job in found if job.account_id and request.user.is_staff}
    accounts = get_user_model().objects.in_bulk(ids)
    now = timezone.now()
    return [
        {
            "job": job,
            "agent": agents.get(job.agent_id or 0),
            "account": accounts.get(job.account_id or 0),
            "has_ended": jobs.has_ended(job),
            "seconds_left": job_list.seconds_left(job, now=now),
            "file": job.payload.get("file", "") if job.account_id == request.user.pk else "",
        }
        for job in found
    ]


def _failed_rows(job: Job) -> Any:
    name = importing.FAILED if job.kind == "import" else importing.CHECK_FAILED
    return job_files.file_of(job, name) if job.kind in {"import", "import_check"} else None


def _sent(path: Any, name: str, content_type: str) -> FileResponse:
    response = FileResponse(path.open("rb"), as_attachment=True, filename=name)
    response.headers["Content-Type"] = content_type
    response.headers["Cache-Control"] = "private, no-store"
    return response


def _note(request: PageRequest, action: AuditAction, job: Job) -> None:
    """Record what an operator does to a job."""
    if request.user.is_staff:
        agent = Agent.objects.filter(pk=job.agent_id).first() if job.agent_id else None
        detail = f"job {job.pk}: {job.kind}"
        audit.note(request.user, action, agent=agent, detail=detail, now=timezone.now())
