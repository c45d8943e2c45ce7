"""What somebody should look at, because it will not mend itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from agents import audit
from agents.models import Agent, Identity, Pause
from memory.models import FormerStore, Job, JobState
from memory.services.figures import sums
from memory.services.figures.roster import Entry
from memory.services.figures.sums import Figures

FAILED_DAYS = 7
SILENT_DAYS = 30
CALLED_DAYS = 7
READ_DAYS = 7
_UNANSWERED_DAYS = 3
_FEWEST_RECALLS = 5
"""With fewer recalls than these, none that found anything is no sign."""


@dataclass(frozen=True, slots=True)
class Need:
    """One thing to look at: what kind, how many, and the agents that it is about."""

    kind: str
    count: int
    agents: list[Agent] = field(default_factory=list)


def of_operators(entries: Sequence[Entry], found: Figures, *, now: datetime) -> list[Need]:
    """Return what operators should look at, the worst first; three queries."""
    failed = Job.objects.filter(
        state=JobState.FAILED, finished_at__gte=now - timedelta(days=FAILED_DAYS)
    )
    copies = _with_former_stores()
    long_ago = now - timedelta(days=SILENT_DAYS)
    lately = now - timedelta(days=CALLED_DAYS)
    on = [each for each in entries if each.agent.memory_config.enabled]
    off = [each for each in entries if not each.agent.memory_config.enabled]
    by_kind = {
        "unanswered": [e.agent for e in on if _is_unanswered(found, e.agent.pk)],
        "off_but_called": [e.agent for e in off if e.last_call and e.last_call > lately],
        "old_copy": [each.agent for each in entries if each.agent.pk in copies],
        "never_called": [each.agent for each in on if each.last_call is None],
        "not_called": [e.agent for e in on if e.last_call and e.last_call < long_ago],
    }
    needs = [
        Need("silent_store", len(found.silent)),
        Need("failed_jobs", failed.count()),
        *(Need(kind, len(agents), agents) for kind, agents in by_kind.items()),
    ]
    return [need for need in needs if need.count]


def of_account(account: Any, *, now: datetime) -> list[Need]:
    """Return what an account should know: who does not remember it, who read of it."""
    own = set(Identity.objects.filter(account=account).values_list("user_id", "agent_id"))
    pauses = Pause.objects.filter(user_id__in={user_id for user_id, _ in own})
    paused = {
        pause.agent_id: pause.agent
        for pause in pauses.select_related("agent")
        if own & {(pause.user_id, None), (pause.user_id, pause.agent_id)}
    }
    since = now - timedelta(days=READ_DAYS)
    reads = sum(entry.created_at > since for entry in audit.reads_about(account))
    needs = [Need("read", reads), Need("paused", len(paused), list(paused.values()))]
    return [need for need in needs if need.count]


def _with_former_stores() -> set[int]:
    """Return the agents of which another store holds something, those being moved left out."""
    states = (JobState.PENDING, JobState.RUNNING)
    moving = Job.objects.filter(kind="move", state__in=states).values_list("agent_id", flat=True)
    agents = FormerStore.objects.values_list("agent_id", flat=True)
    return set(agents) - set(moving)


def _is_unanswered(found: Figures, agent_id: int) -> bool:
    """Return whether lately no recall of an agent's found anything, where before some did."""
    days = found.recent.get(agent_id, {})
    begin: date = found.today - timedelta(days=_UNANSWERED_DAYS - 1)
    lately = sums.total(day for each, day in days.items() if each >= begin)
    before = sums.total(day for each, day in days.items() if each < begin)
    is_enough = lately["recalls"] >= _FEWEST_RECALLS
    return is_enough and not lately["answered"] and bool(before["answered"])
