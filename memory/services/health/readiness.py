"""Whether Hippo works, part by part; for load balancers and for people."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.core.cache import cache
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections

from agents.models import Agent, Backend, MemoryConfig
from memory.databases import MYSQL_ALIAS, known_aliases, migrate_store, mysql_alias
from memory.errors import BackendUnavailable, HippoError
from memory.models import Scope

OK = "ok"


@dataclass(frozen=True, slots=True)
class Health:
    """`parts` maps each part to `ok` or to what is wrong with it, without secrets."""

    status: str
    parts: dict[str, str]


def check_health() -> Health:
    """Ask every part. `down` without the control database, `reduced` without another part."""
    parts = {DEFAULT_DB_ALIAS: _control_database()}
    if parts[DEFAULT_DB_ALIAS] != OK:
        return Health("down", parts)
    for alias in known_aliases():
        if alias != DEFAULT_DB_ALIAS:
            parts[alias] = _store(alias)
    if obstacle := _mysql_that_is_missing():
        parts[MYSQL_ALIAS] = obstacle
    parts["cache"] = _cache()
    return Health(OK if set(parts.values()) == {OK} else "reduced", parts)


def ask_control() -> None:
    """Ask the control database for next to nothing. Raises DatabaseError."""
    Agent.objects.exists()


def ask_store(alias: str) -> None:
    """Ask a store for next to nothing; a SQLite file is opened, and brought up to date, first.

    Raises DatabaseError, BackendUnavailable where the file is gone, OSError.
    """
    if alias.startswith("sqlite:"):
        migrate_store(alias)
    Scope.objects.using(alias).exists()


def ask_cache() -> None:
    """Write to the cache and read it back. Raises whatever the cache raises, or OSError."""
    token = secrets.token_hex(8)
    cache.set(f"health:{token}", token, timeout=10)
    if cache.get(f"health:{token}") != token:
        raise OSError("what was written is not there")
    cache.delete(f"health:{token}")


def _control_database() -> str:
    try:
        ask_control()
    except DatabaseError:
        return "The control database does not answer or has no tables; see the server's log."
    return OK


def _store(alias: str) -> str:
    try:
        ask_store(alias)
    except (DatabaseError, HippoError, OSError):
        connections[alias].close()
        return "This store does not answer; see the server's log."
    return OK


def _mysql_that_is_missing() -> str:
    """Return what is wrong where agents are set to MySQL and there is none; else ''."""
    try:
        mysql_alias()
    except BackendUnavailable:
        if MemoryConfig.objects.filter(backend=Backend.MYSQL).exists():
            return "Agents keep their memories in MySQL, which is not configured; set MYSQL_URL."
    return ""


def _cache() -> str:
    try:
        ask_cache()
    except Exception:  # noqa: BLE001  # each cache has errors of its own
        return "The cache does not answer; rate limits are not counted."
    return OK
