"""What operators do with accounts, each deed with its record in the same transaction.

Every function looks at the rules once more with the rows locked: whoever was demoted a moment
ago does nothing any more. Since nobody demotes or deactivates himself, of two superusers who do
that to each other one stays, and so does the last one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from agents import audit
from agents.authority import (
    Refused,
    Role,
    may_link,
    may_manage,
    may_promote,
    owners_of,
    role_of,
    was_anothers,
    why_not_link,
)
from agents.models import Agent, AuditAction, Identity, Profile
from agents.roles import VIEW_CONTENT

_PASSWORD_BYTES = 12


def generate_password() -> str:
    """Return a password that nobody guesses; it is shown once and kept as a hash."""
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def create_account(
    actor: Any, username: str, password: str, *, language: str, now: datetime
) -> tuple[User, bool]:
    """Create a plain user; return it, and whether agents know it by its user name.

    Not where that is another account's user_id, or was: the newcomer would read its memories.
    Raises IntegrityError for a name that was taken meanwhile.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        account = get_user_model().objects.create_user(username, password=password)
        Profile.objects.create(account=account, language=language)
        detail = audit.PASSWORD_GIVEN
        audit.note(actor, AuditAction.ACCOUNT_CREATED, subject=account, detail=detail, now=now)
        is_free = not (
            owners_of(account.username, None).exists() or was_anothers(account.username, account)
        )
        if is_free:
            _link(actor, account, account.username, None, now=now)
    return account, is_free


def change_role(actor: Any, account_id: int, role: Role, *, now: datetime) -> None:
    """Make an account a user, an operator or a superuser; a user may read no contents.

    Raises Refused.
    """
    with _locked(actor, account_id) as (doer, account):
        if not may_promote(doer, account):
            raise Refused(_("Only a superuser changes roles, and not the own."))
        before = role_of(account)
        account.is_staff, account.is_superuser = role != Role.USER, role == Role.SUPERUSER
        account.save(update_fields=["is_staff", "is_superuser"])
        if role == Role.USER:
            account.user_permissions.remove(_view_content())
        if before != role:
            _note_change(doer, account, f"role: {before.value} → {role.value}", now)


def set_active(actor: Any, account_id: int, is_active: bool, *, now: datetime) -> None:
    """Let an account log in again, or no more: then its sessions end. Raises Refused."""
    with _managed(actor, account_id) as (doer, account):
        if account.is_active == is_active:
            return
        if not is_active:
            _end_sessions(account)
        account.is_active = is_active
        account.save(update_fields=["is_active"])
        _note_change(doer, account, f"active: {not is_active} → {is_active}", now)


def set_reading(actor: Any, account_id: int, may_read: bool, *, now: datetime) -> None:
    """Give an operator the permission to read contents, or take it. Raises Refused."""
    with _locked(actor, account_id) as (doer, account):
        if not may_promote(doer, account) or role_of(account) != Role.OPERATOR:
            raise Refused(_("Only a superuser lets operators read contents."))
        held = account.user_permissions.filter(pk=_view_content().pk).exists()
        if held == may_read:
            return
        (account.user_permissions.add if may_read else account.user_permissions.remove)(
            _view_content()
        )
        _note_change(doer, account, f"view_content: {held} → {may_read}", now)


def reset_password(actor: Any, account_id: int, *, now: datetime) -> str:
    """Give an account a new password and return it, once; its sessions end. Raises Refused."""
    with _managed(actor, account_id) as (doer, account):
        password = generate_password()
        account.set_password(password)
        account.save(update_fields=["password"])
        _end_sessions(account)
        _note_change(doer, account, audit.PASSWORD_RESET, now)
    return password


def remove_second_factor(actor: Any, account_id: int, *, now: datetime) -> bool:
    """Take away authenticator and recovery codes, end its sessions; return whether any were there.

    Raises Refused.
    """
    with _managed(actor, account_id) as (doer, account):
        removed = bool(Authenticator.objects.filter(user=account).delete()[0])
        if removed:
            _end_sessions(account)
            _note_change(doer, account, "second_factor: removed", now)
    return removed


