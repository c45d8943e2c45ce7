"""What waits for its vector, and when a worker is asked to make it.

A save costs no row and no message: the first in a while lets a thread ask for all of them.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, connections
from django.utils import timezone

from memory.databases import aliases_in_use, open_store
from memory.errors import HippoError
from memory.llm.embeddings import EmbeddingFailed
from memory.models import Job, JobState, MemoryVector, Scope, Store, StoreState
from memory.querysets import MemoryVectorQuerySet
from memory.retrieval import embedder
from memory.services import jobs

KIND = "embed"
WAIT_SECONDS = 2.0
"""So long after a save a worker is asked; saves until then go with it."""
PAUSE = timedelta(minutes=5)
"""A model that failed for all tries of a job is left alone for so long."""
MOST_ATTEMPTS = 8
"""A text that was refused so often is tried once a day, and not counted further."""
_DAY_SECONDS = 24 * 60 * 60

logger = logging.getLogger(__name__)
_lock = threading.Lock()
_is_called = False
_tried: dict[int, float] = {}
"""When this process last tried the texts that were refused once, twice and so on."""


def of_store(alias: str) -> MemoryVectorQuerySet:
    """Return the rows of a store whose vectors are of use: not those of old copies."""
    rows = MemoryVector.objects.using(alias)
    closed = Store.objects.using(alias).exclude(state=StoreState.OPEN)
    agents = list(closed.values_list("agent_id", flat=True))
    if not agents:  # else each row that waits is looked at
        return rows
    scopes = Scope.objects.using(alias).filter(kind="user", agent_id__in=agents)
    return rows.exclude(scope_id__in=scopes.values("pk"))


def due_attempts() -> list[int]:
    """Return how often a text may have been refused to be tried now; 0 is always among it.

    What was refused once is tried after two minutes, twice after four and so on.
    """
    return [0, *filter(_is_due, range(1, MOST_ATTEMPTS + 1))]


def note_tried(attempts: list[int]) -> None:
    """Note that texts which were refused so often are being tried."""
    _tried.update(dict.fromkeys(attempts, time.monotonic()))


def _is_due(attempts: int) -> bool:
    wait = _DAY_SECONDS if attempts == MOST_ATTEMPTS else 60 * 2**attempts
    return attempts not in _tried or time.monotonic() >= _tried[attempts] + wait


def call() -> None:
    """Ask a worker, within `WAIT_SECONDS`, to embed what was just saved."""
    global _is_called
    if settings.EMBEDDINGS == "none" or _is_called:
        return
    with _lock:
        if _is_called:
            return
        _is_called = True
    timer = threading.Timer(WAIT_SECONDS, _ask_and_close)
    timer.daemon = True  # of what a process that ends leaves undone the sweep takes care
    timer.start()


def _ask_and_close() -> None:
    global _is_called
    _is_called = False  # a save from now on may not be seen by the job that is asked for
    try:
        if embedder.current() is not None:
            enqueue(now=timezone.now())
    except DatabaseError as error:
        logger.warning("nobody was asked to embed, the next sweep will: %s", error)
    finally:
        connections.close_all()  # those of this thread, which ends


def sweep(*, now: datetime) -> Job | None:
    """Leave a job where something waits that may be tried now; beat calls it."""
    model = embedder.current()
    if model is None or not any(_has_due(alias, model.model) for alias in aliases_in_use()):
        return None
    return enqueue(now=now)


def _has_due(alias: str, model: str) -> bool:
    try:
        open_store(alias)
        rows = of_store(alias).pending(model)
        return rows.filter(attempts__in=due_attempts()).exists()
    except (DatabaseError, HippoError, OSError) as error:
        logger.warning("store %s: nobody knows what waits to be embedded: %s", alias, error)
        return False


def enqueue(*, now: datetime) -> Job | None:
    """Leave what waits to be embedded, and return the job; None after a failure of late.

    One that failed goes on: an outage is one job, however long it is.
    """
    latest = latest_job()
    if latest is None or latest.state != JobState.FAILED:
        return jobs.enqueue(KIND, now=now)
    if latest.finished_at and latest.finished_at > now - PAUSE:
        return None
    return jobs.retry(latest.pk, now=now)


def ask_at_once(*, now: datetime) -> None:
    """Have what waits embedded now, whatever failed before: another model was chosen."""
    if embedder.current() is None:
        return
    latest = latest_job()
    if latest and latest.state == JobState.FAILED:
        jobs.retry(latest.pk, now=now)
    elif latest and latest.state == JobState.PENDING:
        jobs.send(latest.pk)  # it was waiting for its next try
    else:
        jobs.enqueue(KIND, now=now)


def latest_job() -> Job | None:
    """Return the job that embeds, or the last one that did."""
    return Job.objects.filter(kind=KIND).order_by("-pk").first()


def failure() -> str:
    """Return what the model says, if it failed when it was last asked; one query."""
    job = latest_job()
    if job is None or job.state in {JobState.DONE, JobState.CANCELLED}:
        return ""
    kind, _sign, said = job.error.partition(": ")
    return said.rstrip(".。") if kind == EmbeddingFailed.__name__ else ""
