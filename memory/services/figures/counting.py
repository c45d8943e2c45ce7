"""Counting what is done, by day, in the transaction that does it.

The user's own figures are rows of the scope; the agent's are sums that name nobody. They are
statistics: nothing is decided by them, and `check_memory` does not look at them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any
from zlib import crc32

from django.db import connections
from django.db.models import F, QuerySet
from django.utils import timezone

from memory import prepared
from memory.models import AgentDay, DayCounts, Scope, ScopeDay

SHARDS = 8
"""On MySQL writes of one agent meet in one of so many rows; SQLite has one writer anyway."""
_NOTED = "_noted_figures"


def day_of(now: datetime) -> date:
    """Return the day that something is counted under, by the server's TIME_ZONE."""
    return timezone.localtime(now, timezone.get_default_timezone()).date()


def note(scope: Scope, now: datetime, **figures: int) -> None:
    """Note what is being done to a locked scope; `write_noted` counts it."""
    noted: dict[date, Counter[str]] = scope.__dict__.setdefault(_NOTED, defaultdict(Counter))
    noted[day_of(now)].update(figures)


def write_noted(scope: Scope) -> None:
    """Count what was noted, in two statements; the last thing that a transaction does.

    So the agent's row, which other users' writes want as well, is held for a moment only, and
    all transactions take rows in one order: memories, scope's day, agent's day.
    """
    for day, figures in scope.__dict__.pop(_NOTED, {}).items():
        alias = str(scope._state.db)
        add_to_scope(alias, scope.pk, day, figures)
        add_to_agent(alias, scope.agent_id, scope.user_id, day, figures)


def add_to_scope(alias: str, scope_id: int, day: date, figures: Mapping[str, int]) -> None:
    """Add to a scope's day, in a transaction."""
    _add(ScopeDay, alias, {"scope_id": scope_id, "day": day}, figures)


def add_to_agent(
    alias: str, agent_id: int, user_id: str, day: date, figures: Mapping[str, int]
) -> None:
    """Add what was done for a user to the agent's day, in a transaction."""
    shard = crc32(user_id.encode()) % SHARDS if connections[alias].vendor == "mysql" else 0
    add_to_day(alias, agent_id, day, shard, figures)


def add_to_day(
    alias: str, agent_id: int, day: date, shard: int, figures: Mapping[str, int]
) -> None:
    """Add to one of the rows of an agent's day, in a transaction."""
    _add(AgentDay, alias, {"agent_id": agent_id, "day": day, "shard": shard}, figures)


def _add(
    model: type[DayCounts], alias: str, key: Mapping[str, Any], figures: Mapping[str, int]
) -> None:
    more = {name: number for name, number in figures.items() if number}
    if not more or _increase(model, alias, key, more):
        return
    # the day's first; an insert that meets another's takes its row for itself, where a plain one
    # would share it, and two would wait for each other
    names_target = connections[alias].features.supports_update_conflicts_with_target
    model._default_manager.using(alias).bulk_create(
        [model(**key)],
        update_conflicts=True,
        update_fields=["day"],
        unique_fields=list(key) if names_target else None,
    )
    _increase(model, alias, key, more)


def _increase(
    model: type[DayCounts], alias: str, key: Mapping[str, Any], more: Mapping[str, int]
) -> int:
    names, columns = list(key), sorted(more)

    def build(*values: Any) -> tuple[QuerySet[DayCounts], dict[str, Any]]:
        rows = model._default_manager.filter(**dict(zip(names, values, strict=False)))
        added = zip(columns, values[len(names) :], strict=True)
        return rows, {column: F(column) + number for column, number in added}

    values = [*key.values(), *(more[column] for column in columns)]
    return prepared.update((model, *columns), build, values, alias)
