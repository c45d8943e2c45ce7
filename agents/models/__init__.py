"""Who the agents are, how each is configured, and who may speak for whom."""

from __future__ import annotations

from agents.models.accounts import Identity, Membership, Profile, Team, Theme
from agents.models.agents import (
    Agent,
    AgentNotErased,
    AgentQuerySet,
    Backend,
    MemoryConfig,
    Pause,
    is_user_id,
    validate_agent_name,
    validate_sqlite_path,
    validate_user_id,
)
from agents.models.audit import AuditAction, AuditEntry
from agents.models.keys import ApiKey, ApiKeyQuerySet, KeyState, live_at

__all__ = [
    "Agent",
    "AgentNotErased",
    "AgentQuerySet",
    "ApiKey",
    "ApiKeyQuerySet",
    "AuditAction",
    "AuditEntry",
    "Backend",
    "Identity",
    "KeyState",
    "Membership",
    "MemoryConfig",
    "Pause",
    "Profile",
    "Team",
    "Theme",
    "is_user_id",
    "live_at",
    "validate_agent_name",
    "validate_sqlite_path",
    "validate_user_id",
]
