"""The record of who read what agents remember of others; those they are about see it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from agents.models import Agent, AuditAction, AuditEntry, Identity

READING_TIME = timedelta(minutes=15)
"""How long a reason that was given lets somebody read."""


def owns(account: Any, agent: Agent, user_id: str) -> bool:
    """Return whether what `agent` remembers of `user_id` is the account's own."""
    return _owners(agent, user_id).filter(account=account).exists()


def note_content_read(
    actor: Any, agent: Agent, user_id: str, *, reason: str, now: datetime
) -> AuditEntry:
    """Record that `actor` is about to read what `agent` remembers of `user_id`.

    It is committed when this returns, whatever becomes of the reading, and so may not be
    called within a transaction. Raises ValidationError for a reason that is empty or has
    more than 500 characters.
    """
    owner = _owners(agent, user_id).select_related("account").order_by("pk").first()
    subject = owner.account if owner else None
    entry = AuditEntry(
        action=AuditAction.CONTENT_READ,
        actor=actor,
        actor_name=actor.get_username(),
        subject=subject,
        subject_name=subject.get_username() if subject else "",
        agent=agent,
        agent_name=str(agent),
        user_id=user_id,
        reason=reason,
        created_at=now,
    )
    entry.clean_fields(exclude={"actor", "subject", "agent"})
    with transaction.atomic(using="default", durable=True):
        entry.save()
    return entry


def find_reading(actor: Any, entry_id: int) -> AuditEntry:
    """Return a reading that `actor` gave a reason for, with its agent, which may be gone.

    Raises AuditEntry.DoesNotExist, for those of others as well.
    """
    readings = AuditEntry.objects.filter(action=AuditAction.CONTENT_READ, actor=actor)
    return readings.select_related("agent__memory_config").get(pk=entry_id)


def is_open(entry: AuditEntry, *, now: datetime) -> bool:
    """Return whether the time to read under `entry` has not run out."""
    return now < entry.created_at + READING_TIME


def note_shown(entry: AuditEntry, count: int) -> None:
    """Add memories that are about to be shown to the count of a reading."""
    AuditEntry.objects.filter(pk=entry.pk).update(count=F("count") + count)


def reads_about(account: Any, *, limit: int = 100) -> list[AuditEntry]:
    """Return who read the account's memories, newest first, at most `limit`; two queries.

    Those of its present identities count, too: what was read before they were linked, or
    is another account's as well.
    """
    about = Q(subject=account)
    for identity in Identity.objects.filter(account=account):
        own = Q(user_id=identity.user_id)
        about |= own if identity.agent_id is None else own & Q(agent=identity.agent_id)
    return list(AuditEntry.objects.filter(about, action=AuditAction.CONTENT_READ)[:limit])


def _owners(agent: Agent, user_id: str) -> Any:
    of_agent = Q(agent=None) | Q(agent=agent)
    return Identity.objects.filter(of_agent, user_id=user_id)
