"""What a list, a search or a bulk delete is narrowed to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from memory.models import Status
from memory.querysets import MemoryQuerySet


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Conditions that all must hold; an empty one holds for every memory.

    Each of the folded `words` must occur in the text, be it as part of a longer one; what is
    in the trash has none. `created_after` and `created_before` are exclusive;
    `unused_since` holds for what was not recalled since then, or never. Without `statuses`
    a list shows all but the trash, and a search what may be recalled.
    """

    types: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    tier: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    statuses: tuple[str, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    min_importance: float = 0.0
    unused_since: datetime | None = None
    words: tuple[str, ...] = ()

    def to_payload(self) -> dict[str, Any]:
        """Return the filter as JSON values, for a job."""
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asdict(self).items()
            if value
        }

    @classmethod
    def of_payload(cls, payload: Mapping[str, Any]) -> MemoryFilter:
        """Return the filter that `to_payload` wrote."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in payload.items()
        }
        for name in ("created_after", "created_before", "unused_since"):
            if name in values:
                values[name] = datetime.fromisoformat(values[name])
        return cls(**values)

    def narrow(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        """Return those of `memories` that meet every condition but `statuses`."""
        if self.types:
            memories = memories.filter(type__in=self.types)
        if self.kinds:
            memories = memories.filter(kind__in=self.kinds)
        if self.tier:
            memories = memories.filter(tier=self.tier)
        if self.source:
            memories = memories.filter(source=self.source)
        if self.created_after:
            memories = memories.filter(created_at__gt=self.created_after)
        if self.created_before:
            memories = memories.filter(created_at__lt=self.created_before)
        if self.min_importance > 0:
            memories = memories.filter(importance__gte=self.min_importance)
        if self.unused_since:
            never, long_ago = Q(last_accessed_at=None), Q(last_accessed_at__lt=self.unused_since)
            memories = memories.filter(never | long_ago)
        if self.words:
            memories = memories.containing(self.words)
        return memories.tagged(self.tags)

    def listed(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        """Return what a list shows: narrowed, of the statuses asked for or all but trash."""
        narrowed = self.narrow(memories)
        if self.statuses:
            return narrowed.filter(status__in=self.statuses)
        return narrowed.exclude(status=Status.TRASHED)

    def recalled(self, memories: MemoryQuerySet, now: datetime) -> MemoryQuerySet:
        """Return what a search considers: narrowed, of the statuses asked for or live."""
        narrowed = self.narrow(memories)
        if self.statuses:
            return narrowed.filter(status__in=self.statuses)
        return narrowed.live(now)
