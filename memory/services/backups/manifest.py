"""What a backup says about itself, and whether that is still true of its files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.crypto import salted_hmac

from memory.errors import HippoError

FORMAT = 1
MANIFEST = "manifest.json"
DATA = "data"
"""The folder of a backup that is laid out like a DATA_DIR."""
CONTROL_FILE = "hippo.sqlite3"
UNFINISHED = ".part"
"""How the name of a folder ends that is no backup yet, or no longer."""
_NAME = re.compile(r"\d{8}T\d{6}Z(-\d+)?")
_BLOCK = 1 << 20


class BackupError(HippoError):
    """A backup that cannot be taken or used; what was there before is as it was."""

    code = "backup_failed"


@dataclass(frozen=True, slots=True)
class Part:
    """A file of the backup; `path` is relative to its folder."""

    path: str
    size: int
    sha256: str
    mode: int


@dataclass(frozen=True, slots=True)
class Database:
    """A database of the backup: rows by table, migrations as `app.name`."""

    alias: str
    engine: str
    part: Part
    rows: dict[str, int]
    migrations: list[str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of a backup. Whatever was acknowledged before `taken_at` is in it.

    `links` maps the names of SQLite stores that are other names of a file to that file's.
    """

    version: str
    installation: str
    taken_at: datetime
    databases: list[Database]
    links: dict[str, str]
    files: list[Part]

    @property
    def parts(self) -> list[Part]:
        """Return every file that the manifest vouches for."""
        return [*(database.part for database in self.databases), *self.files]

    @property
    def size(self) -> int:
        """Return the bytes of all parts."""
        return sum(part.size for part in self.parts)

    def rows(self, table: str) -> int:
        """Return how many rows a table has in all databases together."""
        return sum(database.rows.get(table, 0) for database in self.databases)


def seal(folder: Path, path: str) -> Part:
    """Return a file of a backup with its hash, once it is safe on the disk."""
    file = folder / path
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    status = file.stat()
    return Part(path, status.st_size, _sha256(file), status.st_mode & 0o777)


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest: with it the folder becomes a backup as soon as it has its name."""
    told = {"format": FORMAT, **dataclasses.asdict(manifest)}
    told["taken_at"] = manifest.taken_at.isoformat()
    path = folder / MANIFEST
    with private_file(path) as file:
        file.write(json.dumps(told, indent=1, ensure_ascii=False).encode())
        file.flush()
        os.fsync(file.fileno())


def read(folder: Path) -> Manifest:
    """Return a backup's manifest. Raises BackupError where there is none that can be used."""
    if folder.name.endswith(UNFINISHED):
        raise BackupError(f"{folder} was never finished; choose another backup.")
    path = folder / MANIFEST
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BackupError(_not_found(folder)) from error
    except ValueError as error:
        raise BackupError(f"{path} cannot be read: {error}. Choose another backup.") from error
    if told.get("format") != FORMAT:
        raise BackupError(
            f"{folder} is of format {told.get('format')}; this Hippo reads format {FORMAT}. "
            f"Restore it with Hippo {told.get('version')} or later."
        )
    try:
        return _parsed(told)
    except (KeyError, TypeError, ValueError) as error:
        raise BackupError(f"{path} lacks something: {error}. Choose another backup.") from error


def verify(
    folder: Path, manifest: Manifest, on_bytes: Callable[[int], object] = lambda _: None
) -> None:
    """Compare every file of a backup with its manifest. Raises BackupError at a difference."""
    for part in manifest.parts:
        file = folder / part.path
        if not file.is_file():
            raise BackupError(f"{file} is missing from the backup; choose another one.")
        if file.stat().st_size != part.size or _sha256(file) != part.sha256:
            raise BackupError(f"{file} is not as it was when it was written; choose another one.")
        on_bytes(part.size)


def complete(folder: Path) -> list[Path]:
    """Return this installation's complete backups in a folder, oldest first.

    Those of others may lie there too, and are none of ours to count or delete.
    """
    found = []
    for path in sorted(folder.iterdir()):
        if not _NAME.fullmatch(path.name):
            continue
        try:
            manifest = read(path)
        except BackupError:
            continue
        if manifest.installation == installation():
            found.append((manifest.taken_at, path))
    return [path for _, path in sorted(found)]


def unfinished(folder: Path) -> list[Path]:
    """Return what killed backups and deletions have left in a folder."""
    return [
        path
        for path in folder.glob(f"*{UNFINISHED}")
        if _NAME.fullmatch(path.name.removesuffix(UNFINISHED))
    ]


def installation() -> str:
    """Return what tells this installation's backups from another's; it gives nothing away."""
    return salted_hmac("memory.backups", "installation", algorithm="sha256").hexdigest()[:16]


def version() -> str:
    """Return the version of this Hippo."""
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def private_file(path: Path) -> Any:
    """Open a new file that its owner alone may read, for writing bytes."""
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))


def sync_folder(folder: Path) -> None:
    """Let the names in a folder be safe on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _parsed(told: dict[str, Any]) -> Manifest:
    return Manifest(
        version=told["version"],
        installation=told["installation"],
        taken_at=datetime.fromisoformat(told["taken_at"]),
        databases=[Database(**{**each, "part": _part(each["part"])}) for each in told["databases"]],
        links={_plain(name): _plain(target) for name, target in told["links"].items()},
        files=[_part(each) for each in told["files"]],
    )


def _part(told: dict[str, Any]) -> Part:
    part = Part(**told)
    if Path(part.path).is_absolute() or ".." in Path(part.path).parts:
        raise ValueError(f"{part.path} leads outside")
    return part


def _plain(name: str) -> str:
    if Path(name).name != name:
        raise ValueError(f"{name} is no plain file name")
    return name


def _not_found(folder: Path) -> str:
    there = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}") if path.is_file())
    there = [path for path in there if not path.name.endswith(UNFINISHED)]
    if there:
        return f"{folder} holds backups; name one of them, the newest being {there[-1]}."
    return f"{folder} is no backup: it has no {MANIFEST}."


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
