"""Restoring a backup into a DATA_DIR, and into MySQL where it comes from there.

Nothing is touched before every file of the backup has been compared with its manifest. Then a
note in DATA_DIR says that a restore is at work; while it is there `./run` does not start, and the
next restore goes on: it finishes moving aside what was there before, or throws away what the
killed one had put in, and puts it in anew.

Ids of memories that the old system made after the backup are not made again: they hold the time.
Node numbers are, once the leases in the backup have lapsed; so where both systems live on, two
memories may in principle bear one id. In one store they cannot meet but by an import, which gives
a new id where one is taken.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.loader import MigrationLoader

from memory.databases import MYSQL_ALIAS, forget_store
from memory.services.backups import manifest, mysql_dump
from memory.services.backups.manifest import DATA, BackupError, Database, Manifest, Part
from memory.services.backups.moment import control_file, is_mysql, is_one_database, source_of

NOTE = "restore-unfinished.json"
_STAYS = {"logs", "queue", "backups", "run.lock", NOTE}
"""What of a DATA_DIR is no part of a restore; the queue's messages name jobs, at most in vain."""
_TELLING = ("agents_agent", "auth_user", "memory_scope")
"""Tables without rows in a database that was only just made."""
_WAL = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class _Stage:
    """How far a restore is; `aside` names where what was there goes, '' where nothing was."""

    is_filling: bool
    aside: str


def restore(
    folder: Path,
    *,
    replace: bool,
    now: datetime,
    on_part: Callable[[Part], object] = lambda _: None,
) -> tuple[Manifest, str]:
    """Restore the backup in `folder`; return its manifest and where what was there is now.

    That is the name of a folder in DATA_DIR and of databases beside it, '' where nothing was.
    Databases are as they were, for `migrate_stores` to bring up to date. Killed at any moment,
    a second call starts over. Raises BackupError and OSError.
    """
    folder = folder.resolve()
    found = manifest.read(folder)
    _require_known(found)
    _require_fitting(found)
    manifest.verify(folder, found)
    with _alone():
        connections.close_all()
        stage = _noted() or _first_stage(found, replace, now)
        _note(stage)
        if not stage.is_filling:
            _move_aside(found, folder, stage.aside)
            stage = _Stage(True, stage.aside)
            _note(stage)
        _fill(found, folder, on_part)
        # `./run` would add the demo's accounts, with passwords that it prints
        (Path(settings.DATA_DIR) / "demo-loaded").touch(mode=0o600)
        _note_path().unlink()
        manifest.sync_folder(Path(settings.DATA_DIR))
    return found, stage.aside


def aside_database(alias: str, aside: str) -> str:
    """Return the name of the MySQL database that what was in `alias` is moved to."""
    name = connections[alias].settings_dict["NAME"]
    return f"{name[:30]}_{aside.replace('-', '_')}"


def require_none_unfinished() -> None:
    """Raise BackupError where a restore was interrupted: what is there is half of something."""
    if _note_path().exists():
        raise BackupError(
            f"A restore into {settings.DATA_DIR} was interrupted: ./run restore FOLDER once more."
        )


@contextmanager
def _alone() -> Iterator[None]:
    """Keep the product, and other restores, from starting on this DATA_DIR."""
    path = Path(settings.DATA_DIR) / "run.lock"
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BackupError(
                f"Hippo runs on {settings.DATA_DIR}; stop it first, or restore into another folder "
                "with DATA_DIR=…"
            ) from error
        yield


# --- whether it can be -----------------------------------------------------------------


def _require_known(found: Manifest) -> None:
    """Raise BackupError for a backup of a newer Hippo."""
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations or {}}
    for database in found.databases:
        if newer := sorted(set(database.migrations) - known):
            raise BackupError(
                f"The backup is of a newer Hippo ({found.version}; this is "
                f"{manifest.version()}): it has {', '.join(newer[:3])}. Install that one, or a "
                "later one, and restore with it."
            )


def _require_fitting(found: Manifest) -> None:
    """Raise BackupError where the settings name other databases than the backup is of."""
    databases = {database.alias: database for database in found.databases}
    engine = "mysql" if is_mysql(DEFAULT_DB_ALIAS) else "sqlite"
    if databases[DEFAULT_DB_ALIAS].engine != engine:
        need = "an empty MySQL database" if engine == "sqlite" else "nothing, or a SQLite file"
        raise BackupError(
            f"The backup's control database is {databases[DEFAULT_DB_ALIAS].engine}'s; let "
            f"DATABASE_URL name {need}."
        )
    has_mysql = MYSQL_ALIAS in settings.DATABASES and not is_one_database()
    if MYSQL_ALIAS in databases and not has_mysql:
        raise BackupError(
            "The backup holds MySQL's memories; let MYSQL_URL name an empty database."
        )
    if engine == "mysql" and has_mysql and MYSQL_ALIAS not in databases:
        raise BackupError(
            "In the backup all that is MySQL's is in the control database; unset MYSQL_URL."
        )


def _first_stage(found: Manifest, replace: bool, now: datetime) -> _Stage:
    """Return where to begin. Raises BackupError where something is there and may not go."""
    there = list(_there(found))
    if not there:
        return _Stage(True, "")
    if not replace:
        raise BackupError(
            f"There is something already: {', '.join(there)}. Restore into an empty DATA_DIR "
            "(and an empty MySQL database), or with --replace: what is there is then moved "
            "aside, not destroyed."
        )
    _require_quiet(now)
    return _Stage(False, f"before-restore-{now:%Y%m%dT%H%M%SZ}")


