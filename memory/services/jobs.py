"""The life of a job: its row in `default` is the truth, a message only says that it is there.

A lost message or a killed worker loses nothing: the reaper sends what has been silent for
`SILENCE` again. A run writes only while it holds the claim, so no job ends twice.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from celery import current_app
from django.db import DEFAULT_DB_ALIAS, DatabaseError, IntegrityError, connections, transaction
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

from memory.errors import JobNotEnded, UnknownJob
from memory.models import Job, JobState

SILENCE = timedelta(minutes=1)
"""After this long without a sign of life a run counts as dead, and a message as lost."""
MAX_ATTEMPTS = 5
TASK = "memory.tasks.run_job"
_BEAT_SECONDS = 10
_STUCK_SECONDS = 600
_LOG_LINES = 50
_BROKER_SECONDS = 3
_BROKER_OPTIONS = {"max_retries": 0, "socket_connect_timeout": _BROKER_SECONDS}
_ACTIVE = (JobState.PENDING, JobState.RUNNING)

logger = logging.getLogger(__name__)


class JobCancelled(Exception):
    """Somebody asked that the run end."""


class JobLost(Exception):
    """The job is another run's by now, or has ended; this run must write nothing more."""


def enqueue(
    kind: str,
    payload: Mapping[str, Any] | None = None,
    *,
    key: str = "",
    account_id: int | None = None,
    now: datetime,
) -> Job:
    """Leave work to be done and return its job; sent to a worker once it is committed.

    While a job with the same `key` (by default `kind`) waits or runs, that one is returned.
    `account_id` is who asked for it. The payload's `agent_id` becomes the job's own.
    """
    key = key or kind
    payload = dict(payload or {})
    values = {"kind": kind, "key": key, "payload": payload, "account_id": account_id}
    values["agent_id"] = payload.get("agent_id")
    while True:
        try:
            with transaction.atomic(using=DEFAULT_DB_ALIAS):
                job = Job.objects.create(active_key=key, created_at=now, heartbeat_at=now, **values)
        except IntegrityError:
            if present := Job.objects.filter(active_key=key).first():
                return present
            continue  # it ended between the two
        transaction.on_commit(partial(send, job.pk), using=DEFAULT_DB_ALIAS)
        return job


def send(job_id: int) -> None:
    """Tell the workers of a job; where the broker fails, the reaper will.

    Returns at once where the broker refuses, and after `_BROKER_SECONDS` where it is silent.
    """
    try:
        # a connection of its own: the pool's try again for seconds, and a request waits
        with current_app.connection_for_write(transport_options=_BROKER_OPTIONS) as connection:
            current_app.send_task(TASK, [job_id], connection=connection, retry=False)
    except (BrokerError, OSError) as error:
        logger.warning("job %s: the broker fails, the reaper will send it: %s", job_id, error)


def find(job_id: int) -> Job:
    """Return a job. Raises UnknownJob."""
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        raise UnknownJob(f"There is no job {job_id}; list the jobs to find its number.")
    return job


def progress(job: Job) -> str:
    """Return how far a job is in a few characters: "120/500", or "120" where no total is known."""
    return str(job.done) if job.total is None else f"{job.done}/{job.total}"


def has_ended(job: Job) -> bool:
    """Return whether nothing more comes of a job."""
    return job.state not in _ACTIVE


