"""Memories, searches and answers as JSON. What is checked, is checked in `drafts`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.utils.timezone import is_aware
from rest_framework import serializers

from agents.endpoint import StrictSerializer
from agents.models import Backend, MemoryConfig, validate_sqlite_path
from agents.serializers import ExactField, PageQuery, UserIdField
from memory import drafts
from memory.analyzer import fold
from memory.errors import InvalidMemory
from memory.filters import MemoryFilter
from memory.models import ActorKind, Memory, MemoryKind, MemoryType, Status, Tier, Visibility
from memory.retrieval.lexical import Hit
from memory.services.recall import MODES

MAX_BATCH = 200
MAX_QUERY_CHARS = 10_000
_TIMES = ("due_at", "expires_at", "created_at", "updated_at", "last_accessed_at")
_PLAIN = (
    "id", "type", "kind", "tier", "name", "content", "description", "detail", "metadata", "tags",
    "source", "importance", "confidence", "pinned", "core", "visibility", "status",
    "access_count", "version",
)  # fmt: skip
_PLUS_AS_SPACE = re.compile(r" (?=\d{2}:?\d{2}$)")


class TimeField(serializers.DateTimeField):
    """ISO 8601; without a zone it is UTC."""

    def to_internal_value(self, value: Any) -> datetime:
        """Return an aware time; a blank before the zone is a `+` that was not encoded."""
        if isinstance(value, str):
            value = _PLUS_AS_SPACE.sub("+", value)
        try:
            moment = drafts.parse_time(value)
        except ValueError as error:
            raise serializers.ValidationError(f"{error} In a URL, + is %2B.") from error
        if moment is None:
            raise serializers.ValidationError("This must be a time.")
        return moment


class NumberField(serializers.FloatField):
    """A number; NaN, which every bound lets through, is none."""

    def to_internal_value(self, data: Any) -> float:
        """Return the number. Raises ValidationError."""
        value = super().to_internal_value(data)
        if math.isnan(value):
            self.fail("invalid")
        return value


# --- memories --------------------------------------------------------------------------


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
    visibility = serializers.ChoiceField(choices=Visibility.choices, required=False)
    status = serializers.ChoiceField(choices=Status.choices, required=False)
    due_at = serializers.DateTimeField(required=False, allow_null=True)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class NewMemory(MemoryFields):
    """A memory to be saved, and whose it is."""

    user_id = UserIdField()

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return {"user_id", "draft"}."""
        values = dict(data)
        user_id = _parsed(drafts.parse_user_id, values.pop("user_id", None))
        return {"user_id": user_id, "draft": _parsed(drafts.parse_draft, values)}


class MemoryChanges(MemoryFields):
    """Fields to be changed; each value replaces the old one whole."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return the checked changes."""
        return _parsed(drafts.parse_changes, data)


class MemorySerializer(MemoryFields):
    """A memory as it is."""

    id = serializers.IntegerField()
    user_id = UserIdField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    last_accessed_at = serializers.DateTimeField(allow_null=True)
    access_count = serializers.IntegerField(help_text="How often it was recalled.")
    version = serializers.IntegerField(help_text="Grows with every change; see `ETag`.")


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


# --- queries ---------------------------------------------------------------------------


class UserQuery(StrictSerializer):
    """Whose memory it is."""

    user_id = UserIdField()


class DeleteQuery(UserQuery):
    """Whose memory it is, and how far it is to be deleted."""

    purge = serializers.BooleanField(
        required=False, default=False, help_text="Erase every trace, now; not into the trash."
    )


class HistoryQuery(UserQuery, PageQuery):
    """Whose memory it is, and where in its history to go on."""


