"""The credentials of agents."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from agents.fields import ExactCharField
from agents.models.agents import Agent


class KeyState(models.TextChoices):
    """What can be said of a key at a moment; `ENDING`, `UNUSED` and `IDLE` ones are live, too."""

    LIVE = "live", _("Live")
    ENDING = "ending", _("Ending")
    EXPIRED = "expired", _("Expired")
    REVOKED = "revoked", _("Revoked")
    UNUSED = "unused", _("Never used")
    IDLE = "idle", _("Not used for 90 days")


def live_at(now: datetime) -> Q:
    """Return the condition of keys that are taken: neither revoked nor expired."""
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Keys by what can be done with them at a moment."""

    def live(self, now: datetime) -> ApiKeyQuerySet:
        """Return the keys that open something."""
        return self.filter(live_at(now))

    def in_state(self, state: str, now: datetime) -> ApiKeyQuerySet:
        """Return the keys in a `KeyState`; all for any other text."""
        if state in {KeyState.LIVE, KeyState.UNUSED, KeyState.IDLE}:
            live = self.live(now)
            long_ago = now - ApiKey.IDLE_TIME
            idle = Q(last_used_at__lt=long_ago) | Q(last_used_at=None, created_at__lt=long_ago)
            wanted = {KeyState.UNUSED: Q(last_used_at=None), KeyState.IDLE: idle}
            return live.filter(wanted.get(KeyState(state), Q()))
        ended = {
            KeyState.ENDING: Q(revoked_at=None, expires_at__gt=now),
            KeyState.EXPIRED: Q(revoked_at=None, expires_at__lte=now),
            KeyState.REVOKED: Q(revoked_at__isnull=False),
        }
        return self.filter(ended[KeyState(state)]) if state in ended else self

    def latest_used(self) -> ApiKey | None:
        """Return the key that was used last, None where none was."""
        return self.exclude(last_used_at=None).order_by(F("last_used_at").desc(), "-pk").first()


class ApiKey(models.Model):
    """A credential of one agent; the key itself is shown once and kept as a hash."""

    IDLE_TIME = timedelta(days=90)
    """A key that was not used for so long is likely to be forgotten."""

    agent = models.ForeignKey(
        Agent, models.CASCADE, related_name="api_keys", verbose_name=_("agent")
    )
    name = models.CharField(_("name"), max_length=100, blank=True)
    prefix = ExactCharField(_("prefix"), max_length=16, db_index=True, editable=False)
    hashed_key = ExactCharField(max_length=64, unique=True, editable=False)
    user_id = ExactCharField(
        _("bound to user"),
        max_length=255,
        blank=True,
        help_text=_("A bound key reaches this user's memories only."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, editable=False)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)
    replaced_by = models.ForeignKey(
        "self", models.SET_NULL, null=True, editable=False, related_name="replaces"
    )
    """The key that was made in its place."""
    ticket = models.UUIDField(null=True, unique=True, editable=False)
    """The form that it was made with: one that is sent twice makes one key."""

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.prefix}…"

    def state(self, now: datetime) -> KeyState:
        """Return whether it is live, ending, expired or revoked at a moment."""
        if self.revoked_at:
            return KeyState.REVOKED
        if self.expires_at is None:
            return KeyState.LIVE
        return KeyState.EXPIRED if self.expires_at <= now else KeyState.ENDING
