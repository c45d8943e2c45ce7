"""The record of who read what agents remember of others, and of what operators did.

Those whose memories were read see it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from agents.models import Agent, AuditAction, AuditEntry, Identity

READING_TIME = timedelta(minutes=15)
"""How long a reason that was given lets somebody read."""
PASSWORD_GIVEN, PASSWORD_RESET, PASSWORD_CHANGED = (
    "password: given", "password: reset", "password: changed",
)  # fmt: skip
"""Details of an account's entries: who knows its password is read from the last of them."""
READS = (AuditAction.CONTENT_READ, AuditAction.CONTENT_TRIED, AuditAction.EXPORTED)
DEEDS = (
    AuditAction.ACCOUNT_CREATED, AuditAction.ACCOUNT_CHANGED, AuditAction.IDENTITY_LINKED,
    AuditAction.IDENTITY_UNLINKED, AuditAction.IMPORTED, AuditAction.USER_ERASED,
    AuditAction.KEY_CREATED, AuditAction.KEY_ROTATED, AuditAction.KEY_REVOKED,
)  # fmt: skip
"""What somebody sees of others: who saw the memories, and what was done to them or the account."""


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
    """Record that `actor` is about to read, or to try, what `agent` remembers of `user_id`.

    `action` is CONTENT_TRIED where only what recalls find is shown. It is committed when this
    returns, whatever becomes of the reading, and so may not be called within a transaction.
    Raises ValidationError for a reason that is empty or has
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


def open_trials(actor: Any, agent: Agent, *, now: datetime) -> list[AuditEntry]:
    """Return whose recalls `actor` may try by a reason that still counts, newest first."""
    tried = AuditEntry.objects.filter(action=AuditAction.CONTENT_TRIED, actor=actor, agent=agent)
    return list(tried.filter(created_at__gt=now - READING_TIME))


def is_open(entry: AuditEntry, *, now: datetime) -> bool:
    """Return whether the time to read under `entry` has not run out."""
    return now < entry.created_at + READING_TIME


def note_shown(entry: AuditEntry, count: int) -> None:
    """Add memories that are about to be shown to the count of a reading."""
    AuditEntry.objects.filter(pk=entry.pk).update(count=F("count") + count)


def note_exported(entry_id: int, count: int) -> None:
    """Note how many memories an export holds; of one that is done again, the last."""
    AuditEntry.objects.filter(pk=entry_id).update(count=count)


def open_trial(actor: Any, agent: Agent, user_id: str, *, now: datetime) -> AuditEntry | None:
    """Return the entry under which `actor` may try recalls of `user_id` for now, or None."""
    opened = open_trials(actor, agent, now=now)
    return next((entry for entry in opened if entry.user_id == user_id), None)


def reads_about(
    account: Any, agents: Collection[Agent] = (), *, limit: int = 100
) -> list[AuditEntry]:
    """Return who read, tried or exported the account's memories, newest first; two queries.

    Those of its present identities count, too: what was read before they were linked, or
    is another account's as well. So do exports of all that `agents` remember of anybody.
    """
    whole = Q(action=AuditAction.EXPORTED, user_id="", agent__in=agents)
    about = AuditEntry.objects.filter(_about(account) | whole, action__in=READS)
    return list(about[:limit])


def deeds_about(
    account: Any, agents: Collection[Agent] = (), *, limit: int = 100
) -> list[AuditEntry]:
    """Return what was done to the account, its identities and memories; as `reads_about`.

    That another account was given an identity of the same user_id is among it, and that keys
    were made which reach all that `agents` remember of anybody.
    """
    whole = Q(action=AuditAction.KEY_CREATED, user_id="", agent__in=agents)
    return list(AuditEntry.objects.filter(_about(account) | whole, action__in=DEEDS)[:limit])


def password_giver(account: Any) -> AuditEntry | None:
    """Return the entry of who else knows the account's password; None where it chose its own."""
    entries = AuditEntry.objects.filter(
        subject=account,
        action__in=(AuditAction.ACCOUNT_CREATED, AuditAction.ACCOUNT_CHANGED),
        detail__in=(PASSWORD_GIVEN, PASSWORD_RESET, PASSWORD_CHANGED),
    )
    last = entries.first()
    return None if last is None or last.actor_id == account.pk else last


def _about(account: Any) -> Q:
    about = Q(subject=account)
    for identity in Identity.objects.filter(account=account):
        own = Q(user_id=identity.user_id)
        # of no agent is what concerns all of them; what an agent that is gone knew is not ours
        of_agent = Q(agent=identity.agent_id) | Q(agent=None, agent_name="")
        about |= own if identity.agent_id is None else own & of_agent
    return about


def _owners(agent: Agent, user_id: str) -> Any:
    of_agent = Q(agent=None) | Q(agent=agent)
    return Identity.objects.filter(of_agent, user_id=user_id)
