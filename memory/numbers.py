"""Whole numbers as addresses, forms, cursors and cells carry them."""

from __future__ import annotations

MOST_DIGITS = 18
"""So many fit into the 64 bits of a column, whatever they are."""


def whole_number(text: str, digits: int = MOST_DIGITS) -> int | None:
    """Return the number that a text of at most so many ASCII digits is, None for any other."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
