"""What a list, a search or a bulk delete is narrowed to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memory.models import Status
from memory.querysets import MemoryQuerySet


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Conditions that all must hold; an empty one holds for every memory.

    Each of the folded `words` must occur in the text, be it as part of a longer one; what is
    in the trash has none. `created_after` and `created_before` are exclusive. Without
    `statuses` a list shows all but the trash, and a search what may be recalled.
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
    words: tuple[str, ...] = ()

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