class Run:
    """One worker's hold on a job: what it reports, and whether it may go on."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._reported_at = time.monotonic()
        self._mine = Job.objects.filter(pk=job.pk, claim=job.claim, state=JobState.RUNNING)

    def report(self, **progress: Any) -> None:
        """Write `step`, `done`, `total` or `checkpoint`, and a sign of life.

        Call it after every chunk. A new step, and how far the one before came, goes into the
        job's log.
        Raises JobLost, and JobCancelled where somebody asked for that.
        """
        if progress.get("step", self.job.step) != self.job.step:
            progress["log"] = self._logged(progress["step"], progress.get("done", self.job.done))
        with transaction.atomic(using=DEFAULT_DB_ALIAS):
            if not self._mine.update(heartbeat_at=timezone.now(), **progress):
                raise JobLost(f"Job {self.job.pk} is no longer this run's.")
            asked = self._mine.values_list("is_cancel_requested", flat=True).first()
        self._reported_at = time.monotonic()
        for name, value in progress.items():
            setattr(self.job, name, value)
        if asked:
            raise JobCancelled

    def _logged(self, step: str, done: int) -> list[list[Any]]:
        """Return the log with the new step, after how far the last one came.

        A step that another run began has done something already.
        """
        log = [list(line) for line in self.job.log[-_LOG_LINES:]]
        goes_on = bool(log) and log[-1][1] == step
        if log:
            log[-1][2:] = [self.job.done, self.job.total]
        return [*log, [timezone.now().isoformat(), step, done if goes_on else 0, None]]

    def advance(self, count: int) -> None:
        """Report `count` more as done; what came after the total was counted raises it."""
        done, total = self.job.done + count, self.job.total
        self.report(done=done, total=total if total is None else max(total, done))

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Give signs of life during one long statement, which cannot report."""
        with self._beats(lambda: True):
            yield
        self.report()

    @contextmanager
    def living(self) -> Iterator[None]:
        """Give signs of life while the run reports now and then.

        A chunk that takes long, on a slow disk, is not taken for a dead worker; one that
        never comes to its end is.
        """
        with self._beats(lambda: time.monotonic() < self._reported_at + _STUCK_SECONDS):
            yield

    @contextmanager
    def _beats(self, is_alive: Callable[[], bool]) -> Iterator[None]:
        stopped = threading.Event()
        thread = threading.Thread(target=self._beat, args=[stopped, is_alive], daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def _beat(self, stopped: threading.Event, is_alive: Callable[[], bool]) -> None:
        try:
            while not stopped.wait(_BEAT_SECONDS):
                if not is_alive():
                    continue
                try:
                    self._mine.update(heartbeat_at=timezone.now())
                except DatabaseError as error:  # the next one may come through
                    logger.warning("job %s: no sign of life: %s", self.job.pk, error)
                    connections[DEFAULT_DB_ALIAS].close()
        finally:
            connections[DEFAULT_DB_ALIAS].close()

    def finish(self, result: Mapping[str, Any]) -> bool:
        """End the job well; return whether it was still this run's."""
        return self._end(JobState.DONE, result=dict(result), error="")

    def cancelled(self) -> bool:
        """End the job as cancelled; what was done stays done."""
        return self._end(JobState.CANCELLED)

    def fail(self, error: str, *, is_final: bool) -> None:
        """Note an error; unless it is final the job waits `SILENCE` for another try."""
        if is_final or self.job.attempts >= MAX_ATTEMPTS:
            self._end(JobState.FAILED, error=error)
            return
        again = {"state": JobState.PENDING, "claim": "", "heartbeat_at": timezone.now()}
        self._mine.update(**again, error=error)

    def _end(self, state: JobState, **values: Any) -> bool:
        ended = {"state": state, "active_key": None, "claim": "", "finished_at": timezone.now()}
        return bool(self._mine.update(**ended, **values))


def claim(job_id: int, *, now: datetime) -> Run | None:
    """Take a waiting job; None where it is another's or has ended: that ends quietly."""
    taken = Job.objects.filter(pk=job_id, state=JobState.PENDING).update(
        state=JobState.RUNNING,
        claim=(token := str(uuid.uuid4())),
        attempts=F("attempts") + 1,
        # so that the log says when the step was taken up again
        step="",
        heartbeat_at=now,
        started_at=Coalesce(F("started_at"), now),
    )
    job = Job.objects.filter(pk=job_id, claim=token).first() if taken else None
    return Run(job) if job else None


def cancel(job_id: int, *, now: datetime) -> Job:
    """End a waiting job; ask a running one to end at its next chunk. Raises UnknownJob."""
    find(job_id)
    # asked first: a run that ends between the two, or begins, meets one of them
    Job.objects.filter(pk=job_id, state__in=_ACTIVE).update(is_cancel_requested=True)
    Job.objects.filter(pk=job_id, state=JobState.PENDING).update(
        state=JobState.CANCELLED, active_key=None, finished_at=now
    )
    return find(job_id)


def retry(job_id: int, *, now: datetime) -> Job:
    """Let a failed or cancelled job go on from its checkpoint, and return it.

    Where another job of its key waits or runs, that one is returned.
    Raises UnknownJob, and JobNotEnded where it waits or runs or is done.
    """
    job = find(job_id)
    if job.state not in {JobState.FAILED, JobState.CANCELLED}:
        raise JobNotEnded(f"Job {job_id} is {job.state}; only failed and cancelled ones go on.")
    again = {"state": JobState.PENDING, "active_key": job.key, "attempts": 0, "error": ""}
    try:
        with transaction.atomic(using=DEFAULT_DB_ALIAS):
            Job.objects.filter(pk=job_id, state=job.state).update(
                is_cancel_requested=False, heartbeat_at=now, finished_at=None, **again
            )
    except IntegrityError:
        return Job.objects.filter(active_key=job.key).first() or find(job_id)
    transaction.on_commit(partial(send, job_id), using=DEFAULT_DB_ALIAS)
    return find(job_id)


def reap(*, now: datetime) -> list[int]:
    """Send again what has been silent for `SILENCE`; return the ids of those jobs.

    A dead run loses its claim. After `MAX_ATTEMPTS` runs the job has failed.
    """
    silent = Job.objects.filter(state__in=_ACTIVE, heartbeat_at__lt=now - SILENCE)
    sent = []
    for job in silent.order_by("pk"):
        seen = silent.filter(pk=job.pk, claim=job.claim, state=job.state)
        if job.is_cancel_requested:
            seen.update(state=JobState.CANCELLED, active_key=None, claim="", finished_at=now)
        elif job.state == JobState.RUNNING and job.attempts >= MAX_ATTEMPTS:
            error = f"The worker died {job.attempts} times during this job; its log may say why."
            seen.update(
                state=JobState.FAILED, active_key=None, claim="", finished_at=now, error=error
            )
            logger.error("job %s (%s): %s", job.pk, job.kind, error)
        elif seen.update(state=JobState.PENDING, claim="", heartbeat_at=now):
            logger.warning("job %s (%s): silent, sent again", job.pk, job.kind)
            send(job.pk)
            sent.append(job.pk)
    return sent


def forget_ended(*, before: datetime) -> int:
    """Delete the rows of jobs that ended before a moment; return how many."""
    ended = Job.objects.exclude(state__in=_ACTIVE).filter(finished_at__lt=before)
    return ended.delete()[0]
