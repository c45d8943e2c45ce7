"""Agents and keys as JSON, for operators."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone
from rest_framework import serializers

from agents.endpoint import StrictSerializer
from agents.keys import MAX_OVERLAP
from agents.models import ApiKey, validate_agent_name, validate_user_id

MAX_PAGE = 200


class ExactField(serializers.CharField):
    """Text as it was sent: a string, with the spaces round it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        """Return the text; a number is none."""
        if not isinstance(data, str):
            raise serializers.ValidationError("This must be text.")
        return data


class UserIdField(ExactField):
    """The end user an agent talks to: 1 to 255 characters, compared exactly."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("help_text", "The end user whose memories these are; compared exactly.")
        super().__init__(max_length=255, **kwargs)

    def run_validators(self, value: str) -> None:
        """Raise ValidationError for what cannot name a user."""
        try:
            validate_user_id(value)
        except ValidationError as error:
            raise serializers.ValidationError(error.messages) from error


class PageQuery(StrictSerializer):
    """Where in a list to go on, and how far."""

    cursor = ExactField(
        required=False, default="", allow_blank=True, help_text="`next` of the page before."
    )
    limit = serializers.IntegerField(
        required=False, default=50, min_value=1, max_value=MAX_PAGE, help_text="Entries a page."
    )


class AgentSerializer(StrictSerializer):
    """An AI assistant that calls Hippo."""

    name = ExactField(
        max_length=100,
        validators=[validate_agent_name],
        help_text="Letters, digits, `-`, `_` and `.` of any script.",
    )
    display_name = ExactField(max_length=200, required=False, allow_blank=True)
    system_prompt = ExactField(
        max_length=100_000,
        required=False,
        allow_blank=True,
        help_text="What `prefetch` begins its prompt with.",
    )
    language = serializers.ChoiceField(choices=list(dict(settings.LANGUAGES)), required=False)
    is_active = serializers.BooleanField(
        required=False, help_text="The keys of an inactive agent do not work."
    )
    created_at = serializers.DateTimeField(read_only=True)


class AgentPage(serializers.Serializer[Any]):
    """Agents by name."""

    results = AgentSerializer(many=True)
    next = serializers.CharField(allow_null=True, help_text="The `cursor` of the next page.")


class KeySerializer(StrictSerializer):
    """A key of an agent, without the key itself."""

    id = serializers.IntegerField(read_only=True)
    name = ExactField(max_length=100, required=False, allow_blank=True, default="")
    prefix = serializers.CharField(read_only=True, help_text="How the key begins.")
    user_id = UserIdField(
        required=False,
        allow_blank=True,
        default="",
        help_text="A bound key reaches this user's memories only; '' is not bound.",
    )
    created_at = serializers.DateTimeField(read_only=True)
    last_used_at = serializers.DateTimeField(read_only=True, allow_null=True)
    expires_at = serializers.DateTimeField(
        required=False,
        allow_null=True,
        help_text="From then on it opens nothing; null, or left out: never. Without a zone, UTC.",
    )
    revoked_at = serializers.DateTimeField(read_only=True, allow_null=True)
    replaced_by = serializers.IntegerField(
        source="replaced_by_id", read_only=True, allow_null=True,
        help_text="The id of the key that a rotation put in its place.",
    )  # fmt: skip

    def validate_expires_at(self, value: datetime | None) -> datetime | None:
        """Return the moment, if it is to come."""
        if value and value <= timezone.now():
            raise serializers.ValidationError("This is over already; give a time to come.")
        return value


class IssuedKey(KeySerializer):
    """A new key: `key` is shown only this once."""

    key = serializers.CharField(read_only=True)

    def to_representation(self, instance: tuple[ApiKey, str]) -> dict[str, Any]:
        """Return the row with the key itself."""
        row, key = instance
        return {**KeySerializer(row).data, "key": key}


class RotateBody(StrictSerializer):
    """How a key is replaced."""

    overlap_seconds = serializers.IntegerField(
        required=False,
        default=24 * 60 * 60,
        min_value=0,
        max_value=int(MAX_OVERLAP.total_seconds()),
        help_text="So long the old key goes on working beside the new one; 0: not at all.",
    )


class KeyPage(serializers.Serializer[Any]):
    """Keys of an agent, newest first."""

    results = KeySerializer(many=True)
    next = serializers.CharField(allow_null=True)