class FilterQuery(UserQuery):
    """Which memories: what is repeated is any of these, but every `tag`."""

    type = serializers.ListField(
        child=serializers.ChoiceField(choices=MemoryType.choices), required=False
    )
    kind = serializers.ListField(
        child=serializers.ChoiceField(choices=MemoryKind.choices), required=False
    )
    tag = serializers.ListField(child=ExactField(), required=False)
    tier = serializers.ChoiceField(choices=Tier.choices, required=False)
    source = ExactField(required=False)  # type: ignore[assignment]
    status = serializers.ListField(
        child=serializers.ChoiceField(choices=Status.choices), required=False,
        help_text="By default all but `trashed`.",
    )  # fmt: skip
    q = ExactField(
        required=False,
        max_length=MAX_QUERY_CHARS,
        help_text="Words that must all occur in the text, be it inside longer ones.",
    )
    created_after = TimeField(required=False, help_text="Without a zone, UTC.")
    created_before = TimeField(required=False)
    min_importance = NumberField(min_value=0, max_value=1, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse what would narrow nothing, or could only find nothing."""
        if "q" in attrs and not fold(attrs["q"]).split():
            raise serializers.ValidationError({"q": "There is no word in this."})
        if "q" in attrs and Status.TRASHED in attrs.get("status", []):
            raise serializers.ValidationError(
                {"q": "The trash is not searched; list it with status=trashed alone."}
            )
        return attrs


class ListQuery(FilterQuery, PageQuery):
    """Which memories, and where in their list to go on."""


def to_filter(query: Mapping[str, Any]) -> MemoryFilter:
    """Return the filter that a checked `FilterQuery` describes."""
    return MemoryFilter(
        types=tuple(query.get("type", ())),
        kinds=tuple(query.get("kind", ())),
        tier=query.get("tier", ""),
        tags=tuple(query.get("tag", ())),
        source=query.get("source", ""),
        statuses=tuple(query.get("status", ())),
        created_after=query.get("created_after"),
        created_before=query.get("created_before"),
        min_importance=query.get("min_importance", 0.0),
        words=tuple(fold(query.get("q", "")).split()),
    )


# --- recall ----------------------------------------------------------------------------


class SearchBody(StrictSerializer):
    """What is looked for, and among which memories."""

    user_id = UserIdField()
    query = ExactField(max_length=MAX_QUERY_CHARS)
    limit = serializers.IntegerField(required=False, default=10, min_value=1, max_value=100)
    type = serializers.ChoiceField(choices=MemoryType.choices, required=False)
    kind = serializers.ChoiceField(choices=MemoryKind.choices, required=False)
    tags = serializers.ListField(
        child=ExactField(), required=False, help_text="Each must be there."
    )
    after = TimeField(required=False, help_text="Created after this.")
    before = TimeField(required=False, help_text="Created before this.")
    min_score = NumberField(
        required=False, min_value=0, max_value=1,
        help_text="0 gives all that matches; by default what is likely to be meant.",
    )  # fmt: skip
    mode = serializers.ChoiceField(choices=MODES, required=False, default="auto")


class HitSerializer(serializers.Serializer[Any]):
    """A memory that was found."""

    memory = MemorySerializer()
    score = serializers.FloatField(help_text="In [0, 1].")
    matched = serializers.ListField(
        child=serializers.CharField(), help_text="The words of the query that it matched."
    )


class SearchAnswer(serializers.Serializer[Any]):
    """Hits, best first."""

    results = HitSerializer(many=True)
    mode = serializers.CharField(help_text="How it was searched.")
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text="`no_vectors`: by words only; `truncated`: more matched than were ranked.",
    )


class PrefetchBody(StrictSerializer):
    """What the user said."""

    user_id = UserIdField()
    message = ExactField(max_length=1_000_000, allow_blank=True)
    session_id = ExactField(max_length=255, required=False)


class TokensSerializer(serializers.Serializer[Any]):
    """How much of the budget the block takes, by estimate."""

    used = serializers.IntegerField()
    budget = serializers.IntegerField()


class PrefetchAnswer(serializers.Serializer[Any]):
    """What goes into the prompt. With memory off it is `{"enabled": false}` alone."""

    enabled = serializers.BooleanField()
    memory_context = serializers.CharField(
        required=False, help_text="The block; '' where nothing fits."
    )
    system_prompt = serializers.CharField(
        required=False, help_text="The agent's prompt, the instructions and the block as one text."
    )
    memories = HitSerializer(many=True, required=False)
    reminders = MemorySerializer(
        many=True, required=False, help_text="Memories whose `due_at` has come."
    )
    tokens = TokensSerializer(required=False)
    degraded = serializers.ListField(child=serializers.CharField(), required=False)


# --- tools and configuration -----------------------------------------------------------


class ToolsQuery(StrictSerializer):
    """Whose form the definitions have."""

    format = serializers.ChoiceField(
        choices=("openai", "anthropic"), required=False, default="openai"
    )


class ToolsAnswer(serializers.Serializer[Any]):
    """Tool definitions as the provider's API takes them; none while memory is off."""

    tools = serializers.ListField(child=serializers.DictField())


class ArgumentsField(serializers.JSONField):
    """A tool's arguments: an object, or the text of one."""


class ToolBody(StrictSerializer):
    """A model's call of a tool, on behalf of a user."""

    user_id = UserIdField()
    arguments = ArgumentsField(help_text="As the model gave them: an object, or JSON in a string.")


class ToolAnswerSerializer(serializers.Serializer[Any]):
    """`text` is what the model should read."""

    ok = serializers.BooleanField()
    result = serializers.DictField()
    text = serializers.CharField()


class MemoryConfigSerializer(StrictSerializer):
    """Whether and where an agent remembers, and how much it is given back."""

    enabled = serializers.BooleanField(required=False)
    backend = serializers.ChoiceField(choices=Backend.choices, required=False)
    sqlite_path = ExactField(
        max_length=100,
        required=False,
        validators=[validate_sqlite_path],
        help_text="A file name that ends in .db.",
    )
    prefetch_limit = serializers.IntegerField(min_value=1, max_value=50, required=False)
    budget_tokens = serializers.IntegerField(min_value=50, max_value=100_000, required=False)


class ConfigChanges(MemoryConfigSerializer):
    """Fields to be changed."""

    leave_memories = serializers.BooleanField(
        required=False,
        write_only=True,
        help_text="Let another backend or file begin without the present memories.",
    )


class HealthAnswer(serializers.Serializer[Any]):
    """Whether Hippo works, part by part."""

    status = serializers.CharField(help_text="`ok`, `reduced` or `down`.")
    parts = serializers.DictField(child=serializers.CharField())


def config_json(config: MemoryConfig) -> dict[str, Any]:
    """Return a configuration as JSON values."""
    return dict(MemoryConfigSerializer(config).data)


def _parsed(parse: Callable[[Any], Any], value: Any) -> Any:
    try:
        return parse(value)
    except InvalidMemory as error:
        raise serializers.ValidationError(error.fields) from error
