"""What operators set of an agent, with a record of who set what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS, models, transaction

from agents import audit
from agents.models import Agent, AuditAction, Backend, MemoryConfig
from memory.databases import Place, store_alias
from memory.errors import BackendUnavailable
from memory.services import maintenance
from memory.services.moves import trials

_SHOWN_CHARS = 80
OF_AGENT = ("display_name", "system_prompt", "language")
"""The fields of the agent itself that can be set; the others are of its configuration."""


def change(agent: Agent, values: Mapping[str, Any], *, actor: Any, now: datetime) -> list[str]:
    """Change fields of an agent or of its configuration; return the names of those that differ.

    Only these are written: who changes other fields at the same time loses nothing, of the
    same field the last one counts. Not for `backend` and `sqlite_path`, which `placing` and
    `moving` change. The agent is given back with the new values.
    Raises ValidationError for a bad value; then nothing is changed.
    """
    of_agent = {name: value for name, value in values.items() if name in OF_AGENT}
    of_config = {name: value for name, value in values.items() if name not in OF_AGENT}
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        config = MemoryConfig.objects.select_for_update().get(agent=agent)
        row = Agent.objects.select_for_update().get(pk=agent.pk)
        changes = _set(row, of_agent) | _set(config, of_config)
        if changes:
            detail = "; ".join(f"{name}: {change}" for name, change in changes.items())
            audit.note(actor, AuditAction.SETTING_CHANGED, agent=row, detail=detail, now=now)
    for name in of_agent:
        setattr(agent, name, getattr(row, name))
    agent.memory_config = config
    return list(changes)


def create(
    name: str, *, backend: str, language: str, display_name: str = "", actor: Any, now: datetime
) -> Agent:
    """Create an agent whose store is open; one that cannot be opened leaves no agent.

    Raises BackendUnavailable, and ValidationError for a name that is malformed or taken.
    """
    path = trials.SQLITE_FILE if backend == Backend.SQLITE else ""
    trial = trials.try_place(Place(backend, path), make=True)
    if trial.obstacle:
        raise BackendUnavailable(trial.obstacle)
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        agent = Agent.objects.create_agent(
            name,
            backend=backend,
            sqlite_path=trials.SQLITE_FILE,
            language=language,
            display_name=display_name,
        )
        store_alias(agent)
        audit.note(actor, AuditAction.AGENT_CREATED, agent=agent, detail=name, now=now)
    return agent


def delete(agent: Agent, *, actor: Any, now: datetime) -> int:
    """Delete an agent, its keys and all that it remembers; return how many memories it had.

    Raises AgentNotErased where a store does not let itself be erased now; the agent stays.
    """
    count = maintenance.count_memories(agent)
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        audit.note(
            actor, AuditAction.AGENT_DELETED, agent=agent, detail=agent.name, count=count, now=now
        )
        agent.delete()
    return count


def _set(row: models.Model, values: Mapping[str, Any]) -> dict[str, str]:
    """Write what differs; return by name how it changed, in words for the audit."""
    before = {name: getattr(row, name) for name in values}
    changed = [name for name, value in values.items() if before[name] != value]
    for name in changed:
        setattr(row, name, values[name])
    fields = [field.name for field in row._meta.concrete_fields]
    row.clean_fields(exclude=[name for name in fields if name not in changed])
    if changed:
        row.save(update_fields=changed)
    return {name: _in_words(before[name], values[name]) for name in changed}


def _in_words(before: Any, after: Any) -> str:
    if isinstance(after, str) and max(len(before), len(after)) > _SHOWN_CHARS:
        return f"{len(before)} → {len(after)} characters"
    return f"{before} → {after}"
