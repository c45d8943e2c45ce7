"""Fields that the API reads in its own way."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from rest_framework import serializers

from memory import drafts
from memory.errors import InvalidMemory

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


def parsed(parse: Callable[[Any], Any], value: Any) -> Any:
    try:
        return parse(value)
    except InvalidMemory as error:
        raise serializers.ValidationError(error.fields) from error
