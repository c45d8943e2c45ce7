"""Columns of the memory tables that both engines must hold alike."""

from __future__ import annotations

import json
from typing import Any

from django.db import models

from agents.fields import ExactTextField


class MemoryIdField(models.BigIntegerField):
    """A 53-bit id made by the application; on SQLite it is the table's rowid."""

    def db_type(self, connection: Any) -> str:
        """Return `integer` on SQLite, where no other type makes a key the rowid."""
        return "integer" if connection.vendor == "sqlite" else "bigint"

    def rel_db_type(self, connection: Any) -> str:
        """Return the same type for keys that point here."""
        return self.db_type(connection)


class TermsField(models.TextField):
    """The analyzer's ASCII terms, compared byte by byte."""

    def db_parameters(self, connection: Any) -> Any:
        """Add MySQL's ascii_bin, a quarter of the bytes that utf8mb4 reserves."""
        parameters = super().db_parameters(connection)
        if connection.vendor == "mysql":
            return {**parameters, "collation": "ascii_bin"}
        return parameters


class ExactJSONField(ExactTextField):
    """A JSON value kept as text.

    MySQL's own JSON type turns large integers into floats and reorders keys.
    """

    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        """Return the Python value."""
        if value == "{}":
            return {}  # nearly every memory's detail and metadata, and not for free
        return None if value is None else json.loads(value)

    def get_prep_value(self, value: Any) -> str:
        """Return the text that is stored."""
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    def to_python(self, value: Any) -> Any:
        """Return `value` as it is: it never arrives as text."""
        return value


class TagsField(ExactTextField):
    """A list of one-line strings, stored between line breaks so that one can be sought."""

    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> list[str]:
        """Return the tags in their order."""
        return value.strip("\n").split("\n") if value else []

    def get_prep_value(self, value: Any) -> str:
        """Return "\\na\\nb\\n"; "" for none."""
        return "\n".join(["", *value, ""]) if value else ""

    def to_python(self, value: Any) -> Any:
        """Return `value` as it is."""
        return value
