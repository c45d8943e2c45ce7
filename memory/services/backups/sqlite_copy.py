"""A SQLite file as it was at one moment, copied while others write to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from memory.services.backups.manifest import BackupError, private_file

_BUSY_SECONDS = 30
_PAGES = 4_096
_OWN_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
    "AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT LIKE 'memory_terms_fts%' ORDER BY name"
)


class SqliteSource:
    """One read transaction: in WAL it keeps its pages, and neither stops writers nor is stopped.

    So the copy is of one moment however long it takes, and takes as long as the file is large:
    a backup that reads page by page without one begins again at every write, for ever.
    """

    engine = "sqlite"

    def __init__(self, alias: str, path: Path) -> None:
        self.alias, self.path = alias, path
        with _told(path):
            # mode=rw: a file that is missing must not be made
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                timeout=_BUSY_SECONDS,
                check_same_thread=False,
            )

    def begin(self) -> None:
        """Let this be the moment; what was taken before is given up."""
        with _told(self.path):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._connection.execute("BEGIN")
            # only the first read takes the snapshot
            self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query as of the moment."""
        with _told(self.path):
            return self._connection.execute(sql).fetchall()

    def tables(self) -> list[str]:
        """Return the names of tables with rows of their own, as of the moment."""
        return [name for (name,) in self.rows(_OWN_TABLES)]

    def size(self) -> int:
        """Return about how many bytes a copy takes."""
        return self.path.stat().st_size

    def write(self, path: Path) -> dict[str, int]:
        """Write the copy to a new file; return the number of rows by table."""
        private_file(path).close()
        with _told(path), closing(sqlite3.connect(path)) as copy:
            # a copy that is not finished is thrown away; the whole is synced at its end
            copy.execute("PRAGMA synchronous = OFF")
            copy.execute("PRAGMA journal_mode = OFF")
            # in steps, so that Ctrl-C is heard
            self._connection.backup(copy, pages=_PAGES)
        return {table: self._count(table) for table in self.tables()}

    def close(self) -> None:
        """Let go of the moment."""
        self._connection.close()

    def _count(self, table: str) -> int:
        [(count,)] = self.rows(f'SELECT count(*) FROM "{table}"')  # noqa: S608
        return int(count)


def check(path: Path) -> None:
    """Raise BackupError where SQLite finds a copy damaged. Reads all of it."""
    # not read-only: some versions then cannot check a full-text index
    with _told(path), closing(sqlite3.connect(path)) as copy:
        [(found,), *_] = copy.execute("PRAGMA integrity_check(1)").fetchall()
    if found != "ok":
        raise BackupError(f"The copy {path.name} is damaged, as the file is that it is of: {found}")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise BackupError(f"{path}: {error}.") from error
