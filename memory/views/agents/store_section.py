"""The section of an agent's stores: which there are, the move at work, what former ones hold."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import Agent, Backend
from agents.preferences import PageRequest
from memory.databases import Place
from memory.errors import BackendUnavailable
from memory.models import Job, JobState
from memory.services import job_list, maintenance
from memory.services.moves import moving, placing, trials

_LOOKED_AT_FOR = timedelta(days=1)
"""So long a move that failed stays on the page."""


def section(request: PageRequest, agent: Agent, **context: Any) -> dict[str, Any]:
    """Return what the section of stores shows; figures of a silent store are None."""
    config = agent.memory_config
    options = {
        backend: {
            "backend": backend,
            "missing": trials.find_missing(backend),
            "trial": trials.try_place(place_of(agent, backend)) if "test" in request.GET else None,
        }
        for backend in (Backend.MYSQL, Backend.SQLITE)
    }
    return {
        "options": options.values(),
        "present": Place.of(config),
        "sqlite_path": context.get("typed_path", config.sqlite_path),
        "count": _count(agent),
        **_moves(agent),
        **context,
    }


def _moves(agent: Agent) -> dict[str, Any]:
    """Return the move at work, or how the last one ended, and what former stores hold."""
    if job := placing.move_at_work(agent):
        return move_context(job)
    last = Job.objects.filter(kind="move", agent_id=agent.pk).order_by("-pk").first()
    former = [
        {"row": row, "place": Place.of(row), "count": count, "state": state}
        for row, _alias, count, state in moving.former_stores(agent)
        if count != 0
    ]
    context: dict[str, Any] = {
        "former": former,
        "stays": sum(each["count"] or 0 for each in former),
    }
    if last and _is_news(last, agent, bool(former)):
        context |= {"ended": last, "target": _target(last)}
    return context


def _is_news(job: Job, agent: Agent, has_copy: bool) -> bool:
    """Return whether how a move ended is still worth a card."""
    if job.state == JobState.DONE:
        return has_copy and bool(job.result) and _target(job) == Place.of(agent.memory_config)
    return bool(job.finished_at and job.finished_at > timezone.now() - _LOOKED_AT_FOR)


def move_context(job: Job) -> dict[str, Any]:
    reached = moving.STEPS.index(job.step) if job.step in moving.STEPS else -1
    steps = [
        {"name": _(name), "is_done": place < reached, "is_now": place == reached}
        for place, name in enumerate(moving.STEPS)
    ]
    return {
        "job": job,
        "target": _target(job),
        "steps": steps,
        "seconds_left": job_list.seconds_left(job, now=timezone.now()),
    }


def _target(job: Job) -> Place:
    return Place(job.payload["backend"], job.payload["sqlite_path"])


def place_of(agent: Agent, backend: str) -> Place:
    return Place(backend, agent.memory_config.sqlite_path if backend == Backend.SQLITE else "")


def _count(agent: Agent) -> int | None:
    try:
        return maintenance.count_memories(agent)
    except (DatabaseError, BackendUnavailable):
        return None
