"""Configuration and health as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agents.endpoint import StrictSerializer
from agents.models import Backend, MemoryConfig, validate_sqlite_path
from agents.serializers import ExactField
from memory.serializers.fields import NumberField


class MemoryConfigSerializer(StrictSerializer):
    """Whether and where an agent remembers, and how much it is given back."""

    enabled = serializers.BooleanField(required=False)
    backend = serializers.ChoiceField(choices=Backend.values, required=False)
    sqlite_path = ExactField(
        max_length=100,
        required=False,
        validators=[validate_sqlite_path],
        help_text="A file name that ends in .db.",
    )
    prefetch_limit = serializers.IntegerField(min_value=1, max_value=50, required=False)
    budget_tokens = serializers.IntegerField(min_value=50, max_value=100_000, required=False)
    min_score = NumberField(
        min_value=0, max_value=1, required=False, allow_null=True,
        help_text="Hits of a lower score are noise; null for the calibrated default.",
    )  # fmt: skip


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
