"""Who may try a recall on whose memories, and the record of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from agents import audit
from agents.models import Agent, AuditAction, AuditEntry
from memory.services.demo import is_demo


def is_free(account: Any, agent: Agent, user_id: str) -> bool:
    """Return whether it takes no reason: what is one's own, or the demo's."""
    return audit.owns(account, agent, user_id) or is_demo(agent, user_id)


def note_trial(actor: Any, agent: Agent, user_id: str, *, reason: str, now: datetime) -> AuditEntry:
    """Record why `actor` tries recalls of somebody else's memories, before any is shown."""
    action = AuditAction.CONTENT_TRIED
    return audit.note_content_read(actor, agent, user_id, reason=reason, now=now, action=action)
