"""A MySQL database as it was at one moment, as SQL text, and that text read in again.

Our own and not mysqldump's: that is a program which need not be there (nor be the server's own:
Debian's is MariaDB's), and it would choose a moment by itself, seconds after the one that all
databases share. The text is plain SQL, a statement a line, so where all else fails
`mysql DATABASE < default.sql` takes it in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import Error, connections

from memory.services.backups.manifest import BackupError, private_file

_STATEMENT_BYTES = 256 * 1024
_SESSION = (
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES'",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION foreign_key_checks = 0",
    "SET SESSION unique_checks = 0",
)
_END = b"-- the end\n"
_BINARY = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
# another database may be copied for hours before this one's turn; a lock is not worth a minute
_PATIENCE = {"wait_timeout": 28_800, "net_write_timeout": 3_600, "lock_wait_timeout": 30}


class MysqlSource:
    """One REPEATABLE READ transaction, which writers neither wait for nor stop."""

    engine = "mysql"

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._connection = connect(alias)

    def begin(self) -> None:
        """Let this be the moment; what was taken before is given up."""
        with _told(self.alias), closing(self._connection.cursor()) as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query as of the moment; every value as text, or None."""
        with _told(self.alias), closing(self._connection.cursor()) as cursor:
            cursor.execute(sql)
            return [
                tuple(each.decode() if isinstance(each, bytes) else each for each in row)
                for row in cursor.fetchall()
            ]

    def tables(self) -> list[str]:
        """Return the names of our tables; others' may be in the same database."""
        return list(self._sizes())

    def size(self) -> int:
        """Return about how many bytes a dump takes."""
        return sum(self._sizes().values())

    def write(self, path: Path) -> dict[str, int]:
        """Write the dump to a new file; return the number of rows by table."""
        rows = {}
        with private_file(path) as file:
            for statement in _SESSION:
                file.write(statement.encode() + b";\n")
            for table in self.tables():
                [(_, create)] = self.rows(f"SHOW CREATE TABLE `{table}`")
                file.write(create.replace("\n", " ").encode() + b";\n")
                rows[table] = self._write_rows(file, table)
            file.write(_END)
        return rows

    def close(self) -> None:
        """Let go of the moment."""
        if self._connection.open:
            self._connection.close()

    def _sizes(self) -> dict[str, int]:
        labels = {config.label for config in apps.get_app_configs()} | {"django"}
        found = self.rows(
            "SELECT table_name, data_length FROM information_schema.tables "
            "WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY table_name"
        )
        return {table: int(size or 0) for table, size in found if table.partition("_")[0] in labels}

    def _write_rows(self, file: Any, table: str) -> int:
        import MySQLdb.cursors

        columns = self.rows(f"SHOW COLUMNS FROM `{table}`")
        is_binary = [column[1].partition("(")[0] in _BINARY for column in columns]
        names = ", ".join(f"`{column[0]}`" for column in columns)
        head = f"INSERT INTO `{table}` ({names}) VALUES ".encode()  # noqa: S608
        count, batch, size = 0, list[bytes](), 0
        # row by row from the server: no table need fit into memory
        with (
            _told(self.alias),
            closing(self._connection.cursor(MySQLdb.cursors.SSCursor)) as cursor,
        ):
            cursor.execute(f"SELECT {names} FROM `{table}`")  # noqa: S608
            for row in cursor:
                values = map(self._literal, row, is_binary)
                batch.append(b"(" + b",".join(values) + b")")
                count, size = count + 1, size + len(batch[-1])
                if size > _STATEMENT_BYTES:
                    file.write(head + b",".join(batch) + b";\n")
                    batch, size = [], 0
        if batch:
            file.write(head + b",".join(batch) + b";\n")
        return count

    def _literal(self, value: Any, is_binary: bool) -> bytes:
        """Return a value as the server gave it in quotes; a line break in it is escaped."""
        if value is None:
            return b"NULL"
        raw = value.encode() if isinstance(value, str) else value
        if is_binary:
            return b"x'" + raw.hex().encode() + b"'"
        quoted: bytes = self._connection.string_literal(raw)
        return quoted


def connect(alias: str) -> Any:
    """Return a connection of our own to a MySQL alias, which leaves values as they come."""
    import MySQLdb

    with _told(alias):
        parameters = {**connections[alias].get_connection_params(), "conv": {}}
        connection = MySQLdb.connect(**parameters)
        with closing(connection.cursor()) as cursor:
            for statement in _SESSION:
                cursor.execute(statement)
            for name, seconds in _PATIENCE.items():
                cursor.execute(f"SET SESSION {name} = {seconds}")
        connection.autocommit(True)
    return connection


def is_whole(path: Path) -> bool:
    """Return whether a dump was written to its end."""
    with path.open("rb") as file:
        file.seek(-len(_END), 2)
        return file.read() == _END


def load(alias: str, path: Path, rows: dict[str, int]) -> None:
    """Take a dump in, in place of our tables; compare the number of rows by table.

    Killed half-way, a second call begins anew.
    """
    source = MysqlSource(alias)
    with closing(source), _told(alias), path.open("rb") as file:
        cursor = source._connection.cursor()
        for table in source.tables():
            cursor.execute(f"DROP TABLE `{table}`")
        for line in file:
            if line != _END:
                cursor.execute(line.rstrip(b";\n"))
        found = {}
        for table in rows:
            [(count,)] = source.rows(f"SELECT COUNT(*) FROM `{table}`")  # noqa: S608
            found[table] = int(count)
    if found != rows:
        raise BackupError(f"{alias}: the rows taken in are {found}; the backup has {rows}.")


def move_aside(alias: str, name: str) -> None:
    """Move our tables, whole and all at once, to the database `name`, made if need be."""
    source = MysqlSource(alias)
    with closing(source), _told(alias):
        cursor = source._connection.cursor()
        tables = source.tables()
        if not tables:
            return
        try:
            with connections[alias].wrap_database_errors:
                cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{name}`")
        except Error as error:
            raise BackupError(
                f"{alias}: what is there would be moved to the database {name}, which cannot be "
                f"made: {error}. Grant that, or name an empty database in its URL."
            ) from error
        moves = (f"`{table}` TO `{name}`.`{table}`" for table in tables)
        try:
            with connections[alias].wrap_database_errors:
                cursor.execute(f"RENAME TABLE {', '.join(moves)}")
        except Error:
            # the server may have finished what a killed restore had asked for a moment ago
            if source.tables():
                raise


@contextmanager
def _told(alias: str) -> Iterator[None]:
    try:
        with connections[alias].wrap_database_errors:
            yield
    except Error as error:
        raise BackupError(f"{alias}: MySQL says: {error.args[-1]}.") from error
