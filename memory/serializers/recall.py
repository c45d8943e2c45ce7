"""Searches, prefetches and tool calls as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agents.endpoint import StrictSerializer
from agents.serializers import ExactField, UserIdField
from memory.models import MemoryKind, MemoryType
from memory.serializers.fields import NumberField, TimeField
from memory.serializers.memories import MemorySerializer
from memory.serializers.queries import MAX_QUERY_CHARS
from memory.services.recall import MODES


class SearchBody(StrictSerializer):
    """What is looked for, and among which memories."""

    user_id = UserIdField()
    query = ExactField(max_length=MAX_QUERY_CHARS)
    limit = serializers.IntegerField(required=False, default=10, min_value=1, max_value=100)
    cursor = serializers.RegexField(
        r"^[0-9]{1,4}$", required=False, default="0",
        error_messages={"invalid": "This is no cursor; begin again without one."},
        help_text="Where to go on: the `next` of the answer before, for the same question.",
    )  # fmt: skip
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
    next = serializers.CharField(
        allow_null=True, help_text="The `cursor` of those that follow; null after the last."
    )
    mode = serializers.CharField(help_text="How it was searched.")
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text=(
            "`no_vectors`: no model embeds, so by words only; `embedding_failed`: it failed, so by "
            "words only; `not_reranked`: the model that was to pick failed; `truncated`: more "
            "matched than were ranked."
        ),
    )
    reranked = serializers.BooleanField(
        allow_null=True,
        help_text="Whether a model picked among the best; null where none was asked.",
    )
    abstained = serializers.BooleanField(
        help_text="Nothing scores as high as `min_score`: nothing is better than noise."
    )
    nearest = HitSerializer(
        many=True, help_text="Where it abstained, the best of the noise; not counted as recalled."
    )


class PrefetchBody(StrictSerializer):
    """What the user said."""

    user_id = UserIdField()
    message = ExactField(max_length=1_000_000, allow_blank=True)
    session_id = ExactField(
        max_length=255, required=False, allow_blank=True, help_text="Kept for sessions to come."
    )


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
    abstained = serializers.BooleanField(
        required=False, help_text="Memories were near, none of them near enough."
    )


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
