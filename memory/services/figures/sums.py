"""What was counted, put together for those who look: an account its own, operators the agents'.

The cost is that of agents and days, or of the account's own scopes; how many memories there are
does not matter. How many an agent has now is the sum of what its scopes keep as statistics.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from django.db import DatabaseError
from django.db.models import Count, Model, QuerySet, Sum

from agents.models import Agent
from memory import latency
from memory.databases import Place, store_alias
from memory.errors import BackendUnavailable
from memory.models import FIGURES, SAVED, TOOK, AgentDay, Scope, ScopeDay
from memory.services import library

logger = logging.getLogger(__name__)

RECENT_DAYS = 14
"""So many days are known of each agent by itself."""
_RECENT = ("recalls", "answered")
Day = Counter[str]
"""The figures of a day, or of several."""


@dataclass(slots=True)
class Figures:
    """What was done on the days asked for, and what there is now.

    `recent` has of each agent its recalls of the last `RECENT_DAYS`; `silent` names the stores
    that did not answer, which are missing in all of it. `is_counted_before`: there are figures
    of days before those asked for, so that a day without any was one.
    """

    first: date
    today: date
    days: dict[date, Day] = field(default_factory=lambda: defaultdict(Counter))
    recent: dict[int, dict[date, Day]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counter))
    )
    memories: Counter[int] = field(default_factory=Counter)
    users: Counter[int] = field(default_factory=Counter)
    silent: list[str] = field(default_factory=list)
    is_counted_before: bool = False

    def all_days(self) -> list[tuple[date, Day]]:
        """Return every day asked for with its figures, oldest first."""
        count = (self.today - self.first).days + 1
        dates = [self.first + timedelta(days=number) for number in range(count)]
        return [(each, self.days.get(each, Counter())) for each in dates]

    def counted_since(self) -> date:
        """Return the first of the days on which anything was counted; today where none was."""
        if self.is_counted_before:
            return self.first
        return min((each for each in self.days if each >= self.first), default=self.today)

    def recent_of(self, agent_id: int) -> Day:
        """Return the sum of an agent's recent days."""
        return total(self.recent.get(agent_id, {}).values())


def of_server(agents: Iterable[Agent], *, first: date, today: date) -> Figures:
    """Return the figures of agents, all users together; four queries a store."""
    found = Figures(first, today)
    for place, own in _by_place(agents).items():
        ids = [agent.pk for agent in own]
        try:
            alias = store_alias(own[0])
            days = AgentDay.objects.using(alias).filter(agent_id__in=ids)
            scopes = Scope.objects.using(alias).filter(kind="user", agent_id__in=ids)
            sums = scopes.values_list("agent_id").annotate(Sum("memory_count"), Count("pk"))
            _add_days(found, days, "agent_id")
            for agent_id, memories, users in sums.order_by():
                found.memories[agent_id] += memories
                found.users[agent_id] += users
        except (DatabaseError, BackendUnavailable) as error:
            _note_silent(found, place, error)
    return found


def of_account(
    account: Any, *, first: date, today: date, agent: str = ""
) -> tuple[Figures, list[Agent]]:
    """Return what agents did for an account, and those that know it; three queries a store more.

    With `agent` only what the agent of this name did. The agents are all, by name.
    """
    shelves, unreachable = library.reachable_shelves(account)
    found = Figures(first, today)
    found.silent = sorted({str(Place.of(each.memory_config)) for each in unreachable})
    by_place: dict[Place, dict[int, int]] = defaultdict(dict)
    for shelf in shelves:
        if agent in {"", shelf.agent.name}:
            by_place[Place.of(shelf.agent.memory_config)][shelf.scope.pk] = shelf.agent.pk
            found.memories[shelf.agent.pk] += shelf.scope.memory_count
            found.users[shelf.agent.pk] += 1
    for place, agent_ids in by_place.items():
        try:
            days = ScopeDay.objects.using(place.alias()).filter(scope_id__in=list(agent_ids))
            _add_days(found, days, "scope_id", agent_ids)
        except DatabaseError as error:
            _note_silent(found, place, error)
    known = {shelf.agent.pk: shelf.agent for shelf in shelves}
    return found, sorted(known.values(), key=lambda each: each.name)


