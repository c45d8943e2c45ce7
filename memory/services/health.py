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


def _control_database() -> str:
    try:
        Agent.objects.exists()
    except DatabaseError:
        return "The control database does not answer or has no tables; see the server's log."
    return OK


def _store(alias: str) -> str:
    try:
        if alias != MYSQL_ALIAS:
            migrate_store(alias)
        Scope.objects.using(alias).exists()
    except (DatabaseError, HippoError):
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
    token = secrets.token_hex(8)
    try:
        cache.set("health", token, timeout=10)
        cache.get("health")
    except Exception:  # noqa: BLE001  # each cache has errors of its own
        return "The cache does not answer; rate limits are not counted."
    return OK
