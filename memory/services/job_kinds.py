"""The kinds of job there are, and how one is done."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, Protocol

from django.db import DatabaseError
from django.utils import timezone, translation

from agents import logs
from agents.models import Agent
from memory.errors import HippoError
from memory.llm.embeddings import EmbeddingFailed
from memory.models import Job
from memory.services import bulk, embedding, jobs, receipts, upkeep
from memory.services.golden import asking as golden
from memory.services.jobs import JobCancelled, JobLost, Run
from memory.services.moves import moving
from memory.services.transfers import exporting, importing

logger = logging.getLogger(__name__)


class Work(Protocol):
    """Does a job in chunks that it reports, and returns the result."""

    def __call__(self, run: Run, *, now: datetime) -> dict[str, Any]: ...


KINDS: dict[str, Work] = {
    "expire": upkeep.expire,
    "purge_trash": upkeep.purge_trash,
    "optimize_indexes": upkeep.optimize_indexes,
    "reindex": upkeep.reindex,
    "move": moving.move,
    "erase_user": receipts.erase_user,
    "bulk": bulk.work,
    "import_check": importing.check,
    "import": importing.take_in,
    "export": exporting.export,
    "embed": embedding.embed,
    "golden": golden.work,
}
WITHOUT_PAYLOAD = ("expire", "purge_trash", "optimize_indexes")
"""The kinds that need not be told anything: they see to every agent."""


class UnknownKind(Exception):
    """A job that this version of Hippo does not know how to do."""


def enqueue_reindex(agent: Agent, *, now: datetime) -> Job:
    """Leave a reindex of one agent to be done; while one waits or runs, return that."""
    return jobs.enqueue("reindex", {"agent_id": agent.pk}, key=f"reindex {agent.pk}", now=now)


def perform(job_id: int) -> None:
    """Do a waiting job and note what came of it; one that is another's ends quietly.

    An error is noted and raised; the reaper sends the job again until it has had its tries.
    """
    run = jobs.claim(job_id, now=timezone.now())
    if run is None:
        return
    with logs.bound(job=run.job.pk, kind=run.job.kind):
        _perform(run)


def _perform(run: Run) -> None:
    job = run.job
    try:
        if "done" in job.checkpoint:
            run.report(done=job.checkpoint["done"])
        with run.living():
            result = _work(job.kind)(run, now=timezone.now())
    except JobLost:
        logger.warning("job %s (%s): another run has it", job.pk, job.kind)
    except JobCancelled:
        run.cancelled()
        logger.info("job %s (%s): cancelled", job.pk, job.kind)
    except Exception as error:
        with translation.override("en"):  # whoever reads it is not the worker
            words = f"{type(error).__name__}: {error}"
        run.fail(words, is_final=not _may_pass(error))
        logger.warning("job %s (%s): failed with %s", job.pk, job.kind, type(error).__name__)
        raise
    else:
        if run.finish(result):
            logger.info("job %s (%s): done", job.pk, job.kind)
        else:
            logger.warning("job %s (%s): another run has it", job.pk, job.kind)


def _work(kind: str) -> Work:
    if kind not in KINDS:
        known = ", ".join(KINDS)
        raise UnknownKind(f"This worker knows no jobs of kind {kind}; it does: {known}.")
    return KINDS[kind]


def _may_pass(error: Exception) -> bool:
    """Return whether another try may do better: what it asked fails, or a store is shut."""
    return isinstance(error, DatabaseError | EmbeddingFailed | HippoError | OSError)
