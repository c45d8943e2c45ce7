"""Memories and what belongs to them, in whichever database their agent uses.

No table here refers to another database: agents and teams are plain numbers.
"""

from __future__ import annotations

from django.db import models

from agents.fields import ExactCharField, ExactTextField
from memory import recall_log
from memory.fields import ExactJSONField, MemoryIdField, TagsField, TermsField
from memory.fts import ContainsExact
from memory.querysets import MemoryQuerySet, MemoryTermsQuerySet, ScopeQuerySet

ExactTextField.register_lookup(ContainsExact)
TermsField.register_lookup(ContainsExact)


class StoreState(models.TextChoices):
    """Whether an agent's memories in this database take writes.

    Only open ones do. `moved` is an old copy, `left` what a fresh start elsewhere left behind.
    """

    OPEN = "open"
    FROZEN = "frozen"
    MOVED = "moved"
    LEFT = "left"
    ERASED = "erased"


class OwnerKind(models.TextChoices):
    """What a scope's owner is."""

    USER = "user"
    TEAM = "team"
    GLOBAL = "global"


class MemoryType(models.TextChoices):
    """What a memory is about."""

    USER = "user"
    PROJECT = "project"
    FEEDBACK = "feedback"
    REFERENCE = "reference"


class MemoryKind(models.TextChoices):
    """How a memory is put."""

    OBSERVATION = "observation"
    FACT = "fact"
    PROCEDURE = "procedure"
    SUMMARY = "summary"


class Tier(models.TextChoices):
    """How long a memory is meant to last."""

    SHORT_TERM = "short_term"
    LONG_TERM = "long_term"


class Visibility(models.TextChoices):
    """Who besides its owner may recall a memory."""

    PRIVATE = "private"
    TEAM = "team"
    GLOBAL = "global"


class Status(models.TextChoices):
    """Where a memory is in its life; only active ones are recalled."""

    ACTIVE = "active"
    PAUSED = "paused"
    ARCHIVED = "archived"
    TRASHED = "trashed"
    SUPERSEDED = "superseded"


class ActorKind(models.TextChoices):
    """Who made a change."""

    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"


class Store(models.Model):
    """The state of one agent's memories in this database."""

    agent_id = models.BigIntegerField(primary_key=True)
    state = models.CharField(max_length=10, choices=StoreState, default=StoreState.OPEN)

    def __str__(self) -> str:
        return f"agent {self.agent_id}: {self.state}"


class Scope(models.Model):
    """Whose memories these are, with the statistics that ranking needs.

    Count and length cover every indexed memory: all but the trashed.
    `state` repeats the store's, so that a write checks it in the row it locks anyway.
    """

    kind = models.CharField(max_length=10, choices=OwnerKind, default=OwnerKind.USER)
    agent_id = models.BigIntegerField(default=0)
    team_id = models.BigIntegerField(default=0)
    user_id = ExactCharField(max_length=255, blank=True, default="")
    state = models.CharField(max_length=10, choices=StoreState, default=StoreState.OPEN)
    memory_count = models.PositiveBigIntegerField(default=0)
    content_terms = models.PositiveBigIntegerField(default=0)
    vector_stamp = models.PositiveBigIntegerField(default=0)
    """Raised by every transaction that writes vectors of the scope."""

    objects = ScopeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent_id", "user_id", "kind", "team_id"], name="scope_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.agent_id}/{self.user_id or self.team_id}"


class Memory(models.Model):
    """One thing that an agent remembers."""

    id = MemoryIdField(primary_key=True)
    scope = models.ForeignKey(Scope, models.CASCADE, related_name="memories")
    type = models.CharField(max_length=10, choices=MemoryType)
    kind = models.CharField(max_length=15, choices=MemoryKind, default=MemoryKind.OBSERVATION)
    tier = models.CharField(max_length=10, choices=Tier, default=Tier.LONG_TERM)
    name = ExactCharField(max_length=255)
    content = ExactTextField()
    description = ExactCharField(max_length=500, blank=True, default="")
    detail = ExactJSONField(default=dict)
    metadata = ExactJSONField(default=dict)
    tags = TagsField(default=list)
    source = ExactCharField(max_length=50, blank=True, default="")
    importance = models.FloatField(default=0.5)
    confidence = models.FloatField(default=1.0)
    pinned = models.BooleanField(default=False)
    core = models.BooleanField(default=False)
    visibility = models.CharField(max_length=10, choices=Visibility, default=Visibility.PRIVATE)
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    due_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    last_accessed_at = models.DateTimeField(null=True)
    access_count = models.PositiveIntegerField(default=0)
    recall_log = ExactCharField(max_length=recall_log.MAX_CHARS, blank=True, default="")
    """The days on which it was recalled, as `memory.recall_log` writes them."""
    version = models.PositiveIntegerField(default=1)
    external_id = ExactCharField(max_length=255, null=True)
    """The id under which an imported memory is known where it came from."""

    objects = MemoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "memories"
        indexes = [
            models.Index(fields=["scope", "status", "created_at", "id"], name="memory_by_age"),
            # a list of all but the trash, which no index that begins with the status can order
            models.Index(fields=["scope", "created_at", "id"], name="memory_by_creation"),
            models.Index(fields=["scope", "updated_at", "id"], name="memory_by_change"),
            # covers the counts beside the types, and finds the rare ones
            models.Index(fields=["scope", "type", "status", "created_at"], name="memory_by_type"),
            models.Index(fields=["scope", "name"], name="memory_by_name"),
            models.Index(fields=["scope", "due_at"], name="memory_by_due_time"),
            models.Index(fields=["expires_at"], name="memory_by_expiry"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["scope", "external_id"], name="memory_imported_once")
        ]

    def __str__(self) -> str:
        return f"[{self.type}] {self.name}"


class MemoryTerms(models.Model):
    """What is indexed of a memory: a narrow table, so that no schema change remakes it.

    `terms` holds the analyzer's terms of name, description and content, a line each;
    `folded` the same three texts for literal matching.
    """

    memory = models.OneToOneField(Memory, models.CASCADE, primary_key=True, related_name="indexed")
    # no key and no index: a planner that finds one walks the scope instead of the matches
    scope_id = models.BigIntegerField()
    terms = TermsField()
    folded = ExactTextField()
    content_terms = models.PositiveIntegerField()
    analyzer_version = models.PositiveSmallIntegerField()

    objects = MemoryTermsQuerySet.as_manager()

    def __str__(self) -> str:
        return f"terms of {self.memory_id}"


class MemoryRevision(models.Model):
    """A memory's state before a change, and the change's author."""

    memory = models.ForeignKey(Memory, models.CASCADE, related_name="revisions")
    version = models.PositiveIntegerField()
    state = ExactJSONField()
    actor_kind = models.CharField(max_length=10, choices=ActorKind)
    actor = ExactCharField(max_length=255)
    reason = ExactCharField(max_length=255, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["memory", "version"], name="revision_once")]

    def __str__(self) -> str:
        return f"{self.memory_id} v{self.version}"


class IdempotencyRecord(models.Model):
    """What a write under an Idempotency-Key came to, so that its repetition does nothing.

    It holds ids and no text: a memory that is erased leaves no trace here. `fingerprint` is
    keyed, so that no text can be guessed from it.
    """

    scope = models.ForeignKey(Scope, models.CASCADE, related_name="idempotency_records")
    key = ExactCharField(max_length=255)
    fingerprint = ExactCharField(max_length=64)
    outcome = ExactJSONField()
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope", "key"], name="idempotency_once")]

    def __str__(self) -> str:
        return f"{self.scope_id}: {self.key}"
