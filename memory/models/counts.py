"""What was done on each day, counted by the writes themselves: statistics, and no text.

A day is one of the server's TIME_ZONE. Where counting began later than an installation, the
days before have no rows.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from memory.models.memories import MemoryType, Scope


def _count() -> models.IntegerField[Any, Any]:
    return models.IntegerField(default=0)


class DayCounts(models.Model):
    """The figures of one day; `recalls` are those by agents, `answered` those that found any."""

    day = models.DateField(db_index=True)
    saved_user = _count()
    saved_project = _count()
    saved_feedback = _count()
    saved_reference = _count()
    changed = _count()
    deleted = _count()
    """Those that went into the trash, or were erased past it."""
    restored = _count()
    recalls = _count()
    answered = _count()
    # how long prefetches took: see `memory.latency` for the bounds
    took_0 = _count()
    took_1 = _count()
    took_2 = _count()
    took_3 = _count()
    took_4 = _count()
    took_5 = _count()
    took_6 = _count()
    took_7 = _count()
    took_8 = _count()
    took_9 = _count()
    took_10 = _count()
    took_11 = _count()
    took_12 = _count()
    took_13 = _count()
    took_14 = _count()
    took_15 = _count()
    took_16 = _count()
    took_17 = _count()
    took_18 = _count()
    took_19 = _count()
    took_20 = _count()
    took_21 = _count()

    class Meta:
        abstract = True


class ScopeDay(DayCounts):
    """What an agent did for one user on one day: the user's own figures, gone with the scope."""

    scope = models.ForeignKey(Scope, models.CASCADE, related_name="days", db_index=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope", "day"], name="scope_day_once")]

    def __str__(self) -> str:
        return f"{self.scope_id}: {self.day}"


class AgentDay(DayCounts):
    """What an agent did on one day for all its users: a sum that names none of them.

    It stays when users are erased. In several rows on MySQL, told apart by `shard`, so that
    writes for different users need not wait for one row.
    """

    agent_id = models.BigIntegerField()
    # big: what a prepared query puts in a value's place is, and no row has a number beyond a type
    shard = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent_id", "day", "shard"], name="agent_day_once")
        ]

    def __str__(self) -> str:
        return f"agent {self.agent_id}: {self.day}"


SAVED = tuple(f"saved_{kind}" for kind in MemoryType.values)
"""The columns that count new memories, by type."""
TOOK = tuple(f"took_{bucket}" for bucket in range(22))
"""The columns that count prefetches by how long they took, the quickest first."""
FIGURES = (*SAVED, "changed", "deleted", "restored", "recalls", "answered", *TOOK)
"""All columns that count."""
