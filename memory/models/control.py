"""What Hippo itself keeps track of; these tables are in `default` only."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.fields import ExactCharField, ExactTextField
from agents.models import Backend
from memory.fields import ExactJSONField


class NodeLease(models.Model):
    """A node number lent to one process, so that no two make the same id."""

    node = models.PositiveSmallIntegerField(primary_key=True)
    holder = models.CharField(max_length=36)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"node {self.node}"


class JobState(models.TextChoices):
    """Where a job is in its life."""

    PENDING = "pending", _("waiting")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class Job(models.Model):
    """Background work: what is to be done, how far it is, what came of it.

    This row is the truth; a message to a worker only says that it is there.
    """

    kind = models.CharField(_("kind"), max_length=30)
    payload = ExactJSONField(_("payload"), default=dict)
    account_id = models.BigIntegerField(null=True)
    """Who asked for it and may see it; none: the schedule, a command or the API did."""
    agent_id = models.BigIntegerField(null=True)
    """Whose memories it is about; none: those of several agents or of all."""
    state = models.CharField(_("state"), max_length=10, choices=JobState, default=JobState.PENDING)
    key = ExactCharField(max_length=200)
    """Names the work: one job with a key at a time waits or runs."""
    active_key = ExactCharField(max_length=200, null=True, unique=True)
    """The key while the job waits or runs, else NULL."""
    claim = models.CharField(max_length=36, blank=True)
    """Which run of a worker holds the job; a run that lost it can write nothing more."""
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    is_cancel_requested = models.BooleanField(_("to be cancelled"), default=False)
    step = models.CharField(_("step"), max_length=200, blank=True)
    done = models.PositiveBigIntegerField(_("done"), default=0)
    total = models.PositiveBigIntegerField(_("of"), null=True)
    checkpoint = ExactJSONField(default=dict)
    """From where the next run goes on."""
    log = ExactJSONField(default=list)
    """The latest steps, oldest first: [ISO time, step, done, total or null]."""
    result = ExactJSONField(_("result"), default=dict)
    error = models.TextField(_("error"), blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    started_at = models.DateTimeField(_("started"), null=True)
    heartbeat_at = models.DateTimeField(_("last sign of life"), default=timezone.now)
    finished_at = models.DateTimeField(_("finished"), null=True)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["state", "heartbeat_at"], name="job_by_silence"),
            models.Index(fields=["account_id", "id"], name="job_by_account"),
            models.Index(fields=["agent_id", "id"], name="job_by_agent"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class FormerStore(models.Model):
    """A store that still holds memories of an agent which uses another one now."""

    # a key to agents would draw their migrations into every store
    agent_id = models.BigIntegerField()
    backend = models.CharField(max_length=10, choices=Backend)
    sqlite_path = ExactCharField(max_length=100)
    since = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent_id", "backend", "sqlite_path"], name="former_store_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.backend} {self.sqlite_path}"


class Pulse(models.Model):
    """When something that runs beside the web server last gave a sign of life."""

    name = models.CharField(max_length=20, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} {self.at}"


class ModelPurpose(models.TextChoices):
    """What a model is called for."""

    EMBEDDINGS = "embeddings", _("embeddings")
    CHAT = "chat", _("chat")


class ModelEndpoint(models.Model):
    """A model's address as an operator set it; what the environment says stands above it."""

    purpose = models.CharField(max_length=10, choices=ModelPurpose, primary_key=True)
    provider = models.CharField(max_length=20)
    url = models.CharField(max_length=500, blank=True)
    model = models.CharField(max_length=200, blank=True)
    sealed_key = models.TextField(blank=True)
    """The key, encrypted with SECRET_KEY; never shown again."""
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.purpose}: {self.provider} {self.model}"


class GoldenQuestion(models.Model):
    """A question of an agent with what must come back for it, and what must not.

    `expected` and `unwanted` hold texts: a memory's id, or words that its name or content holds.
    """

    agent_id = models.BigIntegerField()
    user_id = ExactCharField(max_length=255)
    question = ExactTextField()
    expected = ExactJSONField(default=list)
    unwanted = ExactJSONField(default=list)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["agent_id", "id"], name="golden_question_by_agent")]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.question[:50]}"


class GoldenRun(models.Model):
    """One asking of all of an agent's golden questions, kept to be compared with others."""

    agent_id = models.BigIntegerField()
    mode = models.CharField(max_length=10)
    account_id = models.BigIntegerField(null=True)
    passed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    p50_ms = models.FloatField(default=0.0)
    p95_ms = models.FloatField(default=0.0)
    settings = ExactJSONField(default=dict)
    """What the run's answers depended on: threshold, embedding model, analyzer version."""
    results = ExactJSONField(default=list)
    """For each question: its id, whether it passed, the ids that came back, what was missed."""
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["agent_id", "id"], name="golden_run_by_agent")]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.passed} of {self.passed + self.failed}"
