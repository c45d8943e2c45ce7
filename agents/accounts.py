"""How accounts are made: by an operator, or by anybody where the operator opened it."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import DEFAULT_DB_ALIAS, transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from agents import audit
from agents.first_run import has_accounts
from agents.models import AuditAction, Identity, Profile


class AccountAdapter(DefaultAccountAdapter):
    """Sign-up is closed unless SIGNUP_OPEN says otherwise.

    A new account has no identity: whoever signs up as `ming` is not thereby agents' ming.
    """

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return whether anybody may make an account."""
        return bool(settings.SIGNUP_OPEN)

    def login(self, request: HttpRequest, user: Any) -> None:
        """Log in; as long as somebody else gave the password, say who."""
        super().login(request, user)
        if entry := audit.password_giver(user):
            day = date_format(timezone.localtime(entry.created_at))
            text = _("%(who)s gave you this password on %(day)s and knows it; choose your own.")
            messages.warning(request, text % {"who": entry.actor_name, "day": day})

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        # allauth's has the Host header in it: with a port made up, one could go on guessing
        return str(credentials.get("username", "")).lower()


class AlreadySetUp(Exception):
    """Somebody has an account, so the first one cannot be made any more."""


def create_operator(username: str, password: str, *, language: str, time_zone: str) -> User:
    """Create the first account: a superuser, known to agents by its user name.

    Of two at once one succeeds. Raises AlreadySetUp where there is an account.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        # any row that is always there serves as the lock; SQLite locks at the beginning
        ContentType.objects.select_for_update().get(app_label="auth", model="user")
        if has_accounts():
            raise AlreadySetUp
        account = get_user_model().objects.create_superuser(username, password=password)
        Identity.objects.create(account=account, user_id=username)
        Profile.objects.create(account=account, language=language, time_zone=time_zone)
        now = timezone.now()
        audit.note(account, AuditAction.ACCOUNT_CREATED, subject=account, detail="first", now=now)
    return account


def note_own_password(user: Any, **kwargs: Any) -> None:
    """Record that somebody chose the own password: from then on nobody else knows it."""
    detail, now = audit.PASSWORD_CHANGED, timezone.now()
    audit.note(user, AuditAction.ACCOUNT_CHANGED, subject=user, detail=detail, now=now)
