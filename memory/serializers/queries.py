"""Which memories a call is about: query parameters, and the filter they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from agents.endpoint import StrictSerializer
from agents.serializers import ExactField, PageQuery, UserIdField
from memory.analyzer import fold
from memory.filters import MemoryFilter
from memory.models import MemoryKind, MemoryType, Status, Tier
from memory.serializers.fields import NumberField, TimeField

MAX_QUERY_CHARS = 10_000


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


class DeleteManyQuery(FilterQuery, DeleteQuery):
    """Which memories are to be deleted, and how far."""


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
