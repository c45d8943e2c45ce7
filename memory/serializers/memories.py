"""Memories as JSON. What is checked, is checked in `drafts`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.utils.timezone import is_aware
from rest_framework import serializers

from agents.endpoint import StrictSerializer
from agents.serializers import ExactField, UserIdField
from memory import drafts
from memory.models import ActorKind, Memory, MemoryKind, MemoryType, Status, Tier, Visibility
from memory.retrieval.lexical import Hit
from memory.serializers.fields import parsed

MAX_BATCH = 200

_TIMES = ("due_at", "expires_at", "created_at", "updated_at", "last_accessed_at")
_PLAIN = (
    "id", "type", "kind", "tier", "name", "content", "description", "detail", "metadata", "tags",
    "source", "importance", "confidence", "pinned", "core", "visibility", "status",
    "access_count", "version",
)  # fmt: skip


class _Text(ExactField):
    """Text that `drafts` checks; what is declared here is for the schema."""


class MemoryFields(StrictSerializer):
    """What an author decides of a memory."""

    type = serializers.ChoiceField(choices=MemoryType.choices, help_text="What it is about.")
    content = _Text(help_text=f"At most {drafts.MAX_CONTENT_BYTES} bytes of UTF-8; not blank.")
    name = _Text(
        max_length=drafts.MAX_NAME_CHARS, required=False, help_text="By default from the content."
    )
    kind = serializers.ChoiceField(
        choices=MemoryKind.choices, required=False, help_text="How it is put."
    )
    tier = serializers.ChoiceField(choices=Tier.choices, required=False)
    description = _Text(max_length=drafts.MAX_DESCRIPTION_CHARS, required=False, allow_blank=True)
    detail = serializers.DictField(
        required=False,
        help_text=(
            "fact: subject, predicate, object; procedure: when, keywords, steps, cautions; "
            "summary: source_ids, session_id; observation: nothing."
        ),
    )
    metadata = serializers.DictField(
        required=False, help_text=f"Any JSON object of at most {drafts.MAX_METADATA_BYTES} bytes."
    )
    tags = serializers.ListField(
        child=_Text(max_length=drafts.MAX_TAG_CHARS), max_length=drafts.MAX_TAGS, required=False
    )
    source = _Text(max_length=50, required=False, allow_blank=True)  # type: ignore[assignment]
    importance = serializers.FloatField(min_value=0, max_value=1, required=False)
    confidence = serializers.FloatField(min_value=0, max_value=1, required=False)
    pinned = serializers.BooleanField(required=False)
    core = serializers.BooleanField(required=False)
    visibility = serializers.ChoiceField(
        choices=Visibility.choices, required=False, help_text="Kept for sharing to come."
    )
    status = serializers.ChoiceField(choices=Status.choices, required=False)
    due_at = serializers.DateTimeField(required=False, allow_null=True)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class NewMemory(MemoryFields):
    """A memory to be saved, and whose it is."""

    user_id = UserIdField()

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return {"user_id", "draft"}."""
        values = dict(data)
        user_id = parsed(drafts.parse_user_id, values.pop("user_id", None))
        return {"user_id": user_id, "draft": parsed(drafts.parse_draft, values)}


class MemoryChanges(MemoryFields):
    """Fields to be changed; each value replaces the old one whole."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return the checked changes."""
        return parsed(drafts.parse_changes, data)


class MemorySerializer(MemoryFields):
    """A memory as it is."""

    id = serializers.IntegerField()
    user_id = UserIdField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    last_accessed_at = serializers.DateTimeField(allow_null=True)
    access_count = serializers.IntegerField(help_text="How often it was recalled.")
    version = serializers.IntegerField(help_text="Grows with every change; see `ETag`.")


class DuplicateSerializer(serializers.Serializer[Any]):
    """A memory that says what another one says, or something like it."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    likeness = serializers.FloatField(help_text="From 0.5 to 1.")
    is_exact = serializers.BooleanField(
        help_text="The contents differ in case, width, stops, quotes and spaces at most."
    )
    is_same = serializers.BooleanField(help_text="Nearly the same words; nothing new is said.")


class SavedMemory(MemorySerializer):
    """A memory that was saved, and what says the same or the like already."""

    duplicates = DuplicateSerializer(
        many=True, required=False, help_text="The likest, at most three; absent where none is like."
    )


class MemoryPage(serializers.Serializer[Any]):
    """Memories, newest first."""

    results = MemorySerializer(many=True)
    next = serializers.CharField(
        allow_null=True, help_text="The `cursor` of the next page; null after the last."
    )


class _ItemField(serializers.DictField):
    """One of many, checked by itself later: what is wrong with it must not stop the others."""

    def to_internal_value(self, data: Any) -> Any:
        """Return what was sent."""
        return data


class NewMemories(StrictSerializer):
    """Memories to be saved, each by itself."""

    user_id = UserIdField()
    memories = serializers.ListField(
        child=_ItemField(allow_null=True), min_length=1, max_length=MAX_BATCH,
        help_text="Each as in `save_memory`, without `user_id`.",
    )  # fmt: skip


class BatchResult(serializers.Serializer[Any]):
    """What became of one of them: a memory or an error."""

    index = serializers.IntegerField(help_text="Its place in `memories`, from 0.")
    memory = MemorySerializer(required=False)
    error = serializers.DictField(required=False)


class BatchAnswer(serializers.Serializer[Any]):
    """What became of each; `saved` of them are saved."""

    saved = serializers.IntegerField()
    results = BatchResult(many=True)


class RevisionSerializer(serializers.Serializer[Any]):
    """A memory's state before a change, and who changed it, when and why."""

    version = serializers.IntegerField()
    state = serializers.DictField()
    actor_kind = serializers.ChoiceField(choices=ActorKind.choices)
    actor = serializers.CharField()
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()


class HistoryPage(serializers.Serializer[Any]):
    """Earlier states, newest first."""

    results = RevisionSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class Deleted(serializers.Serializer[Any]):
    """How many memories went to the trash."""

    deleted = serializers.IntegerField()


def memory_json(memory: Memory, user_id: str) -> dict[str, Any]:
    """Return a memory as JSON values, by hand: a serializer takes thirty times as long."""
    values: dict[str, Any] = {"id": memory.pk, "user_id": user_id}
    for name in _PLAIN:
        values[name] = getattr(memory, name)
    for name in _TIMES:
        values[name] = time_json(getattr(memory, name))
    return values


def time_json(moment: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC."""
    if moment is None:
        return None
    if is_aware(moment):
        moment = moment.astimezone(UTC)
    return moment.isoformat().replace("+00:00", "Z")


def hit_json(hit: Hit, user_id: str) -> dict[str, Any]:
    """Return a hit as JSON values; the score to six places."""
    return {
        "memory": memory_json(hit.memory, user_id),
        "score": round(hit.score, 6),
        "matched": list(hit.matched),
    }
