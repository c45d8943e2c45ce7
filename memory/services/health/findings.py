"""How a part of Hippo is, and in words what is wrong and how to mend it.

The words are translated when they are shown: what finds them out may do so for several readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

Words = str | Promise


class State(IntEnum):
    """How well something is; the greater the worse."""

    OK = 0
    REDUCED = 1
    DOWN = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """A state; where it is not well, what is wrong and how to mend it."""

    state: State = State.OK
    reason: Words = ""
    mend: Words = ""


WELL = Finding()


def worst(findings: Iterable[Finding]) -> State:
    """Return the worst state of some findings."""
    return max((finding.state for finding in findings), default=State.OK)


def silent(seconds: float, mend: Words) -> Finding:
    """Return the finding of a part that has not answered in time."""
    reason = format_lazy(_("It gives no answer within {seconds} s."), seconds=f"{seconds:g}")
    return Finding(State.DOWN, reason, mend)


def of_mysql(error: Exception, host: str, port: str, name: str) -> Finding:
    """Return what an error of MySQL means; `error` holds no password."""
    code = error.args[0] if error.args else 0
    mend = next((words for codes, words in _MYSQL_MENDS if code in codes), _UNREACHABLE)
    said = error.args[1] if len(error.args) > 1 else error
    reason = format_lazy(_("MySQL says: {error}."), error=str(said).rstrip("."))
    return Finding(State.DOWN, reason, format_lazy(mend, host=host, port=port, name=name))


def mysql_is_unreachable(host: str, port: str) -> Words:
    """Return what to do about a MySQL that does not answer."""
    return format_lazy(_UNREACHABLE, host=host, port=port)


def of_sqlite(error: Exception, path: str) -> Finding:
    """Return what an error of SQLite, or of the disk under it, means."""
    mend = next((words for part, words in _SQLITE_MENDS if part in str(error)), _SQLITE_ELSE)
    reason = format_lazy(_("SQLite says: {error}."), error=str(error).rstrip("."))
    return Finding(State.DOWN, reason, format_lazy(mend, path=path))


_UNREACHABLE = _(
    "Look whether the server runs (on its machine: systemctl status mysql) and whether it can be "
    "reached from here: mysqladmin -h {host} -P {port} ping. Nothing is lost; what needs it "
    "answers 503 until it is back."
)
_MYSQL_MENDS = [
    (
        {1044, 1045, 1698},
        _(
            "User or password in MYSQL_URL (for the control database: DATABASE_URL) are not "
            "right, or the user may not use {name}: GRANT ALL ON {name}.* TO that user, then "
            "start Hippo again."
        ),
    ),
    (
        {1049},
        _(
            "Make the database, CREATE DATABASE {name} CHARACTER SET utf8mb4, or mend its name in "
            "MYSQL_URL; then ./run migrate_stores."
        ),
    ),
    (
        {1040, 1203, 1226},
        _(
            "MySQL has no connection left: SHOW PROCESSLIST says who holds them; raise "
            "max_connections, or end what does not belong there."
        ),
    ),
    (
        {1054, 1146},
        _("Tables are missing or of an older version: ./run migrate_stores."),
    ),
    (
        {1021, 1114, 3675},
        _("The disk of the MySQL server is full: make room there, nothing else is needed."),
    ),
]
_SQLITE_ELSE = _(
    "Look at the file {path} and at the log; if the file is damaged, stop Hippo and put it back "
    "from a backup."
)
_SQLITE_MENDS = [
    (
        "unable to open",
        _(
            "The account that runs Hippo cannot open {path}: ls -l shows whose it is; chown it and "
            "its folder to that account, chmod 600 the file."
        ),
    ),
    (
        "Permission denied",
        _("The account that runs Hippo may not use {path} or its folder: chown them to it."),
    ),
    (
        "readonly",
        _("{path} or its folder cannot be written: chown and chmod it, or mount the disk rw."),
    ),
    (
        "malformed",
        _(
            "The file {path} is damaged. Stop Hippo, keep a copy of the file, put back the latest "
            "backup, and start Hippo again."
        ),
    ),
    (
        "not a database",
        _(
            "Something else was written over {path}. Stop Hippo, keep a copy of the file, put back "
            "the latest backup, and start Hippo again."
        ),
    ),
    (
        "locked",
        _("Another process holds {path}: fuser -v says which; ./run jobs says what runs."),
    ),
    ("full", _("The disk is full: make room, nothing else is needed.")),
    ("no such", _("Tables are missing or of an older version: ./run migrate_stores.")),
    (
        "disk I/O",
        _("The disk under {path} fails: dmesg says how. Save a copy of DATA_DIR while it reads."),
    ),
]