def _there(found: Manifest) -> Iterator[str]:
    """Yield what holds something that a restore would be in place of."""
    for database in found.databases:
        if database.engine == "mysql" and not _is_empty(database.alias):
            yield f"MySQL's tables ({database.alias})"
    has_file = not is_mysql(DEFAULT_DB_ALIAS) and control_file().exists()
    if has_file and not _is_empty(DEFAULT_DB_ALIAS):
        yield str(control_file())
    yield from map(str, sorted(Path(settings.MEMORY_DIR).glob("*.db")))


def _is_empty(alias: str) -> bool:
    """Return whether a database is one that was only just made; a damaged one is not."""
    try:
        with closing(source_of(alias)) as source:
            source.begin()
            tables = set(source.tables()) & set(_TELLING)
            return not any(
                source.rows(f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608
                for table in tables
            )
    except BackupError:
        if is_mysql(alias):
            raise
        return False


def _require_quiet(now: datetime) -> None:
    """Raise BackupError where a process made memories just now, on whatever machine it runs."""
    until = _leased_until()
    if until > f"{now:%Y-%m-%d %H:%M:%S}":
        raise BackupError(
            f"A process may be using these databases until {until[:19]} UTC; stop Hippo "
            "everywhere. If it was killed, wait two minutes."
        )


def _leased_until() -> str:
    """Return until when a node number is lent; '' for never, or where that cannot be read."""
    with suppress(BackupError), closing(source_of(DEFAULT_DB_ALIAS)) as control:
        control.begin()
        [(until,)] = control.rows("SELECT max(expires_at) FROM memory_nodelease")
        return str(until or "")
    return ""


# --- doing it --------------------------------------------------------------------------


def _move_aside(found: Manifest, folder: Path, aside: str) -> None:
    """Move what is there; what a killed call has moved stays where it is."""
    data_dir = Path(settings.DATA_DIR)
    target = data_dir / aside
    target.mkdir(mode=0o700, exist_ok=True)
    for database in found.databases:
        if database.engine == "mysql":
            mysql_dump.move_aside(database.alias, aside_database(database.alias, aside))
    for path in sorted(data_dir.iterdir()):
        stays = path.name in _STAYS or path.name.startswith("before-restore-")
        if not stays and not folder.is_relative_to(path.resolve()):
            path.rename(_free(target, path.name))
    if not is_mysql(DEFAULT_DB_ALIAS):
        control = control_file()  # which may lie elsewhere
        for end in _WAL:
            with suppress(FileNotFoundError):
                control.with_name(control.name + end).rename(
                    control.with_name(f"{control.name}.{aside}{end}")
                )


def _free(folder: Path, name: str) -> Path:
    """Return a path that nothing is at: a later process has made some names anew."""
    path, number = folder / name, 2
    while path.exists():
        path, number = folder / f"{name}.{number}", number + 1
    return path


def _fill(found: Manifest, folder: Path, on_part: Callable[[Part], object]) -> None:
    """Put everything in, the control database last; what a killed call has put in goes first."""
    _clear()
    for part in found.files:
        _copy(folder / part.path, _place_of(part), part)
        on_part(part)
    for database in sorted(found.databases, key=lambda each: each.alias == DEFAULT_DB_ALIAS):
        path = folder / database.part.path
        if database.engine == "mysql":
            _load(database, path)
        else:
            _copy(path, _file_of(database), database.part)
        on_part(database.part)
    for name, target in found.links.items():
        path = Path(settings.MEMORY_DIR) / name
        path.symlink_to(target)


def _load(database: Database, path: Path) -> None:
    if not mysql_dump.is_whole(path):
        raise BackupError(f"{path} ends too early; choose another backup.")
    mysql_dump.load(database.alias, path, database.rows)


def _clear() -> None:
    """Remove what an interrupted restore has put in, and databases that were only just made."""
    for path in Path(settings.MEMORY_DIR).glob("*.db*"):
        path.unlink()
        forget = f"sqlite:{path.name}"
        if forget in connections.settings:
            forget_store(forget)
    if not is_mysql(DEFAULT_DB_ALIAS):
        for end in _WAL:
            control_file().with_name(control_file().name + end).unlink(missing_ok=True)


def _file_of(database: Database) -> Path:
    if database.alias == DEFAULT_DB_ALIAS:
        return control_file()
    return Path(settings.MEMORY_DIR) / Path(database.part.path).name


def _place_of(part: Part) -> Path:
    return Path(settings.DATA_DIR) / Path(part.path).relative_to(DATA)


def _copy(source: Path, target: Path, part: Part) -> None:
    """Copy a file to its place, where it appears whole and synced."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}{manifest.UNFINISHED}")
    draft.unlink(missing_ok=True)
    with source.open("rb") as file, manifest.private_file(draft) as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        os.fsync(copy.fileno())
    draft.chmod(part.mode)
    draft.replace(target)
    manifest.sync_folder(target.parent)


# --- the note --------------------------------------------------------------------------


def _note_path() -> Path:
    return Path(settings.DATA_DIR) / NOTE


def _noted() -> _Stage | None:
    try:
        told: dict[str, Any] = json.loads(_note_path().read_text())
    except FileNotFoundError:
        return None
    return _Stage(**told)


def _note(stage: _Stage) -> None:
    draft = _note_path().with_name(f"{NOTE}{manifest.UNFINISHED}")
    draft.unlink(missing_ok=True)
    with manifest.private_file(draft) as file:
        file.write(json.dumps(asdict(stage)).encode())
        file.flush()
        os.fsync(file.fileno())
    draft.replace(_note_path())
    manifest.sync_folder(draft.parent)
