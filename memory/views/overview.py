"""The first page: what was remembered and recalled, and what somebody should look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Case, QuerySet, Value, When
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from agents.models import Agent, Identity
from agents.preferences import PageRequest
from memory.models import Job, JobState
from memory.services import job_kinds
from memory.services.figures import attention, roster, sums
from memory.views.dash import RANGES, Span, figures_context

BUSIEST = 10
_JOBS = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """What the page is to show: the server's figures or one's own, of how many days, of whom."""

    is_server: bool
    days: int
    agent: str

    @classmethod
    def by(cls, request: PageRequest) -> Asked:
        """Return what a request asks for; what makes no sense is as if not said."""
        days = request.GET.get("days", "")
        return cls(
            is_server=request.user.is_staff and request.GET.get("of") != "mine",
            days=int(days) if days in map(str, RANGES) else RANGES[1],
            agent=request.GET.get("agent", ""),
        )


@login_required
@require_GET
def overview(request: PageRequest) -> HttpResponse:
    """Show figures, needs, agents and jobs; a fragment where htmx asks for one."""
    asked, now = Asked.by(request), timezone.now()
    if request.htmx.target == "jobs":
        chosen = Agent.objects.filter(name=asked.agent).first() if asked.agent else None
        context = {"asked": asked, **_jobs(request, asked, chosen)}
        return render(request, "memory/overview.html#jobs", context)
    context = _of_server(request, asked, now) if asked.is_server else _mine(request, asked, now)
    part = "#dash" if request.htmx.target == "dash" else ""
    return render(request, f"memory/overview.html{part}", {"asked": asked, **context})


def _of_server(request: PageRequest, asked: Asked, now: datetime) -> dict[str, Any]:
    entries = roster.entries(now=now)
    agents = [entry.agent for entry in entries]
    chosen = _chosen(agents, asked.agent)
    shown = [entry for entry in entries if chosen in {None, entry.agent}]
    span = Span.until(now, asked.days)
    own = [entry.agent for entry in shown]
    found = sums.of_server(own, first=span.earliest, today=span.today)
    return {
        "agents": agents,
        "chosen": chosen,
        "rows": _rows(own, found, span),
        "has_own": Identity.objects.filter(account=request.user).exists(),
        "is_called": any(entry.last_call for entry in entries) or any(found.recent.values()),
        "needs": attention.of_operators(shown, found, now=now),
        **figures_context(found, span),
        **_jobs(request, asked, chosen),
    }


def _mine(request: PageRequest, asked: Asked, now: datetime) -> dict[str, Any]:
    span = Span.until(now, asked.days)
    found, agents = sums.of_account(
        request.user, first=span.earliest, today=span.today, agent=asked.agent
    )
    chosen = _chosen(agents, asked.agent)
    return {
        "agents": agents,
        "chosen": chosen,
        "rows": _rows([chosen] if chosen else agents, found, span),
        "has_own": request.user.is_staff,
        "needs": attention.of_account(request.user, now=now),
        **figures_context(found, span),
        **_jobs(request, asked, chosen),
    }


def _chosen(agents: list[Agent], name: str) -> Agent | None:
    """Return the agent that was chosen, None for all. Raises Http404 for one that is not there."""
    if not name:
        return None
    found = next((agent for agent in agents if agent.name == name), None)
    if found is None:
        raise Http404
    return found


def _rows(agents: list[Agent], found: sums.Figures, span: Span) -> list[dict[str, Any]]:
    """Return what is said of the agents with the most recalls."""
    recalls = {agent.pk: found.recent_of(agent.pk)["recalls"] for agent in agents}
    busiest = sorted(agents, key=lambda agent: (-recalls[agent.pk], agent.name))
    return [_row(agent, found, span) for agent in busiest[:BUSIEST]]


def _row(agent: Agent, found: sums.Figures, span: Span) -> dict[str, Any]:
    recent = found.recent_of(agent.pk)
    return {
        "agent": agent,
        "memories": found.memories[agent.pk],
        "recalls": recent["recalls"],
        "answered": sums.share_answered(recent),
        "spark": span.recent_spark(found, agent),
    }


def _jobs(request: PageRequest, asked: Asked, chosen: Agent | None) -> dict[str, Any]:
    """Return the jobs that are at work and the latest ended, without what the schedule got done."""
    jobs: QuerySet[Job] = Job.objects.defer("payload", "log", "checkpoint")
    if not asked.is_server:
        jobs = jobs.filter(account_id=request.user.pk)
    elif chosen:
        jobs = jobs.filter(agent_id=chosen.pk)
    routine = {"kind__in": job_kinds.WITHOUT_PAYLOAD, "state": JobState.DONE}
    active = [JobState.PENDING, JobState.RUNNING]
    first = Case(When(state__in=active, then=Value(0)), default=Value(1))
    shown = list(jobs.exclude(**routine).order_by(first, "-pk")[:_JOBS])
    return {"jobs": shown, "is_working": any(job.state in active for job in shown)}
