"""Who the agents are, how each is configured, and who may speak for whom."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from agents.fields import ExactCharField

_AGENT_NAME = re.compile(r"[\w.-]+")


def validate_agent_name(name: str) -> None:
    """Raise ValidationError unless `name` is letters, digits, `-`, `_`, `.` of any script."""
    if not _AGENT_NAME.fullmatch(name) or name in {".", ".."}:
        raise ValidationError(
            _("An agent's name may hold letters, digits, '-', '_' and '.' only."), "invalid"
        )


def validate_user_id(user_id: str) -> None:
    """Raise ValidationError unless `user_id` is 1 to 255 characters that can be stored."""
    if not 1 <= len(user_id) <= 255:
        raise ValidationError(_("A user_id has 1 to 255 characters."), "length")
    if "\x00" in user_id or any("\ud800" <= character <= "\udfff" for character in user_id):
        raise ValidationError(_("A user_id cannot hold NUL or half a surrogate pair."), "invalid")


def is_user_id(user_id: str) -> bool:
    """Return whether `user_id` can name a user; nothing is kept under any other."""
    try:
        validate_user_id(user_id)
    except ValidationError:
        return False
    return True


class AgentNotErased(Exception):
    """What belongs to an agent elsewhere cannot be erased now, so the agent stays."""


class AgentQuerySet(models.QuerySet["Agent"]):
    """Agents come with their memory configuration: every memory query needs it."""

    def named(self, name: str) -> Agent:
        """Return the agent called `name`. Raises Agent.DoesNotExist."""
        return self.select_related("memory_config").get(name=name)

    def create_agent(
        self, name: str, *, backend: str, sqlite_path: str = "", **fields: Any
    ) -> Agent:
        """Create an agent with its memory configuration, in one transaction.

        Raises ValidationError for a name that is malformed or taken, or a bad path.
        """
        agent = Agent(name=name, **fields)
        agent.full_clean()
        config = MemoryConfig(agent=agent, backend=backend, sqlite_path=sqlite_path or "memory.db")
        config.full_clean(exclude=["agent"])
        with transaction.atomic(using="default"):
            agent.save()
            config.save()
        return agent


class Agent(models.Model):
    """An AI assistant that calls us."""

    name = ExactCharField(_("name"), max_length=100, unique=True, validators=[validate_agent_name])
    display_name = models.CharField(_("display name"), max_length=200, blank=True)
    system_prompt = models.TextField(_("system prompt"), blank=True)
    language = models.CharField(
        _("language"), max_length=10, choices=settings.LANGUAGES, default="zh-hans"
    )
    is_active = models.BooleanField(_("active"), default=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.display_name or self.name

    @property
    def label(self) -> str:
        """What tells the agent from others in a choice: several may be called the same."""
        is_named = self.display_name not in {"", self.name}
        return f"{self.display_name} ({self.name})" if is_named else self.name


class Backend(models.TextChoices):
    """Where an agent's memories are kept."""

    SQLITE = "sqlite", _("local SQLite")
    MYSQL = "mysql", _("MySQL")


def validate_sqlite_path(path: str) -> None:
    """Raise ValidationError unless `path` is a plain `*.db` file name.

    No folders: the file lies in DATA_DIR/memory, so no path can name the control
    database or anything outside.
    """
    if not re.fullmatch(r"[\w-][\w.-]*\.db", path) or len(path.encode()) > 200:
        raise ValidationError(
            _("The SQLite file is a plain file name that ends in .db, without a folder."), "invalid"
        )


class MemoryConfig(models.Model):
    """Whether and where an agent remembers, and how much it is given back."""

    agent = models.OneToOneField(
        Agent, models.CASCADE, related_name="memory_config", verbose_name=_("agent")
    )
    enabled = models.BooleanField(_("memory on"), default=True)
    backend = models.CharField(_("backend"), max_length=10, choices=Backend, default=Backend.SQLITE)
    sqlite_path = ExactCharField(
        _("SQLite file"), max_length=100, default="memory.db", validators=[validate_sqlite_path]
    )
    prefetch_limit = models.PositiveSmallIntegerField(
        _("memories per prefetch"),
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(50)],
    )
    budget_tokens = models.PositiveIntegerField(
        _("token budget"),
        default=1_000,
        validators=[MinValueValidator(50), MaxValueValidator(100_000)],
    )

    class Meta:
        verbose_name = _("memory configuration")
        verbose_name_plural = _("memory configurations")

    def __str__(self) -> str:
        return f"{self.agent.name}: {self.backend}"


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


class Pause(models.Model):
    """A user who does not want to be remembered by an agent for now.

    The agent then neither recalls nor saves for that user; what it remembers stays.
    """

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="pauses")
    user_id = ExactCharField(max_length=255, validators=[validate_user_id])
    since = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "user_id"], name="pause_once")]

    def __str__(self) -> str:
        return f"{self.user_id} of {self.agent_id}"


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
