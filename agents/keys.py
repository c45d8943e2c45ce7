"""What people do to keys, each on record: create, rotate, revoke, and take that back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, IntegrityError, transaction
from django.utils.translation import gettext as _

from agents import audit
from agents.auth import issue_key
from agents.models import Agent, ApiKey, AuditAction, KeyState

RESTORE_TIME = timedelta(seconds=60)
"""How long a revocation can be taken back: the eight seconds of the button, and slow hands."""
MAX_OVERLAP = timedelta(days=90)

Issued = tuple[ApiKey, str]
"""A key's row and the key itself, which cannot be shown again."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a key is to be like; `ticket` names the form that it is made with."""

    name: str = ""
    user_id: str = ""
    expires_at: datetime | None = None
    ticket: UUID | None = None


class AlreadyIssued(Exception):
    """The form was sent before and made a key, which cannot be shown again."""

    def __init__(self, key: ApiKey) -> None:
        super().__init__(str(key))
        self.key = key


class NotRotatable(Exception):
    """A key that is revoked, expired or replaced gets no successor; the text says what to do."""


def create(agent: Agent, wanted: NewKey, *, actor: Any, now: datetime) -> Issued:
    """Create a key of `agent`; return its row and the key, which cannot be shown again.

    Raises ValidationError for a malformed `user_id`, AlreadyIssued for a ticket that was used.
    """
    try:
        with transaction.atomic(using=DEFAULT_DB_ALIAS):
            row, key = issue_key(
                agent,
                name=wanted.name,
                user_id=wanted.user_id,
                expires_at=wanted.expires_at,
                ticket=wanted.ticket,
            )
            _note(actor, AuditAction.KEY_CREATED, row, _described(row), now)
    except IntegrityError:
        made = ApiKey.objects.filter(ticket=wanted.ticket).first() if wanted.ticket else None
        if made is None:
            raise
        raise AlreadyIssued(made) from None
    return row, key


def rotate(key: ApiKey, *, overlap: timedelta, actor: Any, now: datetime) -> Issued:
    """Make a key in place of `key`, with its name, agent and user; return it as `create` does.

    The old one works for `overlap` more, unless it ends before. The new one lives as long as
    the old one was given. Raises NotRotatable.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        old = ApiKey.objects.select_for_update().get(pk=key.pk)
        if obstacle := find_obstacle(old, now=now):
            raise NotRotatable(obstacle)
        until = now + (old.expires_at - old.created_at) if old.expires_at else None
        row, text = issue_key(old.agent, name=old.name, user_id=old.user_id, expires_at=until)
        ends_at = now + overlap
        old.expires_at = min(ends_at, old.expires_at) if old.expires_at else ends_at
        old.replaced_by = row
        old.save(update_fields=["expires_at", "replaced_by"])
        detail = f"{old} → {_described(row)}; {old} ends {old.expires_at:%Y-%m-%d %H:%M} UTC"
        _note(actor, AuditAction.KEY_ROTATED, old, detail, now)
    return row, text


def find_obstacle(key: ApiKey, *, now: datetime) -> str:
    """Return why a key cannot be rotated and what to do instead, translated; '' where it can."""
    if key.replaced_by:
        text = _("The key %(old)s was replaced by %(new)s already; rotate that one instead.")
        if key.replaced_by.state(now) in {KeyState.REVOKED, KeyState.EXPIRED}:
            text = _(
                "The key %(old)s was replaced by %(new)s, which does not work any more; "
                "create a new key."
            )
        return text % {"old": key, "new": key.replaced_by}
    state = key.state(now)
    if state == KeyState.REVOKED:
        return _("The key %s is revoked and cannot be rotated; create a new key.") % key
    if state == KeyState.EXPIRED:
        return _("The key %s has expired and cannot be rotated; create a new key.") % key
    return ""


def revoke(key: ApiKey, *, actor: Any, now: datetime) -> bool:
    """Let a key open nothing from now on; return whether it was not revoked before."""
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        revoked = ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now)
        if revoked:
            _note(actor, AuditAction.KEY_REVOKED, key, _described(key), now)
    return bool(revoked)


def restore(key: ApiKey, *, actor: Any, now: datetime) -> bool:
    """Take a revocation back that is at most RESTORE_TIME old; return whether it was one."""
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        recent = ApiKey.objects.filter(pk=key.pk, revoked_at__gte=now - RESTORE_TIME)
        restored = recent.update(revoked_at=None)
        if restored:
            _note(actor, AuditAction.KEY_RESTORED, key, _described(key), now)
    return bool(restored)


def _described(key: ApiKey) -> str:
    until = f", until {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else ""
    return f"{key} {key.name}".strip() + until


def _note(actor: Any, action: AuditAction, key: ApiKey, detail: str, now: datetime) -> None:
    audit.note(actor, action, agent=key.agent, user_id=key.user_id, detail=detail, now=now)
