"""Who the agents are, and whether and where each remembers."""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
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
    min_score = models.FloatField(
        _("silence below"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
    )
    """Hits of a lower score are noise; None for the calibrated default."""
    reranks = models.BooleanField(_("a model picks among the best hits"), default=False)
    synonyms = models.JSONField(_("synonyms"), default=list, blank=True)
    """Groups of words that mean the same to this agent's users: [["k8s", "kubernetes"], …]."""

    class Meta:
        verbose_name = _("memory configuration")
        verbose_name_plural = _("memory configurations")

    def __str__(self) -> str:
        return f"{self.agent.name}: {self.backend}"


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
