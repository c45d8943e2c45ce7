"""Background work; beat's schedule is in the settings."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from memory.services import backlog, job_kinds, jobs
from memory.services.health import pulses
from memory.services.moves import moving


@shared_task
def run_job(job_id: int) -> None:
    """Do one job."""
    job_kinds.perform(job_id)


@shared_task
def enqueue_job(kind: str) -> None:
    """Leave a job that takes no payload to be done; beat calls it."""
    jobs.enqueue(kind, now=timezone.now())


@shared_task
def sweep_backlog() -> None:
    """Leave a job where something waits for its vector; saves ask for one themselves."""
    backlog.sweep(now=timezone.now())


@shared_task
def reap_jobs() -> None:
    """Send again what has been silent, and open what a dead move left shut."""
    pulses.note(pulses.ROUND)
    jobs.reap(now=timezone.now())
    moving.reopen_abandoned(now=timezone.now())
