"""In which order people see a list, and where its next page begins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.core import signing
from django.db import connections
from django.db.models import Q

from memory.errors import InvalidMemory
from memory.models import Memory
from memory.querysets import MemoryQuerySet


@dataclass(frozen=True, slots=True)
class Order:
    """A total order of memories: by a column, ties by id the same way."""

    column: str
    is_descending: bool = True

    @property
    def columns(self) -> tuple[str, str]:
        """Return what Django orders by."""
        sign = "-" if self.is_descending else ""
        return f"{sign}{self.column}", f"{sign}id"

    def key(self, memory: Memory) -> tuple[Any, int]:
        """Return what a memory is sorted by among others."""
        return getattr(memory, self.column), memory.pk

    def cursor_at(self, memory: Memory) -> str:
        """Return where a list in this order goes on after `memory`."""
        value, memory_id = self.key(memory)
        text = value.isoformat() if isinstance(value, datetime) else value
        packed = json.dumps([self.column, self.is_descending, text, memory_id]).encode()
        return signing.b64_encode(packed).decode()

    def after(self, memories: MemoryQuerySet, cursor: str) -> MemoryQuerySet:
        """Return those of `memories` after the cursor. Raises InvalidMemory for a made-up one."""
        if not cursor:
            return memories
        value, memory_id = self._place(cursor)
        than = "lt" if self.is_descending else "gt"
        beyond = Q(**{f"{self.column}__{than}": value}) | Q(**{f"id__{than}": memory_id})
        # the first condition alone says where an index is entered
        return memories.filter(Q(**{f"{self.column}__{than}e": value}) & beyond)

    def _place(self, cursor: str) -> tuple[Any, int]:
        try:
            column, is_descending, value, memory_id = json.loads(
                signing.b64_decode(cursor.encode())
            )
            if column.endswith("_at"):
                value = datetime.fromisoformat(value)
            is_ours = (column, is_descending) == (self.column, self.is_descending)
            if not is_ours or not isinstance(memory_id, int) or _kind(value) is None:
                raise ValueError("another order's")
        except (ValueError, TypeError, AttributeError) as error:
            problem = "This is no cursor of this list; begin again without one."
            raise InvalidMemory({"cursor": problem}) from error
        return value, memory_id


ORDERS = {
    "newest": Order("created_at"),
    "oldest": Order("created_at", is_descending=False),
    "changed": Order("updated_at"),
    "important": Order("importance"),
    "recalled": Order("access_count"),
}
"""The times are indexed; for the others a scope's rows are sorted."""


def first_of(parts: Sequence[MemoryQuerySet], order: Order, limit: int) -> MemoryQuerySet:
    """Return the first `limit` rows of queries of one store together, by one statement.

    Each part is cut by itself: no index orders the rows of several scopes.
    """
    cut = [part.order_by(*order.columns)[:limit] for part in parts]
    if len(cut) == 1:
        return cut[0]
    alias = parts[0].db
    if connections[alias].vendor == "sqlite":
        # SQLite takes no LIMIT inside a union, MySQL none inside IN
        chosen = reduce(or_, (Q(pk__in=part.values("pk")) for part in cut))
        return Memory.objects.using(alias).filter(chosen).order_by(*order.columns)[:limit]
    return cut[0].union(*cut[1:], all=True).order_by(*order.columns)[:limit]


def _kind(value: Any) -> type | None:
    """Return what a cursor's value is, None where it can be no column's."""
    if isinstance(value, datetime):
        return datetime if value.tzinfo else None
    return type(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
