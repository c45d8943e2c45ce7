"""Keeping the rows of past days few, however many years an agent works."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date, datetime, timedelta

from django.db import transaction
from django.db.models import Q

from agents.models import Agent
from memory.databases import store_alias
from memory.models import FIGURES, AgentDay, Scope, ScopeDay
from memory.services import writing
from memory.services.figures import counting

DAYS = 400
"""So many days are kept one by one."""
BEFORE = date(1970, 1, 1)
"""The day under which an agent's older days are summed up, so that totals never fall."""
_CHUNK = 500


def condense(agent: Agent, *, now: datetime) -> Iterator[int]:
    """Sum up an agent's past days in one row each, and drop users' days past `DAYS`.

    Yields how many rows went, a chunk at a time.
    """
    today = counting.day_of(now)
    oldest = today - timedelta(days=DAYS)
    while removed := _drop(agent, oldest):
        yield removed
    # yesterday may still be written to
    while removed := _sum_up(agent, today - timedelta(days=1), oldest):
        yield removed


def _drop(agent: Agent, oldest: date) -> int:
    rows = ScopeDay.objects.using(store_alias(agent)).filter(day__lt=oldest)
    ids = list(rows.filter(scope__in=Scope.objects.for_agent(agent)).values_list("pk")[:_CHUNK])
    return rows.filter(pk__in=[pk for (pk,) in ids]).delete()[0] if ids else 0


@writing.retried
def _sum_up(agent: Agent, before: date, oldest: date) -> int:
    alias = store_alias(agent)
    rows = AgentDay.objects.using(alias).filter(agent_id=agent.pk, day__lt=before)
    scattered = rows.filter(Q(shard__gt=0) | Q(day__lt=oldest, day__gt=BEFORE))
    with transaction.atomic(using=alias):
        chunk = list(scattered.select_for_update().order_by("pk")[:_CHUNK])
        sums: dict[date, dict[str, int]] = defaultdict(lambda: dict.fromkeys(FIGURES, 0))
        for row in chunk:
            day = row.day if row.day >= oldest else BEFORE
            for name in FIGURES:
                sums[day][name] += getattr(row, name)
        rows.filter(pk__in=[row.pk for row in chunk]).delete()
        for day, figures in sorted(sums.items()):
            counting.add_to_day(alias, agent.pk, day, 0, figures)
    return len(chunk)
