"""Whether a store can be used, tried with a row that is written, read and taken back."""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connections, transaction
from django.utils.translation import gettext

from agents.models import Backend
from memory.databases import MYSQL_SILENT, Place, migrate_store, mysql_alias, mysql_obstacle
from memory.errors import HippoError
from memory.models import Scope

SQLITE_FILE = "memory.db"
"""Where agents keep their memories unless another file is named."""


@dataclass(frozen=True, slots=True)
class Trial:
    """How a store did; `obstacle` is '' where it works, else why not, translated.

    `where` is a path, or host and database; `size_bytes` is that of a SQLite file, None where
    the file will only be made, and of MySQL.
    """

    backend: Backend
    obstacle: str
    where: str
    milliseconds: int = 0
    version: str = ""
    size_bytes: int | None = None


def try_place(place: Place, *, make: bool = False) -> Trial:
    """Try a store; a file that is not there yet is made only with `make`.

    Waits seconds for a server that is silent.
    """
    if place.backend == Backend.MYSQL:
        return _try_mysql()
    return _try_file(place.sqlite_path, make=make)


def find_missing(backend: str) -> str:
    """Return what a backend lacks before it could even be tried, translated; '' where it may."""
    try:
        if backend == Backend.MYSQL:
            mysql_alias()
    except HippoError as error:
        return gettext(str(error))
    return ""


def try_store(alias: str) -> str:
    """Make the tables of a store, write a row and read it back; return what was in the way."""
    try:
        migrate_store(alias)
        _write(alias)
    except (DatabaseError, HippoError, OSError) as error:
        if alias in connections.settings:
            connections[alias].close()
        return str(error).rstrip(".")
    return ""


def _try_mysql() -> Trial:
    if obstacle := mysql_obstacle(gettext):
        return Trial(Backend.MYSQL, obstacle, "MySQL")
    alias = mysql_alias()
    fault = try_store(alias)
    obstacle = gettext(MYSQL_SILENT) % fault if fault else ""
    server = connections[alias].settings_dict
    host, port = server["HOST"] or "localhost", server["PORT"] or 3306
    where = f"{host}:{port}/{server['NAME']}"
    if obstacle:
        return Trial(Backend.MYSQL, obstacle, where)
    connection = connections[alias]
    name = "MariaDB" if connection.mysql_is_mariadb else "MySQL"  # type: ignore[attr-defined]
    version = ".".join(map(str, connection.mysql_version))  # type: ignore[attr-defined]
    return Trial(Backend.MYSQL, "", where, _time(alias), f"{name} {version}")


def _try_file(name: str, *, make: bool) -> Trial:
    path = Path(settings.MEMORY_DIR) / name
    where, version = str(path), f"SQLite {sqlite3.sqlite_version}"
    if not (make or path.exists() or path.with_name(f"{name}.lock").exists()):
        folder = next(each for each in path.parents if each.exists())
        is_open = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
        obstacle = "" if is_open else _unusable(gettext("%s cannot be written") % folder)
        return Trial(Backend.SQLITE, obstacle, where, version=version)
    alias = Place(Backend.SQLITE, name).alias()
    if fault := try_store(alias):
        return Trial(Backend.SQLITE, _unusable(fault), where, version=version)
    size = path.stat().st_size
    return Trial(Backend.SQLITE, "", where, _time(alias), version, size)


def _unusable(fault: str) -> str:
    return gettext("The memory folder cannot be used: %s.") % fault


def _time(alias: str) -> int:
    started = time.perf_counter()
    _write(alias)
    return max(round((time.perf_counter() - started) * 1000), 1)


def _write(alias: str) -> None:
    with transaction.atomic(using=alias):
        row = Scope.objects.using(alias).create(user_id="trial")
        Scope.objects.using(alias).get(pk=row.pk)
        transaction.set_rollback(True, using=alias)
