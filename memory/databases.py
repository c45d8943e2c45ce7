"""Where each agent's memories live: stores, their aliases, and the router.

`default` holds the control plane and the shared scopes. An agent's own memories are in
a SQLite file of DATA_DIR/memory or in MySQL; both hold the tables of `memory` alone.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import ConnectionHandler, DatabaseError
from django.utils.translation import gettext_noop

from agents.models import Agent, Backend, MemoryConfig
from memory.errors import BackendUnavailable, UnscopedQuery

MYSQL_ALIAS = "mysql"
CONTROL_PLANE_MODELS = frozenset(
    {"nodelease", "job", "formerstore", "pulse", "modelendpoint", "goldenquestion", "goldenrun"}
)
"""Models of this app that live in `default` only."""

MYSQL_SILENT = gettext_noop("MySQL does not answer: %s. Check MYSQL_URL and that the server runs.")
_MYSQL_TOO_OLD = gettext_noop(
    "%(name)s %(found)s is too old; %(name)s %(least)s or later is needed."
)
_GONE = (
    "%(path)s was here and is gone. Put it back from a backup, or delete %(lock)s to begin with "
    "an empty one."
)
_MADE = "The store beside this file was made; it should not be missing.\n"
_register_lock = threading.Lock()
_ready: set[str] = set()


@dataclass(frozen=True, slots=True)
class Place:
    """A store as a configuration names it; `sqlite_path` is '' on MySQL."""

    backend: str
    sqlite_path: str

    @classmethod
    def of(cls, row: Any) -> Place:
        """Return the place that a MemoryConfig or a FormerStore names."""
        return cls(row.backend, row.sqlite_path if row.backend == Backend.SQLITE else "")

    def __str__(self) -> str:
        return self.sqlite_path or "MySQL"

    def alias(self) -> str:
        """Return its database alias. Raises BackendUnavailable where MySQL is not configured."""
        return sqlite_alias(self.sqlite_path) if self.sqlite_path else mysql_alias()

    def named(self) -> dict[str, str]:
        """Return the fields of a MemoryConfig that name this place."""
        return {"backend": self.backend} | (
            {"sqlite_path": self.sqlite_path} if self.sqlite_path else {}
        )


def agent_at(agent: Agent, place: Place) -> Agent:
    """Return `agent` as if it were configured for `place`; never to be saved."""
    there = copy.copy(agent)
    there.memory_config = MemoryConfig(backend=place.backend, sqlite_path=place.sqlite_path)
    return there


class MemoryRouter:
    """Sends a memory query to its agent's store, by hint; everything else to `default`."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        """Return the alias for `model`; raises UnscopedQuery without a hint to go by."""
        meta = model._meta
        if meta.app_label != "memory" or meta.model_name in CONTROL_PLANE_MODELS:
            return None
        if agent := hints.get("agent"):
            return store_alias(agent)
        instance = hints.get("instance")
        if instance is not None and instance._state.db:
            return str(instance._state.db)
        raise UnscopedQuery(
            f"A query on {meta.label} names no agent; begin it with .for_agent(agent)."
        )

    db_for_write = db_for_read

    def allow_relation(self, first: Any, second: Any, **hints: Any) -> bool | None:
        """Rows of `memory` relate within one database only."""
        if "memory" in {first._meta.app_label, second._meta.app_label}:
            return first._state.db == second._state.db
        return None

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool:
        """Memory tables belong in every database, all others in `default`."""
        if db == DEFAULT_DB_ALIAS:
            return True
        return app_label == "memory" and model_name not in CONTROL_PLANE_MODELS


def store_alias(agent: Agent) -> str:
    """Return the database alias of `agent`'s memories, opening its store if need be.

    A SQLite file is made and migrated on first use; the cost afterwards is a look-up.
    Raises BackendUnavailable where MySQL is not configured or a path leads outside.
    """
    config = agent.memory_config
    if config.backend == Backend.MYSQL:
        return mysql_alias()
    alias = sqlite_alias(config.sqlite_path)
    if alias not in _ready:
        _open_sqlite(alias, config.sqlite_path)
    return alias


def mysql_alias() -> str:
    """Return the alias of the configured MySQL. Raises BackendUnavailable without one."""
    if MYSQL_ALIAS in settings.DATABASES:
        return MYSQL_ALIAS
    if settings.DATABASES[DEFAULT_DB_ALIAS]["ENGINE"].endswith("mysql"):
        return DEFAULT_DB_ALIAS
    raise BackendUnavailable(settings.MYSQL_OBSTACLE)


def mysql_obstacle(translate: Callable[[str], str] = str) -> str | None:
    """Return why MySQL cannot be offered, in words for the operator; None where it can.

    Connects once. English, unless `translate` says otherwise.
    """
    try:
        connection = connections[mysql_alias()]
        connection.ensure_connection()
    except BackendUnavailable as error:
        return translate(str(error))
    except DatabaseError as error:
        return translate(MYSQL_SILENT) % error
    version, needed = connection.mysql_version, (8, 0, 17)  # type: ignore[attr-defined]
    name = "MySQL"
    if connection.mysql_is_mariadb:  # type: ignore[attr-defined]
        name, needed = "MariaDB", (10, 11, 0)
    if version < needed:
        found, least = (".".join(map(str, each)) for each in (version, needed))
        words = {"name": name, "found": found, "least": least}
        return translate(_MYSQL_TOO_OLD) % words
    return None


