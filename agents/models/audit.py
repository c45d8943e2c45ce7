"""What is on record of what people did."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.fields import ExactCharField
from agents.models.agents import Agent


class AuditAction(models.TextChoices):
    """What somebody did with memories that are another's, or as an operator."""

    CONTENT_READ = "content_read", _("memories read")
    CONTENT_TRIED = "content_tried", _("recall tried")
    EXPORTED = "exported", _("memories exported")
    IMPORTED = "imported", _("memories imported")
    USER_ERASED = "user_erased", _("user erased")
    AGENT_CREATED = "agent_created", _("agent created")
    AGENT_DELETED = "agent_deleted", _("agent deleted")
    SETTING_CHANGED = "setting_changed", _("setting changed")
    STORE_CHANGED = "store_changed", _("store changed")
    COPY_ERASED = "copy_erased", _("old copy erased")
    KEY_CREATED = "key_created", _("key created")
    KEY_ROTATED = "key_rotated", _("key rotated")
    KEY_REVOKED = "key_revoked", _("key revoked")
    KEY_RESTORED = "key_restored", _("key restored")
    ACCOUNT_CREATED = "account_created", _("account created")
    ACCOUNT_CHANGED = "account_changed", _("account changed")
    IDENTITY_LINKED = "identity_linked", _("identity linked")
    IDENTITY_UNLINKED = "identity_unlinked", _("identity unlinked")
    JOB_CANCELLED = "job_cancelled", _("job cancelled")
    JOB_RETRIED = "job_retried", _("job tried again")


class AuditEntry(models.Model):
    """Who did what, with whose memories and why; never what they say.

    Accounts and agents go, the entry stays: so their names are kept as text. `subject` is
    the account whose `user_id` it was; none for a user_id that no account had.
    """

    action = models.CharField(_("action"), max_length=20, choices=AuditAction)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("by account"),
    )
    actor_name = models.CharField(_("by"), max_length=150)
    subject = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("about account"),
    )
    subject_name = models.CharField(_("about"), max_length=150, blank=True)
    agent = models.ForeignKey(
        Agent, models.SET_NULL, null=True, related_name="+", verbose_name=_("agent")
    )
    agent_name = models.CharField(_("name of the agent"), max_length=200, blank=True)
    user_id = ExactCharField(_("user ID"), max_length=255, blank=True)
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    detail = models.CharField(_("detail"), max_length=500, blank=True)
    """What was changed and how: names and numbers, never a secret nor what a memory says."""
    count = models.PositiveIntegerField(_("memories shown"), default=0)
    created_at = models.DateTimeField(_("created"))

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["subject", "created_at"], name="audit_by_subject"),
            models.Index(fields=["user_id", "created_at"], name="audit_by_user"),
            models.Index(fields=["created_at"], name="audit_by_time"),
            models.Index(fields=["action", "created_at"], name="audit_by_action"),
            models.Index(fields=["agent", "created_at"], name="audit_by_agent"),
        ]
        permissions = [("view_content", "Can read what agents remember of others")]

    def __str__(self) -> str:
        return f"{self.action}: {self.actor_name}, {self.user_id} of {self.agent_name}"
