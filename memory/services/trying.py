"""Who may try a recall on whose memories, and the record of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from agents import audit
from agents.models import Agent, AuditAction, AuditEntry, Identity
from agents.roles import VIEW_CONTENT
from memory.services.demo import is_demo


def is_free(account: Any, agent: Agent, user_id: str) -> bool:
    """Return whether it takes no reason: what is one's own, or the demo's."""
    return audit.owns(account, agent, user_id) or is_demo(agent, user_id)


def own_users(account: Any, agent: Agent) -> list[str]:
    """Return the user_ids under which an agent knows the account itself."""
    identities = Identity.objects.filter(account=account)
    return [each.user_id for each in identities if each.agent_id in {None, agent.pk}]


def open_readings(account: Any, agent: Agent, *, now: datetime) -> dict[str, AuditEntry]:
    """Return by user_id whose memories a reason opens now; none without the permission."""
    # a permission that was taken away ends what it opened
    if not account.has_perm(VIEW_CONTENT):
        return {}
    readings: dict[str, AuditEntry] = {}
    for entry in audit.open_trials(account, agent, now=now):
        readings.setdefault(entry.user_id, entry)
    return readings


def note_trial(actor: Any, agent: Agent, user_id: str, *, reason: str, now: datetime) -> AuditEntry:
    """Record why `actor` tries recalls of somebody else's memories, before any is shown."""
    action = AuditAction.CONTENT_TRIED
    return audit.note_content_read(actor, agent, user_id, reason=reason, now=now, action=action)
