"""The tables: memories with what belongs to them, and the control plane's own."""

from __future__ import annotations

from memory.models.control import (
    FormerStore,
    GoldenQuestion,
    GoldenRun,
    Job,
    JobState,
    ModelEndpoint,
    ModelPurpose,
    NodeLease,
    Pulse,
)
from memory.models.counts import FIGURES, SAVED, TOOK, AgentDay, DayCounts, ScopeDay
from memory.models.memories import (
    ActorKind,
    IdempotencyRecord,
    Memory,
    MemoryKind,
    MemoryRevision,
    MemoryTerms,
    MemoryType,
    OwnerKind,
    Scope,
    Status,
    Store,
    StoreState,
    Tier,
    Visibility,
)
from memory.models.vectors import MemoryVector

__all__ = [
    "FIGURES",
    "SAVED",
    "TOOK",
    "ActorKind",
    "AgentDay",
    "DayCounts",
    "FormerStore",
    "GoldenQuestion",
    "GoldenRun",
    "IdempotencyRecord",
    "Job",
    "JobState",
    "Memory",
    "MemoryKind",
    "MemoryRevision",
    "MemoryTerms",
    "MemoryType",
    "MemoryVector",
    "ModelEndpoint",
    "ModelPurpose",
    "NodeLease",
    "OwnerKind",
    "Pulse",
    "Scope",
    "ScopeDay",
    "Status",
    "Store",
    "StoreState",
    "Tier",
    "Visibility",
]
