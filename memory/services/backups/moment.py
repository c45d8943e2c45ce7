"""All databases as they were at one moment, although they know nothing of each other.

What belongs together across databases: the control database says which agents there are and
which store each uses, and a job's row how far work in the stores is. Were each copied when its
turn comes, an agent that moves meanwhile could be missing: its configuration naming the new
store, whose copy is from before the move. So:

1. Snapshots are opened on all databases within milliseconds, and copied afterwards at leisure.
   Writers go on: on both engines a snapshot neither stops them nor is stopped by them.
2. The control database comes first. A store may then be ahead of the jobs' rows, never behind
   them: a job that is run again repeats its last chunk, which it is made for. The other way
   round it would skip one.
3. Then the control database is read once more. Where agents, their stores or the jobs at work
   have changed since, all snapshots are given up and opened anew.

What results could have been left by a power cut at that moment, and Hippo is made to go on from
that: a move at work is resumed from its job's row, with the old store whole and in use before the
switch, the new one after it. Nothing is locked but migrations, for those milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.utils import timezone

from memory.databases import MYSQL_ALIAS, Place, migrations_waiting, sqlite_file
from memory.services.backups.manifest import BackupError
from memory.services.backups.mysql_dump import MysqlSource
from memory.services.backups.sqlite_copy import SqliteSource

_TRIES = 50
_PAUSE_SECONDS = 0.1
_PLACEMENT = (
    "SELECT id FROM agents_agent ORDER BY id",
    "SELECT agent_id, backend, sqlite_path FROM agents_memoryconfig ORDER BY agent_id",
    "SELECT id, agent_id, backend, sqlite_path FROM memory_formerstore ORDER BY id",
    "SELECT id FROM memory_job WHERE active_key IS NOT NULL ORDER BY id",
    "SELECT max(id) FROM memory_job",
)
"""Columns by name: a backup is also taken before a new version's migrations."""


class Source(Protocol):
    """A database that is held at a moment and written to a file from there."""

    alias: str
    engine: str

    def begin(self) -> None:
        """Let this be the moment; what was taken before is given up."""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query as of the moment."""

    def tables(self) -> list[str]:
        """Return the names of the tables that are ours."""

    def size(self) -> int:
        """Return about how many bytes it takes."""

    def write(self, path: Path) -> dict[str, int]:
        """Write it to a new file; return the number of rows by table."""

    def close(self) -> None:
        """Let go of the moment."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Sources held at one moment, the control database first.

    `links` maps the names of SQLite files to the one that is copied in their stead.
    """

    taken_at: datetime
    sources: list[Source]
    links: dict[str, str]


def source_of(alias: str) -> Source:
    """Return a database that is made. Raises BackupError where it does not answer."""
    if alias.startswith("sqlite:"):
        return SqliteSource(alias, sqlite_file(alias))
    if is_mysql(alias):
        return MysqlSource(alias)
    return SqliteSource(alias, control_file())


def is_mysql(alias: str) -> bool:
    """Return whether an alias of the settings is MySQL's."""
    return connections[alias].vendor == "mysql"


def control_file() -> Path:
    """Return the file of a control database that is SQLite's."""
    return Path(connections[DEFAULT_DB_ALIAS].settings_dict["NAME"])


def is_one_database() -> bool:
    """Return whether MYSQL_URL names the control database once more."""
    if MYSQL_ALIAS not in settings.DATABASES:
        return False
    named = (connections[alias].settings_dict for alias in (DEFAULT_DB_ALIAS, MYSQL_ALIAS))
    first, second = ([each[key] for key in ("ENGINE", "HOST", "PORT", "NAME")] for each in named)
    return first == second


@contextmanager
def one_moment() -> Iterator[Moment]:
    """Hold all databases that are in use at one moment; see above.

    Raises BackupError where that cannot be, BackendUnavailable where a store is gone.
    """
    with ExitStack() as held:
        control = held.enter_context(closing(source_of(DEFAULT_DB_ALIAS)))
        witness = held.enter_context(closing(source_of(DEFAULT_DB_ALIAS)))
        for _ in range(_TRIES):
            with ExitStack() as tried:
                if moment := _try(control, witness, tried):
                    held.push(tried.pop_all())
                    break
            time.sleep(_PAUSE_SECONDS)
        else:
            raise BackupError("Agents or jobs change all the time; take the backup when they rest.")
        witness.close()
        yield moment


def _try(control: Source, witness: Source, tried: ExitStack) -> Moment | None:
    """Open all snapshots; return None where the control database changed meanwhile."""
    control.begin()
    placement = _placement(control)
    aliases, links = _stores(placement)
    with ExitStack() as waiting:
        for alias in [DEFAULT_DB_ALIAS, *aliases]:
            waiting.enter_context(migrations_waiting(alias))
        stores = [tried.enter_context(closing(source_of(alias))) for alias in aliases]
        taken_at = timezone.now()
        control.begin()
        if _placement(control) != placement:
            return None
        for store in stores:
            store.begin()
        witness.begin()
        if _placement(witness) != placement:
            return None
    return Moment(taken_at, [control, *stores], links)


def _placement(control: Source) -> list[list[tuple[Any, ...]]]:
    return [control.rows(sql) for sql in _PLACEMENT]


def _stores(placement: list[list[tuple[Any, ...]]]) -> tuple[list[str], dict[str, str]]:
    """Return the aliases of the stores that agents use or used, and other names of their files.

    A file that no agent has saved to is not made yet, and not missing.
    """
    _, configured, former, *_ = placement
    places = {Place(*row[-2:]) for row in [*configured, *former]}
    aliases = {Place.of(place).alias() for place in places} - {DEFAULT_DB_ALIAS}
    files = {alias: sqlite_file(alias) for alias in aliases if alias.startswith("sqlite:")}
    chosen = [MYSQL_ALIAS] if MYSQL_ALIAS in aliases and not is_one_database() else []
    links: dict[str, str] = {}
    seen: dict[tuple[int, int], str] = {}
    for alias, path in sorted(files.items(), key=lambda each: (each[1].is_symlink(), each[0])):
        if not path.exists():
            continue
        status = path.stat()
        name = seen.setdefault((status.st_dev, status.st_ino), path.name)
        if name == path.name:
            chosen.append(alias)
        else:
            links[path.name] = name
    return chosen, links
