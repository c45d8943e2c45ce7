"""Who may change whose account: operators those of plain users, superusers all, nobody the own.

What an account reads follows from its role, its permission to read contents and its
identities, so what adds to one of these for operators takes a superuser.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agents.models import Agent, AuditAction, AuditEntry, Identity


class Refused(PermissionDenied):
    """What somebody may not do with an account; the message says why."""


class Role(models.TextChoices):
    """What an account is on the pages."""

    USER = "user", _("user")
    OPERATOR = "operator", _("operator")
    SUPERUSER = "superuser", _("superuser")


ACCOUNTS_OF = {
    Role.USER: Q(is_staff=False, is_superuser=False),
    Role.OPERATOR: Q(is_staff=True, is_superuser=False),
    Role.SUPERUSER: Q(is_superuser=True),
}


def role_of(account: Any) -> Role:
    """Return what an account is."""
    if account.is_superuser:
        return Role.SUPERUSER
    return Role.OPERATOR if account.is_staff else Role.USER


def may_manage(actor: Any, account: Any) -> bool:
    """Return whether `actor` may let in, shut out and erase `account`.

    One's own is changed under Preferences and erased under My data, never here.
    """
    if not actor.is_active or actor.pk == account.pk:
        return False
    return bool(actor.is_superuser or (actor.is_staff and role_of(account) == Role.USER))


def may_promote(actor: Any, account: Any) -> bool:
    """Return whether `actor` may change the role of `account` and what it may read."""
    return bool(actor.is_superuser) and may_manage(actor, account)


def may_link(actor: Any, account: Any) -> bool:
    """Return whether `actor` may link and unlink identities of `account`.

    An operator who could link the own account, or that of another operator, would read
    contents without a reason: not even the permission to read them allows that.
    """
    return bool(actor.is_active and actor.is_superuser) or may_manage(actor, account)


def owners_of(user_id: str, agent: Agent | None) -> models.QuerySet[Identity]:
    """Return the identities that have something of `user_id`, of one agent or of any."""
    same = Identity.objects.filter(user_id=user_id).select_related("account")
    return same if agent is None else same.filter(Q(agent=None) | Q(agent=agent))


def was_anothers(user_id: str, account: Any) -> bool:
    """Return whether `user_id` was taken from another account, by the audit.

    Who could link it again, to whomever, would undo by two steps that nobody shares it.
    """
    taken = AuditEntry.objects.filter(action=AuditAction.IDENTITY_UNLINKED, user_id=user_id)
    return taken.exclude(subject=account).exists()


def why_not_link(actor: Any, account: Any, user_id: str, agent: Agent | None) -> str:
    """Return why `actor` may not link `user_id` with `account`, translated; '' where he may."""
    if not may_link(actor, account):
        return str(_("Only a superuser links operators, and nobody else links himself."))
    others = owners_of(user_id, agent).exclude(account=account)
    if not actor.is_superuser and others.exists():
        return str(_("Another account has this user ID; only a superuser lets two share it."))
    if not actor.is_superuser and was_anothers(user_id, account):
        return str(_("It was another account's; only a superuser gives it to somebody else."))
    return ""