def total(days: Iterable[Day]) -> Day:
    """Return the sum of days."""
    return sum(days, start=Counter())


def saved(day: Day) -> int:
    """Return how many memories were saved, of any type."""
    return sum(day[name] for name in SAVED)


def growth(day: Day) -> int:
    """Return by how many the memories that are not in the trash became more."""
    return saved(day) + day["restored"] - day["deleted"]


def share_answered(day: Day) -> float | None:
    """Return the share of recalls that found something; None where there were none."""
    return day["answered"] / day["recalls"] if day["recalls"] else None


def prefetches(day: Day) -> int:
    """Return how many of the recalls were prefetches."""
    return sum(day[name] for name in TOOK)


def prefetch_ms(day: Day, share: float) -> float | None:
    """Return in how many milliseconds that share of the prefetches were done; see `latency`."""
    return latency.quantile([day[name] for name in TOOK], share)


def counts_by_agent(agents: Sequence[Agent], *, first: date | None = None) -> dict[int, Day]:
    """Return the sums of each agent since it was first counted, or from a day on.

    For who measures the server: the sums never fall, but where an agent is deleted. One query a
    store; agents of a store that does not answer are missing.
    """
    found: dict[int, Day] = {}
    for place, own in _by_place(agents).items():
        ids = [agent.pk for agent in own]
        try:
            days = AgentDay.objects.using(store_alias(own[0])).filter(agent_id__in=ids)
            days = days.filter(day__gte=first) if first else days
            sums = _sums(days, "agent_id", columns=FIGURES)
            found |= {agent_id: Counter() for agent_id in ids}
            found |= {agent_id: day for (agent_id,), day in sums}
        except (DatabaseError, BackendUnavailable) as error:
            logger.warning("store %s does not answer: %s", place, type(error).__name__)
    return found


def _add_days(
    found: Figures, days: QuerySet[Any], owner: str, agent_ids: Mapping[int, int] | None = None
) -> None:
    """Add the days of a store's owners, whom `agent_ids` names an agent where they are none."""
    for (day,), figures in _sums(days.filter(day__gte=found.first), "day", columns=FIGURES):
        found.days[day].update(figures)
    recent = days.filter(day__gt=found.today - timedelta(days=RECENT_DAYS), recalls__gt=0)
    for (owner_id, day), figures in _sums(recent, owner, "day", columns=_RECENT):
        agent_id = agent_ids[owner_id] if agent_ids else owner_id
        found.recent[agent_id][day].update(figures)
    if not found.is_counted_before:
        found.is_counted_before = days.filter(day__lt=found.first).exists()


def _sums(
    rows: QuerySet[Any], *keys: str, columns: Sequence[str]
) -> list[tuple[tuple[Any, ...], Day]]:
    """Return for each value of the keys the sums of the columns; one query."""
    grouped: QuerySet[Model, Any] = rows.order_by().values_list(*keys)
    sums = grouped.annotate(**{f"sum_of_{name}": Sum(name) for name in columns})
    return [
        (row[: len(keys)], Counter(dict(zip(columns, row[len(keys) :], strict=True))))
        for row in sums
    ]


def _by_place(agents: Iterable[Agent]) -> dict[Place, list[Agent]]:
    by_place: dict[Place, list[Agent]] = defaultdict(list)
    for agent in agents:
        by_place[Place.of(agent.memory_config)].append(agent)
    return by_place


def _note_silent(found: Figures, place: Place, error: Exception) -> None:
    logger.warning("store %s does not answer: %s", place, type(error).__name__)
    found.silent.append(str(place))
