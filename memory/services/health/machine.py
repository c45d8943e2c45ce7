"""What Hippo stands on: disk, latest backup, versions, and settings that are not safe."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

import django
from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from memory.services.health.findings import WELL, Finding, State

_GB = 1024**3
_KEY_CHARS = 50
_MODES = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk that DATA_DIR is on, and what Hippo takes of it."""

    path: str
    finding: Finding
    free_bytes: int
    total_bytes: int
    used_bytes: int
    """What is below DATA_DIR."""
    backup: str
    """The latest backup in DATA_DIR, '' where there is none."""
    backed_up_at: datetime | None


def disk() -> Disk:
    """Return how full the disk is; walks DATA_DIR. Raises OSError."""
    folder = Path(settings.DATA_DIR)
    usage = shutil.disk_usage(folder)
    backups = [each for each in (folder / "backups").glob("*/") if not each.is_symlink()]
    latest = max(backups, key=lambda each: each.stat().st_mtime, default=None)
    return Disk(
        path=str(folder),
        finding=_room(usage.free, usage.total),
        free_bytes=usage.free,
        total_bytes=usage.total,
        used_bytes=sum(_sizes(folder)),
        backup=str(latest.relative_to(folder)) if latest else "",
        backed_up_at=datetime.fromtimestamp(latest.stat().st_mtime, UTC) if latest else None,
    )


def _room(free: int, total: int) -> Finding:
    mend = _(
        "Make room: old backups that have a copy elsewhere, old logs; du -xh --max-depth=2 / | "
        "sort -h says what is large. Nothing is lost; saves fail while the disk is full."
    )
    if free < _GB / 5:
        return Finding(State.DOWN, _("The disk is full, or will be in a moment."), mend)
    if free < _GB or free < total / 20:
        return Finding(State.REDUCED, _("Little room is left on the disk."), mend)
    return WELL


def _sizes(folder: Path) -> Iterator[int]:
    """Yield the size of every file; what goes away meanwhile is left out."""
    for here, _folders, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(here, name)).st_size
            except FileNotFoundError:
                continue


@cache
def hippo_version() -> str:
    """Return the version of this checkout."""
    project = tomllib.loads((Path(settings.BASE_DIR) / "pyproject.toml").read_text())
    return str(project["project"]["version"])


def versions() -> dict[str, str]:
    """Return the versions of what Hippo is made of, servers left out."""
    return {
        "Hippo": hippo_version(),
        "Python": platform.python_version(),
        "Django": django.get_version(),
        "Celery": version("celery"),
        "SQLite": sqlite3.sqlite_version,
    }


def warnings() -> list[Finding]:
    """Return what is not safe in settings and files, each with how to mend it."""
    return list(_warnings())


def _warnings() -> Iterator[Finding]:
    folder = Path(settings.DATA_DIR)
    if settings.DEBUG:
        yield Finding(
            State.REDUCED,
            _("DEBUG is on: a fault shows settings and memories to whoever meets it."),
            _("Start Hippo without DEBUG."),
        )
    if "*" in settings.ALLOWED_HOSTS:
        yield Finding(
            State.REDUCED,
            _("ALLOWED_HOSTS holds *: pages can be asked for under any name."),
            _("Set ALLOWED_HOSTS to the names that people use, and start Hippo again."),
        )
    if len(settings.SECRET_KEY) < _KEY_CHARS:
        yield Finding(
            State.REDUCED,
            _("SECRET_KEY is short: sessions could be forged."),
            _("Set a random one of 50 characters or more; everybody then logs in once more."),
        )
    for path, mode in ((folder, "700"), (folder / "secret_key", "600")):
        if path.exists() and path.stat().st_mode & _MODES:
            reason = format_lazy(_("Other accounts of this machine can read {path}."), path=path)
            mend = format_lazy("chmod {mode} {path}", mode=mode, path=path)
            yield Finding(State.REDUCED, reason, mend)
