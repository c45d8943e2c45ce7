"""What is done in the background to every agent's memories, in chunks that can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.db.models import QuerySet

from agents.models import Agent
from memory.databases import known_aliases, migrate_store, store_alias
from memory.errors import HippoError
from memory.models import IdempotencyRecord, Memory, MemoryRevision, Scope, Status, StoreState
from memory.querysets import MemoryQuerySet
from memory.services import jobs, maintenance, writing
from memory.services.figures import pruning
from memory.services.golden import questions as golden
from memory.services.jobs import Run
from memory.services.transfers import job_files
from memory.services.writing import SYSTEM, locked_scope

IDEMPOTENCY_HOURS = 24
"""How long the repetition of a request is recognised."""
JOB_DAYS = 30
"""How long an ended job can be looked at."""
_CHUNK = 200


class Incomplete(HippoError):
    """Some stores failed; the others are done."""

    code = "incomplete"


def expire(run: Run, *, now: datetime) -> dict[str, Any]:
    """Move memories whose `expires_at` has passed to the trash; return {"trashed": n}."""

    def trash(agent: Agent) -> Iterator[int]:
        due = Memory.objects.for_agent(agent).kept().filter(expires_at__lte=now)
        yield from _in_chunks(agent, due, _trash_expired, now)

    _for_each_agent(run, trash)
    return {"trashed": run.job.done}


def purge_trash(run: Run, *, now: datetime) -> dict[str, Any]:
    """Erase what has been in the trash for TRASH_DAYS; return {"erased": n}.

    Idempotency records go too, once no client can be repeating their request, jobs that
    ended long ago, the files of those that ended a week ago, and the counts of days long past.
    """
    trashed_before = now - timedelta(days=settings.TRASH_DAYS)
    repeated_before = now - timedelta(hours=IDEMPOTENCY_HOURS)

    def purge(agent: Agent) -> Iterator[int]:
        # what is in the trash does not change, so updated_at is when it got there
        due = Memory.objects.for_agent(agent).filter(
            status=Status.TRASHED, updated_at__lte=trashed_before
        )
        yield from _in_chunks(agent, due, _purge, trashed_before)
        requests = IdempotencyRecord.objects.using(store_alias(agent)).filter(
            scope__in=Scope.objects.for_agent(agent), created_at__lt=repeated_before
        )
        for _ in _in_chunks(agent, requests, _forget_requests, repeated_before):
            yield 0  # a sign of life
        for _ in pruning.condense(agent, now=now):
            yield 0

    _for_each_agent(run, purge)
    jobs.forget_ended(before=now - timedelta(days=JOB_DAYS))
    job_files.sweep(now=now)
    golden.purge(now=now)
    return {"erased": run.job.done}


def optimize_indexes(run: Run, *, now: datetime) -> dict[str, Any]:
    """Merge the full-text index of every store; return {"optimized": [aliases]}."""
    optimized: list[str] = []

    def optimize(alias: str) -> Iterator[int]:
        migrate_store(alias)
        with run.beating():
            if maintenance.optimize(alias):
                optimized.append(alias)
        yield 1

    aliases = known_aliases()
    run.report(done=0, total=len(aliases))
    complete(run, [(alias, optimize, alias) for alias in aliases])
    return {"optimized": optimized}


def reindex(run: Run, *, now: datetime) -> dict[str, Any]:
    """Analyse an agent's memories again; goes on after the last scope that was finished.

    Returns {"reindexed": n}; an agent that is gone has nothing to reindex.
    """
    agent = Agent.objects.filter(pk=run.job.payload["agent_id"]).first()
    if agent is None:
        return {"reindexed": 0}
    after_scope = run.job.checkpoint.get("scope", 0)
    done = run.job.checkpoint.get("done", 0)
    left = Memory.objects.for_agent(agent).filter(scope__gt=after_scope).count()
    run.report(step=agent.name, done=done, total=done + left)
    with run.beating():  # checking and filling an index are long statements
        maintenance.reindex(
            agent,
            run.advance,
            after_scope=after_scope,
            on_scope=lambda scope: run.report(checkpoint={"scope": scope.pk, "done": run.job.done}),
        )
    return {"reindexed": run.job.done}


def _for_each_agent(run: Run, work: Callable[[Agent], Iterator[int]]) -> None:
    configured = Agent.objects.filter(memory_config__isnull=False)
    agents = list(configured.select_related("memory_config").order_by("pk"))
    complete(run, [(agent.name, work, agent) for agent in agents])


def complete(run: Run, pieces: list[tuple[str, Callable[[Any], Iterator[int]], Any]]) -> None:
    """Do every piece, whatever becomes of the others. Raises Incomplete if any failed."""
    failed = {}
    for name, work, subject in pieces:
        run.report(step=name)
        try:
            for count in work(subject):
                run.advance(count)
        except (DatabaseError, HippoError, OSError) as error:
            failed[name] = str(error)
    if failed:
        raise Incomplete("; ".join(f"{name}: {error}" for name, error in failed.items()))


def _in_chunks(
    agent: Agent,
    due: MemoryQuerySet | QuerySet[IdempotencyRecord],
    work: Callable[[Agent, str, list[int], datetime], int],
    moment: datetime,
) -> Iterator[int]:
    """Do `work` on what is due, one user and one transaction at a time; yield the counts.

    A user whose memories take no writes now is left for the next time.
    """
    last = -1
    rows = due.order_by("id").values_list("id", "scope__user_id", "scope__state")
    while chunk := list(rows.filter(pk__gt=last)[:_CHUNK]):
        last = chunk[-1][0]
        takes_writes = [row for row in chunk if row[2] == StoreState.OPEN]
        by_user = sorted(takes_writes, key=lambda row: row[1])
        for user_id, group in groupby(by_user, key=lambda row: row[1]):
            yield work(agent, user_id, [row[0] for row in group], moment)


@writing.retried
def _trash_expired(agent: Agent, user_id: str, ids: list[int], now: datetime) -> int:
    with locked_scope(agent, user_id) as scope:
        due = Memory.objects.of_scope(scope).kept().filter(pk__in=ids, expires_at__lte=now)
        values = {"status": Status.TRASHED}
        return writing.change(scope, due, lambda _: values, actor=SYSTEM, reason="expired", now=now)


@writing.retried
def _purge(agent: Agent, user_id: str, ids: list[int], trashed_before: datetime) -> int:
    with locked_scope(agent, user_id) as scope:
        # restored since: no longer due
        due = Memory.objects.of_scope(scope).filter(
            pk__in=ids, status=Status.TRASHED, updated_at__lte=trashed_before
        )
        ids = list(due.values_list("pk", flat=True))
        MemoryRevision.objects.using(scope._state.db).filter(memory_id__in=ids).delete()
        Memory.objects.of_scope(scope).filter(pk__in=ids).delete()
        return len(ids)


@writing.retried
def _forget_requests(agent: Agent, user_id: str, ids: list[int], before: datetime) -> int:
    with locked_scope(agent, user_id) as scope:
        due = scope.idempotency_records.filter(pk__in=ids, created_at__lt=before)
        return due.delete()[0]
