"""Idempotency records in two stores: a repetition after a move is still recognised."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from agents.models import Agent
from memory.databases import store_alias
from memory.models import IdempotencyRecord
from memory.services import writing
from memory.services.jobs import Run
from memory.services.moves.holding import Copy, held, lock_scopes, require_frozen

_CHUNK = 500


def sync(copy: Copy) -> None:
    """Make the target's records equal the source's; they are those of a day."""
    for chunk in chunks(copy.source):
        theirs = _matching(copy.target, chunk)
        new = [each for each in chunk if not _same(each, theirs.get(_name_of(each)))]
        if new:
            stale = [theirs[_name_of(each)].pk for each in new if _name_of(each) in theirs]
            _replace(copy.target, copy.run, stale, new)
        copy.run.report()
    for chunk in chunks(copy.target):
        ours = _matching(copy.source, chunk)
        stale = [each.pk for each in chunk if _name_of(each) not in ours]
        if stale:
            _replace(copy.target, copy.run, stale, [])
        copy.run.report()


def chunks(agent: Agent) -> Iterator[list[IdempotencyRecord]]:
    """Yield the agent's idempotency records with their scopes, in chunks."""
    last = 0
    while chunk := list(_records(agent).filter(pk__gt=last).order_by("pk")[:_CHUNK]):
        yield chunk
        last = chunk[-1].pk


def state(record: IdempotencyRecord) -> tuple[Any, ...]:
    """Return what of an idempotency record must be the same in every store."""
    return (
        record.scope.user_id,
        record.key,
        record.fingerprint,
        record.outcome,
        record.created_at,
    )


@writing.retried
def _replace(target: Agent, run: Run, stale: list[int], new: list[IdempotencyRecord]) -> None:
    with held(run, target) as store:
        require_frozen(store)
        scopes = lock_scopes(target, {record.scope.user_id for record in new})
        records = IdempotencyRecord.objects.using(store_alias(target))
        records.filter(pk__in=stale).delete()
        records.bulk_create(
            IdempotencyRecord(
                scope_id=scopes[record.scope.user_id].pk,
                key=record.key,
                fingerprint=record.fingerprint,
                outcome=record.outcome,
                created_at=record.created_at,
            )
            for record in new
        )


def _records(agent: Agent) -> Any:
    records = IdempotencyRecord.objects.using(store_alias(agent)).select_related("scope")
    return records.filter(scope__kind="user", scope__agent_id=agent.pk)


def _matching(
    agent: Agent, records: Collection[IdempotencyRecord]
) -> dict[tuple[str, str], IdempotencyRecord]:
    found = _records(agent).filter(
        scope__user_id__in={record.scope.user_id for record in records},
        key__in={record.key for record in records},
    )
    return {_name_of(record): record for record in found}


def _name_of(record: IdempotencyRecord) -> tuple[str, str]:
    return record.scope.user_id, record.key


def _same(record: IdempotencyRecord, other: IdempotencyRecord | None) -> bool:
    return other is not None and repr(state(record)) == repr(state(other))
