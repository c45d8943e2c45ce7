"""Who may try a recall on whose memories, and the record of it."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import Any

from agents import audit
from agents.models import Agent, AuditAction, AuditEntry
from memory.models import Memory, Status
from memory.services.demo import DEMO_FILE


def is_free(account: Any, agent: Agent, user_id: str) -> bool:
    """Return whether it takes no reason: what is one's own, or the demo's."""
    return audit.owns(account, agent, user_id) or is_demo(agent, user_id)


def is_demo(agent: Agent, user_id: str) -> bool:
    """Return whether all that `agent` remembers of `user_id` came with the demo.

    One memory of another origin, and it may be a person of the same name.
    """
    shipped = _shipped().get((agent.name, user_id))
    if not shipped:
        return False
    memories = Memory.objects.in_scope(agent, user_id).exclude(status=Status.TRASHED)
    origins = set(memories.values_list("external_id", flat=True)[: len(shipped) + 1])
    return bool(origins) and origins <= shipped


def note_trial(actor: Any, agent: Agent, user_id: str, *, reason: str, now: datetime) -> AuditEntry:
    """Record why `actor` tries recalls of somebody else's memories, before any is shown."""
    action = AuditAction.CONTENT_TRIED
    return audit.note_content_read(actor, agent, user_id, reason=reason, now=now, action=action)


@cache
def _shipped() -> dict[tuple[str, str], frozenset[str]]:
    """Return the demo's memories by agent and user, as the external ids they are imported with."""
    found: dict[tuple[str, str], set[str]] = {}
    for each in json.loads(DEMO_FILE.read_text(encoding="utf-8"))["memories"]:
        found.setdefault((each["agent"], each["user_id"]), set()).add(f"demo-{each['id']}")
    return {whose: frozenset(ids) for whose, ids in found.items()}