def sqlite_alias(name: str) -> str:
    """Return the alias of the SQLite file `name`."""
    return f"sqlite:{name}"


def same_store(first: str, second: str) -> bool:
    """Return whether two aliases of open stores are one database; a file may have two names."""
    if first.startswith("sqlite:") and second.startswith("sqlite:"):
        names = (connections[alias].settings_dict["NAME"] for alias in (first, second))
        return Path(next(names)).samefile(next(names))
    return first == second


def known_aliases() -> list[str]:
    """Return `default`, MySQL where configured, and every SQLite file an agent uses or used.

    The files are not looked at: `migrate_store` opens them, or says why it cannot.
    """
    aliases = [DEFAULT_DB_ALIAS]
    if MYSQL_ALIAS in settings.DATABASES:
        aliases.append(MYSQL_ALIAS)
    # by name: the models are made of this module
    former_stores = apps.get_model("memory", "FormerStore")
    names = {
        name
        for model in (MemoryConfig, former_stores)
        for name in model._default_manager.filter(backend=Backend.SQLITE).values_list(
            "sqlite_path", flat=True
        )
    }
    return [*aliases, *map(sqlite_alias, sorted(names))]


def migrate_store(alias: str) -> None:
    """Bring the tables of `alias` up to date; safe in many processes of a machine at once."""
    if alias.startswith("sqlite:"):
        _open_sqlite(alias, alias.removeprefix("sqlite:"))
    else:
        with _locked(Path(settings.DATA_DIR) / f"{alias}.lock"):
            _migrate(alias)


def open_store(alias: str) -> None:
    """Make a store ready for queries, as `store_alias` does; a look-up where it is."""
    if alias.startswith("sqlite:") and alias not in _ready:
        _open_sqlite(alias, alias.removeprefix("sqlite:"))


def aliases_in_use() -> list[str]:
    """Return the stores in which agents keep their memories now, those that are configured."""
    rows = MemoryConfig.objects.values_list("backend", "sqlite_path").distinct()
    aliases = {sqlite_alias(path) for backend, path in rows if backend == Backend.SQLITE}
    if any(backend == Backend.MYSQL for backend, _ in rows):
        with contextlib.suppress(BackendUnavailable):
            aliases.add(mysql_alias())
    return sorted(aliases)


def sqlite_file(alias: str) -> Path:
    """Return the file of a SQLite store, made or not. Raises BackendUnavailable outside its folder.

    The same where a store was made and its file is gone.
    """
    name = alias.removeprefix("sqlite:")
    path = _confined(name)
    lock = path.with_name(f"{name}.lock")
    if not path.exists() and lock.exists() and lock.read_text():
        raise BackendUnavailable(_GONE % {"path": path, "lock": lock.name})
    return path


@contextmanager
def migrations_waiting(alias: str) -> Iterator[None]:
    """Wait for a migration of the store that is under way, and keep further ones waiting."""
    if alias.startswith("sqlite:"):
        path = sqlite_file(alias)
        lock = path.with_name(f"{path.name}.lock")
    else:
        lock = Path(settings.DATA_DIR) / f"{alias}.lock"
    with _locked(lock):
        yield


def forget_store(alias: str) -> None:
    """Close a SQLite store whose file is about to be removed; its next use opens it anew."""
    connections[alias].close()
    _ready.discard(alias)


def _open_sqlite(alias: str, name: str) -> None:
    path = _confined(name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _register(alias, path)
    # the first connection turns WAL on, which SQLite refuses to do under contention:
    # so that, too, happens behind the lock
    with _locked(path.with_name(f"{name}.lock")) as lock:
        if lock.read() and not path.exists():
            raise BackendUnavailable(_GONE % {"path": path, "lock": lock.name})
        _migrate(alias)
        lock.seek(0)
        lock.write(_MADE)
    _ready.add(alias)


@contextmanager
def _locked(path: Path) -> Iterator[TextIO]:
    """Keep other processes of this machine waiting; yield the file that they wait for."""
    path.touch(mode=0o600)
    with path.open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def _migrate(alias: str) -> None:
    executor = MigrationExecutor(connections[alias])
    label = None if alias == DEFAULT_DB_ALIAS else "memory"
    targets = [
        node for node in executor.loader.graph.leaf_nodes() if label is None or node[0] == label
    ]
    if executor.migration_plan(targets):
        arguments = [label] if label else []
        call_command("migrate", *arguments, database=alias, verbosity=0, interactive=False)


def _confined(name: str) -> Path:
    """Return the path of the store `name`; raises BackendUnavailable outside its folder."""
    folder = Path(settings.MEMORY_DIR)
    path = folder / name
    # a link in the folder could name the control database
    leads_outside = path.resolve().parent != folder.resolve()
    if leads_outside or path.suffix != ".db" or path.is_dir():
        raise BackendUnavailable(
            f"{name} is not a *.db file of {folder}; choose a plain file name."
        )
    return path


def _register(alias: str, path: Path) -> None:
    """Make `alias` known to Django.

    Django fills in a database's defaults once, at its first look, so a late alias takes
    them from a handler of its own; and the mapping is replaced, not changed, since other
    threads may be walking it.
    """
    if alias in connections.settings:
        return
    database = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": settings.SQLITE_OPTIONS,
        "CONN_MAX_AGE": None,
    }
    filled = ConnectionHandler({DEFAULT_DB_ALIAS: {}, alias: database}).settings[alias]
    with _register_lock:
        connections.settings = {**connections.settings, alias: filled}
