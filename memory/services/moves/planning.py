"""What a change of an agent's store would do, looked at before anything is done."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from agents.models import Agent, Backend
from memory.databases import Place, agent_at, same_store, store_alias
from memory.models import Scope, StoreState
from memory.services import maintenance
from memory.services.moves import placing


@dataclass(frozen=True, slots=True)
class Plan:
    """A dry run: what is here, what is there, and what can be done.

    `memories` and `there` count the trash as well. `state` is that of the agent in the other
    store, '' where it has nothing there. `free_bytes` is None for MySQL.
    """

    source: Place
    target: Place
    memories: int
    users: int
    there: int
    state: str
    is_same: bool
    size_bytes: int | None
    free_bytes: int | None

    @property
    def can_move(self) -> bool:
        """Return whether a copy would overwrite nothing but an old copy."""
        holds_own = self.there and self.state in {StoreState.OPEN, StoreState.LEFT}
        return not (self.is_same or holds_own or self.state == StoreState.ERASED)

    @property
    def can_enter(self) -> bool:
        """Return whether the agent can go on with what the other store holds, if anything."""
        closed = {StoreState.MOVED, StoreState.FROZEN, StoreState.ERASED}
        return not self.is_same and self.state not in closed


def plan(agent: Agent, target: Place) -> Plan:
    """Look at both stores; a file that is not there yet is not made.

    Raises what a silent store raises.
    """
    source, there = Place.of(agent.memory_config), agent_at(agent, target)
    is_new = bool(target.sqlite_path) and not _path(target).exists()
    state = None if is_new else placing.state_of(there)
    return Plan(
        source=source,
        target=target,
        memories=maintenance.count_memories(agent),
        users=Scope.objects.for_agent(agent).count(),
        there=0 if is_new else maintenance.count_memories(there),
        state=state or "",
        is_same=not is_new and same_store(store_alias(agent), store_alias(there)),
        size_bytes=_size(source),
        free_bytes=_free(target),
    )


def _path(place: Place) -> Path:
    return Path(settings.MEMORY_DIR) / place.sqlite_path


def _size(place: Place) -> int | None:
    path = _path(place)
    return path.stat().st_size if place.backend == Backend.SQLITE and path.exists() else None


def _free(place: Place) -> int | None:
    if place.backend == Backend.MYSQL:
        return None
    folder = next(each for each in _path(place).parents if each.exists())
    return shutil.disk_usage(folder).free
