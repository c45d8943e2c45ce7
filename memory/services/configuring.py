"""What operators set of an agent, with a record of who set what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS, transaction

from agents import audit
from agents.models import Agent, AuditAction, MemoryConfig


def change(agent: Agent, values: Mapping[str, Any], *, actor: Any, now: datetime) -> list[str]:
    """Change fields of an agent's memory configuration; return the names of those that differ.

    Not for `backend` and `sqlite_path`, which `placing` and `moving` change. The agent is given
    back with the new values. Raises ValidationError for a bad value; then nothing is changed.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        config = MemoryConfig.objects.select_for_update().get(agent=agent)
        before = {name: getattr(config, name) for name in values}
        changed = [name for name, value in values.items() if before[name] != value]
        for name in changed:
            setattr(config, name, values[name])
        config.full_clean(exclude=["agent"])
        if changed:
            config.save(update_fields=changed)
            detail = "; ".join(f"{name}: {before[name]} → {values[name]}" for name in changed)
            audit.note(actor, AuditAction.SETTING_CHANGED, agent=agent, detail=detail, now=now)
    agent.memory_config = config
    return changed
