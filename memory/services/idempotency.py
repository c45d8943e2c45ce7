"""A write under an Idempotency-Key happens once, however often it is asked for.

The record is in the memories' own store and in the write's own transaction, so that both
are there or neither is. Records are forgotten after `upkeep.IDEMPOTENCY_HOURS`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from agents.models import Agent
from memory.errors import IdempotencyConflict
from memory.ids import next_ids
from memory.models import IdempotencyRecord, Memory, Scope
from memory.services import writing
from memory.services.writing import locked_scope


@dataclass(frozen=True, slots=True)
class Ticket:
    """An Idempotency-Key and the fingerprint of the request that it came with."""

    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Done:
    """What a write came to: its memories, and a word for what was done to them."""

    memories: Sequence[Memory]
    action: str = ""
    is_repeated: bool = False


def fingerprint(*parts: bytes) -> str:
    """Return a keyed hash of a request; without the key it says nothing about the text."""
    message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hmac.new(settings.SECRET_KEY.encode(), message, hashlib.sha256).hexdigest()


def once(
    agent: Agent,
    user_id: str,
    ticket: Ticket | None,
    write: Callable[[], Done],
    *,
    now: datetime,
    create: bool = False,
) -> Done:
    """Return what `write` comes to; under a ticket that came before, what it came to then.

    A repetition gives the memories as they are now. `create` for a write that may be the
    user's first. Raises IdempotencyConflict where the key came with another request,
    UnknownMemory where a memory has been erased since, and what `write` raises: then
    nothing is recorded.
    """
    if ticket is None:
        return write()
    return _recorded(agent, user_id, ticket, write, now=now, create=create)


@writing.retried
def _recorded(
    agent: Agent,
    user_id: str,
    ticket: Ticket,
    write: Callable[[], Done],
    *,
    now: datetime,
    create: bool,
) -> Done:
    next_ids(0, now=now)  # a node number that is leased inside would be lost by a rollback
    with locked_scope(agent, user_id, create=create) as scope:
        records = IdempotencyRecord.objects.using(scope._state.db)
        record = records.filter(scope=scope, key=ticket.key).first()
        if record is None:
            done = write()
            records.create(
                scope=scope,
                key=ticket.key,
                fingerprint=ticket.fingerprint,
                outcome={"ids": [memory.pk for memory in done.memories], "action": done.action},
                created_at=now,
            )
            return done
        if record.fingerprint != ticket.fingerprint:
            raise IdempotencyConflict(
                "This Idempotency-Key came before with another request; use a new key for a "
                "new request."
            )
        return _as_they_are(agent, scope, record)


def _as_they_are(agent: Agent, scope: Scope, record: IdempotencyRecord) -> Done:
    ids = record.outcome["ids"]
    found = {each.pk: each for each in Memory.objects.of_scope(scope).filter(pk__in=ids)}
    for memory_id in ids:
        if memory_id not in found:
            raise writing.unknown(agent, scope.user_id, memory_id)
    return Done([found[each] for each in ids], record.outcome["action"], is_repeated=True)
