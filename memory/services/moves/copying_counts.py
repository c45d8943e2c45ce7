"""The figures of each day in two stores: they go with the agent, wherever its memories go."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date
from typing import Any

from agents.models import Agent
from memory.databases import store_alias
from memory.models import FIGURES, AgentDay, Scope, ScopeDay
from memory.services import writing
from memory.services.jobs import Run
from memory.services.moves.holding import Copy, held, lock_scopes, require_frozen

_USERS = 200
_Row = tuple[Any, ...]
"""The values of FIGURES."""
_UserDays = dict[tuple[str, date], _Row]


def sync(copy: Copy, *, since: date | None) -> None:
    """Make the frozen target's figures equal the source's, of all days or `since` one.

    Users that the target does not have are left out: they come with their memories.
    """
    _replace_sums(copy.target, copy.run, _sums(copy.source, since), since)
    for users in _user_chunks(copy.source):
        ours, theirs = (_user_days(each, users, since) for each in (copy.source, copy.target))
        stale = [key for key in theirs if ours.get(key) != theirs[key]]
        new = {key: row for key, row in ours.items() if theirs.get(key) != row}
        if stale or new:
            _replace(copy.target, copy.run, stale, new)
        copy.run.report()


def take_along(source: Agent, target: Agent) -> None:
    """Give `target` the agent's own sums, in its transaction, for a fresh start there."""
    _set_sums(target, _sums(source, None), None)


def _sums(agent: Agent, since: date | None) -> dict[tuple[date, int], _Row]:
    rows = AgentDay.objects.using(store_alias(agent)).filter(agent_id=agent.pk)
    rows = rows.filter(day__gte=since) if since else rows
    return {(row[0], row[1]): row[2:] for row in rows.values_list("day", "shard", *FIGURES)}


@writing.retried
def _replace_sums(
    target: Agent, run: Run, sums: dict[tuple[date, int], _Row], since: date | None
) -> None:
    with held(run, target) as store:
        require_frozen(store)
        _set_sums(target, sums, since)


def _set_sums(target: Agent, sums: dict[tuple[date, int], _Row], since: date | None) -> None:
    rows = AgentDay.objects.using(store_alias(target))
    old = rows.filter(agent_id=target.pk)
    (old.filter(day__gte=since) if since else old).delete()
    rows.bulk_create(
        (
            AgentDay(
                agent_id=target.pk, day=day, shard=shard, **dict(zip(FIGURES, row, strict=True))
            )
            for (day, shard), row in sums.items()
        ),
        batch_size=200,
    )


def _user_chunks(agent: Agent) -> Iterator[set[str]]:
    last = 0
    scopes = Scope.objects.for_agent(agent).order_by("pk").values_list("pk", "user_id")
    while chunk := list(scopes.filter(pk__gt=last)[:_USERS]):
        yield {user_id for _, user_id in chunk}
        last = chunk[-1][0]


def _user_days(agent: Agent, users: Collection[str], since: date | None) -> _UserDays:
    rows = ScopeDay.objects.using(store_alias(agent)).filter(
        scope__kind="user", scope__agent_id=agent.pk, scope__user_id__in=users
    )
    rows = rows.filter(day__gte=since) if since else rows
    found = rows.values_list("scope__user_id", "day", *FIGURES)
    return {(row[0], row[1]): row[2:] for row in found}


@writing.retried
def _replace(target: Agent, run: Run, stale: Collection[tuple[str, date]], new: _UserDays) -> None:
    with held(run, target) as store:
        require_frozen(store)
        scopes = lock_scopes(target, {user_id for user_id, _ in (*stale, *new)})
        rows = ScopeDay.objects.using(store_alias(target))
        for user_id, scope in scopes.items():
            days = [day for name, day in stale if name == user_id]
            if days:
                rows.filter(scope=scope, day__in=days).delete()
        rows.bulk_create(
            (
                ScopeDay(
                    scope_id=scopes[user_id].pk, day=day, **dict(zip(FIGURES, row, strict=True))
                )
                for (user_id, day), row in new.items()
            ),
            batch_size=200,
        )
