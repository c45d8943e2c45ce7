"""What the first run tries and makes: the backends, the first agent, its first key."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.utils import timezone
from django.utils.translation import gettext

from agents import audit, keys
from agents.keys import NewKey
from agents.models import Agent, ApiKey, AuditAction, Backend
from memory.databases import (
    MYSQL_SILENT,
    migrate_store,
    mysql_alias,
    mysql_obstacle,
    sqlite_alias,
    store_alias,
)
from memory.errors import BackendUnavailable, HippoError
from memory.models import Scope

SQLITE_FILE = "memory.db"
_KEY_NAME = "first key"


@dataclass(frozen=True, slots=True)
class Trial:
    """How a backend did; `obstacle` is '' where it works, else why not, translated."""

    backend: Backend
    obstacle: str
    place: str
    milliseconds: int


def try_backends() -> list[Trial]:
    """Write to, and read from, each backend that can be reached; nothing stays of it."""
    return [_time(Backend.SQLITE), _time(Backend.MYSQL)]


def find_obstacle(backend: str) -> str:
    """Return why `backend` cannot be used, translated; '' where it can."""
    if backend == Backend.MYSQL:
        if obstacle := mysql_obstacle(gettext):
            return obstacle
        fault = _try(mysql_alias())
        return gettext(MYSQL_SILENT) % fault if fault else ""
    fault = _try(sqlite_alias(SQLITE_FILE))
    return gettext("The memory folder cannot be used: %s.") % fault if fault else ""


def create_first_agent(actor: Any, name: str, *, backend: str, language: str) -> Agent:
    """Create an agent whose store is open; one that cannot be opened leaves no agent.

    Raises BackendUnavailable, and ValidationError for a name that is malformed or taken.
    """
    if obstacle := find_obstacle(backend):
        raise BackendUnavailable(obstacle)
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        agent = Agent.objects.create_agent(
            name, backend=backend, sqlite_path=SQLITE_FILE, language=language
        )
        audit.note(actor, AuditAction.AGENT_CREATED, agent=agent, now=timezone.now())
        store_alias(agent)
    return agent


def issue_first_key(agent: Agent, *, actor: Any, now: datetime) -> str:
    """Return a key of `agent`; an earlier one of here that nobody used is revoked.

    A page that was loaded again therefore leaves one key, the one that is seen.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        unseen = ApiKey.objects.filter(agent=agent, name=_KEY_NAME, last_used_at=None)
        for key in unseen.filter(revoked_at=None).select_related("agent"):
            keys.revoke(key, actor=actor, now=now)
        return keys.create(agent, NewKey(_KEY_NAME), actor=actor, now=now)[1]


def _time(backend: Backend) -> Trial:
    started = time.perf_counter()
    obstacle = find_obstacle(backend)
    milliseconds = max(round((time.perf_counter() - started) * 1000), 1)
    place = "MySQL"
    if backend == Backend.SQLITE:
        place = str(Path(settings.MEMORY_DIR) / SQLITE_FILE)
    elif not obstacle:
        server = connections[mysql_alias()].settings_dict
        place = f"{server['HOST'] or 'localhost'}/{server['NAME']}"
    return Trial(backend, obstacle, place, milliseconds)


def _try(alias: str) -> str:
    """Make the tables of a store, write a row and read it back; return what was in the way."""
    try:
        migrate_store(alias)
        with transaction.atomic(using=alias):
            row = Scope.objects.using(alias).create(user_id="setup")
            Scope.objects.using(alias).get(pk=row.pk)
            transaction.set_rollback(True, using=alias)
    except (DatabaseError, HippoError, OSError) as error:
        if alias in connections.settings:
            connections[alias].close()
        return str(error).rstrip(".")
    return ""
