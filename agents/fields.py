"""Fields that mean the same on SQLite and on MySQL."""

from __future__ import annotations

from typing import Any

from django.db import models


def exact_collation(connection: Any) -> str | None:
    """Return the binary, no-pad collation of `connection`'s vendor; None where it is the default.

    MySQL's usual collations hold `u1`, `U1` and `u1 ` for one; SQLite compares bytes.
    """
    if connection.vendor != "mysql":
        return None
    return "utf8mb4_nopad_bin" if connection.mysql_is_mariadb else "utf8mb4_0900_bin"


class _ExactCollation:
    def db_parameters(self, connection: Any) -> Any:
        return {**super().db_parameters(connection), "collation": exact_collation(connection)}  # type: ignore[misc]


class ExactCharField(_ExactCollation, models.CharField):
    """Text compared character by character: case, accents and trailing spaces count."""

    def formfield(self, **kwargs: Any) -> Any:
        """Return a form field that keeps the spaces round what was typed."""
        if not self.choices:
            kwargs.setdefault("strip", False)
        return super().formfield(**kwargs)


class ExactTextField(_ExactCollation, models.TextField):
    """Long text compared character by character."""
