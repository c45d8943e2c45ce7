"""Who may speak for whom, and how people want to see the pages."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.fields import ExactCharField
from agents.models.agents import Agent, validate_user_id


class Identity(models.Model):
    """An account owns what agents remember of a `user_id`, of one agent or of all."""

    account = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="identities",
        verbose_name=_("account"),
    )
    user_id = ExactCharField(_("user ID"), max_length=255, validators=[validate_user_id])
    agent = models.ForeignKey(
        Agent,
        models.CASCADE,
        null=True,
        blank=True,
        verbose_name=_("only for this agent"),
    )

    class Meta:
        verbose_name = _("identity")
        verbose_name_plural = _("identities")
        constraints = [
            models.UniqueConstraint(fields=["account", "user_id", "agent"], name="identity_once")
        ]

    def __str__(self) -> str:
        return f"{self.account} = {self.user_id}"

    def clean(self) -> None:
        """Raise ValidationError for a second identity of all agents, which NULL lets through."""
        same = Identity.objects.filter(account=self.account_id, user_id=self.user_id, agent=None)
        if self.agent_id is None and same.exclude(pk=self.pk).exists():
            raise ValidationError(_("This account has this identity already."), "unique")


class Theme(models.TextChoices):
    """Light, dark, or as the system has it."""

    AUTO = "auto", _("as the system")
    LIGHT = "light", _("light")
    DARK = "dark", _("dark")


class Profile(models.Model):
    """How an account wants to see the pages; blank leaves it to cookie and header."""

    account = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="profile",
        verbose_name=_("account"),
    )
    language = models.CharField(
        _("language"), max_length=10, choices=settings.LANGUAGES, blank=True
    )
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True)
    theme = models.CharField(_("theme"), max_length=5, choices=Theme, default=Theme.AUTO)
    has_shortcuts = models.BooleanField(_("single-key shortcuts"), default=True)

    class Meta:
        verbose_name = _("profile")
        verbose_name_plural = _("profiles")

    def __str__(self) -> str:
        return str(self.account)


class Team(models.Model):
    """People who share memories."""

    name = ExactCharField(_("name"), max_length=100, unique=True)
    members: models.ManyToManyField[Any, Any] = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", related_name="teams"
    )

    class Meta:
        verbose_name = _("team")
        verbose_name_plural = _("teams")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One account in one team."""

    team = models.ForeignKey(Team, models.CASCADE, verbose_name=_("team"))
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, verbose_name=_("account"))
    joined_at = models.DateTimeField(_("joined"), auto_now_add=True)

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints = [models.UniqueConstraint(fields=["team", "account"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.account} in {self.team}"
