"""Taking a backup beside the running product.

It is written under a name that no backup has, and gets its own when all of it is on the disk:
however it ends, what looks like a backup is one.
"""

from __future__ import annotations

import fcntl
import fnmatch
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from django.conf import settings

from memory.services.backups import manifest, sqlite_copy
from memory.services.backups.manifest import (
    CONTROL_FILE,
    DATA,
    UNFINISHED,
    BackupError,
    Database,
    Manifest,
    Part,
)
from memory.services.backups.moment import Moment, Source, control_file, one_moment

LEFT_OUT = (
    # stores are copied as databases; the rest is made anew, or belongs to processes at work
    "memory", "logs", "queue", "cache", "backups", "*.lock", "beat-schedule*", ".nfs*",
    "*.sqlite3", "*.sqlite3-*", f"*{UNFINISHED}", "before-restore-*", "restore-unfinished.json",
)  # fmt: skip
"""What of a DATA_DIR is no file of a backup, by name."""


def take(
    folder: Path,
    *,
    keep: int | None,
    is_checked: bool,
    now: datetime,
    on_part: Callable[[Part], object] = lambda _: None,
) -> tuple[Path, Manifest]:
    """Take a backup into a new folder of `folder`; return its path and its manifest.

    Of this installation's backups there, the `keep` newest then stay. `is_checked`: SQLite
    reads through its copies. Raises BackupError, BackendUnavailable and OSError, and then
    leaves nothing behind.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.samefile(settings.DATA_DIR):
        raise BackupError(f"Backups need a folder of their own, such as {folder / 'backups'}.")
    with _alone(folder):
        for leftover in manifest.unfinished(folder):
            shutil.rmtree(leftover, ignore_errors=True)
        path = _free_name(folder, now)
        draft = path.with_name(f"{path.name}{UNFINISHED}")
        draft.mkdir(mode=0o700)
        try:
            taken = _write(draft, is_checked, on_part)
            draft.rename(path)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        manifest.sync_folder(folder)
        if keep is not None:
            _forget(manifest.complete(folder)[:-keep])
    return path, taken


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep others from the folder: they would clean away what is being written."""
    with (folder / ".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BackupError(f"Another backup to {folder} is under way.") from error
        yield


def _free_name(folder: Path, now: datetime) -> Path:
    name = f"{now:%Y%m%dT%H%M%SZ}"
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(folder / each for each in names if not (folder / each).exists())


def _write(draft: Path, is_checked: bool, on_part: Callable[[Part], object]) -> Manifest:
    # twice: what a job's row names must be there even if the job's end has deleted it meanwhile,
    # or if it came with the row
    _copy_files(draft)
    with one_moment() as moment:
        _require_room(draft, moment)
        databases = []
        for source in moment.sources:
            databases.append(_write_database(draft, source, is_checked))
            on_part(databases[-1].part)
    _copy_files(draft)
    names = {database.part.path for database in databases}
    files = []
    for path in sorted(each for each in draft.rglob("*") if each.is_file()):
        name = path.relative_to(draft).as_posix()
        if name not in names:
            files.append(manifest.seal(draft, name))
    taken = Manifest(
        version=manifest.version(),
        installation=manifest.installation(),
        taken_at=moment.taken_at,
        databases=databases,
        links=moment.links,
        files=files,
    )
    manifest.write(draft, taken)
    for path in [draft, *(each for each in draft.rglob("*") if each.is_dir())]:
        manifest.sync_folder(path)
    return taken


def _write_database(draft: Path, source: Source, is_checked: bool) -> Database:
    applied = source.rows("SELECT app, name FROM django_migrations")
    name = _name_of(source)
    path = draft / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    rows = source.write(path)
    source.close()  # what it kept from being tidied away can go
    if is_checked and source.engine == "sqlite":
        sqlite_copy.check(path)
    return Database(
        alias=source.alias,
        engine=source.engine,
        part=manifest.seal(draft, name),
        rows=rows,
        migrations=sorted(f"{app}.{migration}" for app, migration in applied),
    )


def _name_of(source: Source) -> str:
    if source.engine == "mysql":
        return f"{source.alias}.sql"
    if source.alias.startswith("sqlite:"):
        return f"{DATA}/memory/{source.alias.removeprefix('sqlite:')}"
    return f"{DATA}/{CONTROL_FILE}"


def _require_room(draft: Path, moment: Moment) -> None:
    """Refuse before a disk is filled that the product itself may be writing to."""
    needed = sum(source.size() for source in moment.sources)
    free = shutil.disk_usage(draft).free
    if free < needed:
        raise BackupError(
            f"{draft.parent} has room for {free:,} bytes; about {needed:,} are needed. Delete "
            "old backups, or choose another folder with --to."
        )


def _copy_files(draft: Path) -> None:
    """Copy what DATA_DIR holds besides databases, unless it is there as it is."""
    for path in _files(Path(settings.DATA_DIR), draft.parent):
        copy = draft / DATA / path.relative_to(settings.DATA_DIR)
        with suppress(FileNotFoundError):  # a passing one
            status = path.stat()
            if copy.exists() and (copy.stat().st_size, copy.stat().st_mtime_ns) == (
                status.st_size,
                status.st_mtime_ns,
            ):
                continue
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy2(path, copy)


def _files(data_dir: Path, backups: Path) -> Iterator[Path]:
    control = control_file().name  # of any name, if DATABASE_URL says so
    for parent, folders, names in os.walk(data_dir):
        at_top = Path(parent) == data_dir
        folders[:] = [
            name
            for name in folders
            if not (at_top and is_left_out(name))
            and (Path(parent) / name).resolve() != backups.resolve()
        ]
        for name in names:
            path = Path(parent) / name
            if path.is_file() and not (at_top and (is_left_out(name) or name.startswith(control))):
                yield path


def is_left_out(name: str) -> bool:
    """Return whether an entry of DATA_DIR is none of a backup's files."""
    return any(fnmatch.fnmatch(name, pattern) for pattern in LEFT_OUT)


def _forget(backups: list[Path]) -> None:
    """Delete backups; one that is half deleted has no backup's name any more."""
    for path in backups:
        condemned = path.with_name(f"{path.name}{UNFINISHED}")
        path.rename(condemned)
        shutil.rmtree(condemned)
