"""What became of an agent, newest first: what operators did with it, and the jobs about it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from agents.models import Agent, AuditEntry
from memory.models import Job


@dataclass(frozen=True, slots=True)
class Event:
    """Either an entry of the audit or a job; neither holds what memories say."""

    at: datetime
    entry: AuditEntry | None = None
    job: Job | None = None


def of_agent(agent: Agent, *, page: int, size: int) -> tuple[list[Event], bool]:
    """Return a page of events, from 1, and whether there are more; two queries.

    A page far back costs as much as all before it.
    """
    upto = page * size + 1
    entries = AuditEntry.objects.filter(agent=agent).order_by("-created_at", "-pk")[:upto]
    jobs = Job.objects.filter(agent_id=agent.pk).defer("payload", "log", "checkpoint")
    merged = heapq.merge(
        (Event(entry.created_at, entry=entry) for entry in entries),
        (Event(job.created_at, job=job) for job in jobs.order_by("-pk")[:upto]),
        key=lambda event: event.at,
        reverse=True,
    )
    found = list(islice(merged, (page - 1) * size, upto))
    return found[:size], len(found) > size
