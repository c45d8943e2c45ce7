"""The record of who read what agents remember of others, and of what operators did.

Those whose memories were read see it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from agents.models import Agent, AuditAction, AuditEntry, Identity

READING_TIME = timedelta(minutes=15)
"""How long a reason that was given lets somebody read."""


def owns(account: Any, agent: Agent, user_id: str) -> bool:
    """Return whether what `agent` remembers of `user_id` is the account's own."""
    return _owners(agent, user_id).filter(account=account).exists()


def owner_of(agent: Agent, user_id: str) -> Any:
    """Return the account whose own it is what `agent` remembers of `user_id`, or None."""
    owner = _owners(agent, user_id).select_related("account").order_by("pk").first()
    return owner.account if owner else None


def note_content_read(
    actor: Any,
    agent: Agent,
    user_id: str,
    *,
    reason: str,
    now: datetime,
    action: AuditAction = AuditAction.CONTENT_READ,
) -> AuditEntry:
    """Record that `actor` is about to read what `agent` remembers of `user_id`.

    It is committed when this returns, whatever becomes of the reading, and so may not be
    called within a transaction. Raises ValidationError for a reason that is empty or has
    more than 500 characters.
    """
    entry = _entry(
        actor,
        action,
        agent=agent,
        user_id=user_id,
        subject=owner_of(agent, user_id),
        reason=reason,
        now=now,
    )
    if not reason:
        raise ValidationError({"reason": _("Say why.")})
    with transaction.atomic(using=DEFAULT_DB_ALIAS, durable=True):
        entry.save()
    return entry


def note(
    actor: Any,
    action: AuditAction,
    *,
    agent: Agent | None = None,
    subject: Any = None,
    user_id: str = "",
    detail: str = "",
    count: int = 0,
    now: datetime,
) -> AuditEntry:
    """Record what `actor` does; call it in the transaction of the deed, where that is `default`'s.

    `detail` says in words that are no secret what was changed, and is cut at 500 characters;
    `actor` is an account, None for a command of the server's shell.
    """
    entry = _entry(
        actor, action, agent=agent, subject=subject, user_id=user_id, detail=detail[:500], now=now
    )
    entry.count = count
    entry.save()
    return entry


def _entry(
    actor: Any,
    action: AuditAction,
    *,
    agent: Agent | None,
    subject: Any,
    now: datetime,
    **texts: str,
) -> AuditEntry:
    entry = AuditEntry(
        action=action,
        actor=actor,
        actor_name=actor.get_username() if actor else "-",
        subject=subject,
        subject_name=subject.get_username() if subject else "",
        agent=agent,
        agent_name=str(agent) if agent else "",
        created_at=now,
        **texts,
    )
    entry.clean_fields(exclude={"actor", "subject", "agent"})
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


def note_exported(entry_id: int, count: int) -> None:
    """Note how many memories an export holds; of one that is done again, the last."""
    AuditEntry.objects.filter(pk=entry_id).update(count=count)


def reads_about(account: Any, *, limit: int = 100) -> list[AuditEntry]:
    """Return who read or exported the account's memories, newest first; two queries.

    Those of its present identities count, too: what was read before they were linked, or
    is another account's as well.
    """
    about = Q(subject=account)
    for identity in Identity.objects.filter(account=account):
        own = Q(user_id=identity.user_id)
        about |= own if identity.agent_id is None else own & Q(agent=identity.agent_id)
    read = [AuditAction.CONTENT_READ, AuditAction.EXPORTED]
    return list(AuditEntry.objects.filter(about, action__in=read)[:limit])


def _owners(agent: Agent, user_id: str) -> Any:
    of_agent = Q(agent=None) | Q(agent=agent)
    return Identity.objects.filter(of_agent, user_id=user_id)
