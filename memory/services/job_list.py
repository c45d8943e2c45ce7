"""Which jobs somebody sees, and how long those that run will take; never what they are told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from memory.errors import UnknownJob
from memory.models import Job, JobState
from memory.services import backlog

ACTIVE = (JobState.PENDING, JobState.RUNNING)
_MANY_VECTORS = 1_000
_KNOWN_AFTER = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a job: how far it came, when it began, how many seconds it took or takes."""

    name: str
    began_at: datetime
    done: int
    total: int | None
    seconds: float
    is_now: bool


def visible_to(account: Any) -> QuerySet[Job]:
    """Return the account's own jobs, newest first; for operators all."""
    return Job.objects.all() if account.is_staff else Job.objects.filter(account_id=account.pk)


def find(account: Any, job_id: int) -> Job:
    """Return a job that the account may see. Raises UnknownJob, for those of others as well."""
    job = visible_to(account).filter(pk=job_id).first()
    if job is None:
        raise UnknownJob(f"There is no job {job_id} of yours.")
    return job


def at_work(account: Any) -> list[Job]:
    """Return what of the account's waits or runs, newest first; of the newest hundred.

    The making of a few vectors, which goes on all the time, is left out.
    """
    # every page asks: what a job is told and where it is may be large
    light = visible_to(account).defer("payload", "log", "checkpoint", "result")
    # each save is followed by one that takes a moment: to show it would be a flicker
    is_brief = Q(kind=backlog.KIND) & (Q(total=None) | Q(total__lt=_MANY_VECTORS))
    return list(light.filter(state__in=ACTIVE).exclude(is_brief)[:100])


def steps_of(job: Job, *, now: datetime) -> list[Step]:
    """Return the latest steps of a job, oldest first."""
    begun = [datetime.fromisoformat(line[0]) for line in job.log]
    ends = [*begun, job.finished_at or now][1:]
    last = len(job.log) - 1
    return [
        Step(
            name=line[1],
            began_at=began,
            done=job.done if place == last else line[2],
            total=job.total if place == last else line[3],
            seconds=max((end - began).total_seconds(), 0),
            is_now=place == last and job.state in ACTIVE,
        )
        for place, (line, began, end) in enumerate(zip(job.log, begun, ends, strict=True))
    ]


def percent(job: Job) -> int | None:
    """Return how much of the present step is done, None where that is not known."""
    return min(round(100 * job.done / job.total), 100) if job.total else None


def seconds_left(job: Job, *, now: datetime) -> float | None:
    """Return how long the present step will take by its rate so far; None while not known."""
    if job.state != JobState.RUNNING or not job.total or not job.log or not job.done:
        return None
    began, _, done_before, _ = job.log[-1]
    past = now - datetime.fromisoformat(began)
    if past < _KNOWN_AFTER or job.done <= done_before:
        return None
    return past.total_seconds() * max(job.total - job.done, 0) / (job.done - done_before)