def end_sessions(actor: Any, account_id: int, *, now: datetime) -> int:
    """Log an account out everywhere; return how many sessions that ended. Raises Refused."""
    with _managed(actor, account_id) as (doer, account):
        ended = _end_sessions(account)
        _note_change(doer, account, "sessions: ended", now, count=ended)
    return ended


def link(
    actor: Any, account_id: int, user_id: str, agent: Agent | None, *, now: datetime
) -> Identity:
    """Let an account own what `agent`, or every agent, remembers of `user_id`.

    Raises Refused, and ValidationError for a bad user_id or one that it has already.
    """
    with _locked(actor, account_id) as (doer, account):
        if reason := why_not_link(doer, account, user_id, agent):
            raise Refused(reason)
        return _link(doer, account, user_id, agent, now=now)


def unlink(actor: Any, account_id: int, identity_id: int, *, now: datetime) -> None:
    """Take an identity from an account; the memories stay.

    Raises Refused, Identity.DoesNotExist.
    """
    with _locked(actor, account_id) as (doer, account):
        if not may_link(doer, account):
            raise Refused(_("Only a superuser links operators, and nobody else links himself."))
        identity = Identity.objects.select_related("agent").get(pk=identity_id, account=account)
        audit.note(
            doer,
            AuditAction.IDENTITY_UNLINKED,
            agent=identity.agent,
            subject=account,
            user_id=identity.user_id,
            now=now,
        )
        identity.delete()


def has_second_factor(account: Any) -> bool:
    """Return whether a login of the account asks for more than a password."""
    return Authenticator.objects.filter(user=account).exists()


@contextmanager
def _locked(actor: Any, account_id: int) -> Iterator[tuple[User, User]]:
    """Hold `actor`, the account and every superuser locked; yield the first two as they are now.

    Raises User.DoesNotExist where the account is gone.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        involved = Q(pk__in=[actor.pk, account_id]) | Q(is_superuser=True)
        rows = User.objects.select_for_update().filter(involved).order_by("pk")
        by_id = {each.pk: each for each in rows}
        if account_id not in by_id or actor.pk not in by_id:
            raise User.DoesNotExist
        yield by_id[actor.pk], by_id[account_id]


@contextmanager
def _managed(actor: Any, account_id: int) -> Iterator[tuple[User, User]]:
    with _locked(actor, account_id) as (doer, account):
        if not may_manage(doer, account):
            raise Refused(_("Operators manage plain users; the others take a superuser."))
        yield doer, account


def _end_sessions(account: User) -> int:
    """Delete the account's sessions; return how many. Reads every session there is."""
    wanted = str(account.pk)
    keys = [
        session.session_key
        for session in Session.objects.iterator(chunk_size=500)
        if session.get_decoded().get(SESSION_KEY) == wanted
    ]
    for start in range(0, len(keys), 500):
        Session.objects.filter(pk__in=keys[start : start + 500]).delete()
    return len(keys)


def _link(
    actor: Any, account: User, user_id: str, agent: Agent | None, *, now: datetime
) -> Identity:
    identity = Identity(account=account, user_id=user_id, agent=agent)
    identity.full_clean()
    identity.save()
    audit.note(
        actor,
        AuditAction.IDENTITY_LINKED,
        agent=agent,
        subject=account,
        user_id=user_id,
        now=now,
    )
    return identity


def _note_change(actor: User, account: User, detail: str, now: datetime, *, count: int = 0) -> None:
    audit.note(
        actor, AuditAction.ACCOUNT_CHANGED, subject=account, detail=detail, count=count, now=now
    )


def _view_content() -> Permission:
    app, _dot, codename = VIEW_CONTENT.partition(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)
