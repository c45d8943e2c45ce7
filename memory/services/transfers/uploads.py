"""A file that somebody wants imported: kept, looked at, and read row by row.

JSON lines, a table (CSV), Markdown, or a ZIP of Markdown or of our own. Nothing is unpacked
to the disk.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path, PurePosixPath
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _

from memory.errors import InvalidMemory
from memory.services.transfers import csv_rows, job_files
from memory.services.transfers.markdown_files import MAX_FILE_BYTES, record_of_markdown
from memory.services.transfers.records import read_record

UPLOAD = "upload"
_LINES_FILE = "memories.jsonl"
_MAX_LINE_BYTES = 16 * 1024 * 1024
_MAX_ZIP_FILES = 100_000
_ZIP_GROWTH = 10
"""A ZIP may hold so many times IMPORT_MAX_MB, and be packed so tightly where it is large."""
_MAX_RATIO, _LARGE = 100, 50 * 1024 * 1024
_PIECE = 1024 * 1024
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)
FORMATS = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "csv",
    ".txt": "", ".md": "markdown", ".markdown": "markdown", ".zip": "zip",
}  # fmt: skip


class BadUpload(Exception):
    """A file that cannot be imported; the message says why, in the reader's language."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that is kept under a token: its name where it came from, and how to read it."""

    token: str
    name: str
    format: str
    encoding: str = "utf-8"

    @property
    def path(self) -> Path:
        """Return where it is kept."""
        return job_files.folder_of(self.token) / UPLOAD


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an upload: its line (in a ZIP its place), and what it is or why it is nothing.

    `text` tells it apart from others, `cells` are what it looks like in the file.
    """

    number: int
    record: dict[str, Any] | None
    text: bytes = b""
    cells: tuple[str, ...] = ()
    error: str = ""


def keep(name: str, pieces: Iterable[bytes]) -> Upload:
    """Keep an uploaded file and look at it. Raises BadUpload, and keeps nothing then."""
    token = job_files.make()
    try:
        size = 0
        path = job_files.folder_of(token) / UPLOAD
        with path.open("wb") as file:
            path.chmod(0o600)
            for piece in pieces:
                size += len(piece)
                if size > settings.IMPORT_MAX_MB * _PIECE:
                    raise BadUpload(too_large())
                file.write(piece)
        if not size:
            raise BadUpload(_("The file is empty."))
        return _inspected(Upload(token, PurePosixPath(name).name[:200], ""))
    except BaseException:
        job_files.remove(token)
        raise


def too_large() -> str:
    """Return what is said of a file that is too large."""
    text = _("The file has more than %d MB. Split it, or let an operator import it by a command.")
    return text % settings.IMPORT_MAX_MB


def heading_of(upload: Upload) -> list[str]:
    """Return what the cells of a row are, for a file of those that failed."""
    if upload.format == "csv":
        with upload.path.open(encoding=upload.encoding, newline="") as file:
            return csv_rows.heading_of(file)
    if upload.format == "zip":
        with zipfile.ZipFile(upload.path) as archive:
            return [_("line of the file") if _lines_file(archive) else _("file")]
    return [_("file") if upload.format == "markdown" else _("line of the file")]


def rows_of(upload: Upload) -> Iterator[Row]:
    """Yield the rows of an upload in the order of the file.

    What ends the reading before its end is a row with an error.
    """
    read = {"jsonl": _json_rows, "csv": _csv_rows, "markdown": _markdown_rows}
    if upload.format != "zip":
        with upload.path.open("rb") as file:
            yield from read[upload.format](file, upload)
        return
    with zipfile.ZipFile(upload.path) as archive:
        if lines := _lines_file(archive):
            try:
                with archive.open(lines) as file:
                    yield from _json_rows(file, upload)
            except _BROKEN:
                problem = _("The ZIP is damaged; nothing of it can be read from here on.")
                yield Row(0, None, error=problem)
            return
        for number, info in enumerate(_markdown_files(archive), 1):
            yield _packed_row(archive, info, number)


def _inspected(upload: Upload) -> Upload:
    """Return an upload with its format and encoding. Raises BadUpload."""
    with upload.path.open("rb") as file:
        head = file.read(4096)
    form = _format_of(upload.name, head)
    encoding = "utf-8"
    if form == "zip":
        _inspect_zip(upload.path)
    else:
        encoding = _encoding_of(upload.path)
    found = Upload(upload.token, upload.name, form, encoding)
    if form == "csv":
        _inspect_table(found)
    if form == "jsonl" and encoding == "utf-16":
        raise BadUpload(_("The file is in UTF-16; save it in UTF-8."))
    if form == "jsonl" and head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
        raise BadUpload(
            _("This is one list in JSON; what is wanted are JSON lines: one memory a line.")
        )
    return found


def _format_of(name: str, head: bytes) -> str:
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    form = FORMATS.get(PurePosixPath(name.lower()).suffix, "")
    if form == "zip":
        raise BadUpload(_("The file is called .zip and is none."))
    if b"\x00" in head and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise BadUpload(_("This is no text: it holds NUL characters."))
    if not form and head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{"):
        return "jsonl"
    if not form:
        raise BadUpload(
            _("What this file is cannot be seen; it should be called .jsonl, .csv, .md or .zip.")
        )
    return form


def _encoding_of(path: Path) -> str:
    """Return in which encoding a whole file is text. Raises BadUpload."""
    with path.open("rb") as file:
        head = file.read(4)
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    # Excel in Chinese writes GB18030, and takes whatever has no mark for that
    for encoding in ("utf-16",) if wide else ("utf-8", "gb18030"):
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            with path.open("rb") as file:
                while piece := file.read(_PIECE):
                    decoder.decode(piece)
                decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            continue
        return encoding
    raise BadUpload(_("The text is neither UTF-8 nor GB18030; save it in UTF-8."))


def _inspect_table(upload: Upload) -> None:
    with upload.path.open(encoding=upload.encoding, newline="") as file:
        try:
            heading = csv_rows.heading_of(file)
            file.seek(0)
            next(csv_rows.read_rows(file), None)
        except csv_rows.NotATable as error:
            found = ", ".join(heading)[:200]
            raise BadUpload(
                _("No column is called content; the first line names the columns, and it is: %s")
                % found
            ) from error
        except csv.Error:
            pass  # of a row, which will be told of


def _inspect_zip(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            _check_entries(archive, path.stat().st_size)
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise BadUpload(_("The ZIP is damaged and cannot be opened.")) from error


def _check_entries(archive: zipfile.ZipFile, packed: int) -> None:
    """Refuse what is locked, leads elsewhere or would be vast. Raises BadUpload."""
    entries = archive.infolist()
    if len(entries) > _MAX_ZIP_FILES:
        raise BadUpload(_("The ZIP holds more than %d files.") % _MAX_ZIP_FILES)
    for info in entries:
        if info.flag_bits & 1:
            raise BadUpload(_("The ZIP is encrypted; pack it without a password."))
        path = PurePosixPath(info.filename.replace("\\", "/"))
        if ".." in path.parts or path.is_absolute() or re.match("[A-Za-z]:", info.filename):
            raise BadUpload(_("A file in the ZIP has a path that leads out of it."))
    size = sum(info.file_size for info in entries)
    limit = settings.IMPORT_MAX_MB * _ZIP_GROWTH
    if size > limit * _PIECE or (size > _LARGE and size > packed * _MAX_RATIO):
        most = min(limit, size // _PIECE)
        raise BadUpload(_("Unpacked, the ZIP would have more than %d MB.") % most)
    if not _lines_file(archive) and not _markdown_files(archive):
        raise BadUpload(_("The ZIP holds neither memories.jsonl nor Markdown files."))


def _lines_file(archive: zipfile.ZipFile) -> zipfile.ZipInfo | None:
    """Return the JSON lines of a ZIP of ours; they say more than the Markdown beside them."""
    return next((each for each in archive.infolist() if each.filename == _LINES_FILE), None)


def _markdown_files(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    def is_meant(path: PurePosixPath) -> bool:
        hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
        return path.suffix.lower() in {".md", ".markdown"} and not hidden

    found = [each for each in archive.infolist() if is_meant(PurePosixPath(each.filename))]
    return sorted(found, key=lambda info: info.filename)


def _json_rows(file: IO[bytes], upload: Upload) -> Iterator[Row]:
    number = 0
    while line := file.readline(_MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > _MAX_LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = file.readline(_PIECE)
            limit = _MAX_LINE_BYTES // _PIECE
            yield Row(number, None, error=_("The line has more than %d MB.") % limit)
            continue
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if not line.strip():
            continue
        if upload.encoding == "gb18030":
            line = line.decode("gb18030", "replace").encode()
        shown = (line.decode("utf-8", "replace").rstrip("\r\n"),)
        try:
            yield Row(number, read_record(line), line, shown)
        except InvalidMemory as error:
            yield Row(number, None, line, shown, "; ".join(error.fields.values()))


def _csv_rows(file: IO[bytes], upload: Upload) -> Iterator[Row]:
    number = 1
    try:
        with TextIOWrapper(file, encoding=upload.encoding, newline="") as text:
            for number, cells, record in csv_rows.read_rows(text):
                yield Row(number, record, _identity_of(record), tuple(cells))
    except csv.Error as error:
        problem = _("The table cannot be read from here on: %s") % error
        yield Row(number + 1, None, error=problem)


def _markdown_rows(file: IO[bytes], upload: Upload) -> Iterator[Row]:
    yield _row_of_markdown(file.read(MAX_FILE_BYTES + 1), upload.name, 1)


def _packed_row(archive: zipfile.ZipFile, info: zipfile.ZipInfo, number: int) -> Row:
    path = _path_of(info)
    try:
        with archive.open(info) as file:
            return _row_of_markdown(file.read(MAX_FILE_BYTES + 1), path, number)
    except _BROKEN:
        problem = _("The ZIP is damaged here; this file cannot be read.")
        return Row(number, None, cells=(path,), error=problem)


def _row_of_markdown(data: bytes, path: str, number: int) -> Row:
    if len(data) > MAX_FILE_BYTES:
        problem = _("The file has more than %d KB.") % (MAX_FILE_BYTES // 1024)
        return Row(number, None, cells=(path,), error=problem)
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            text = data.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        problem = _("The text is neither UTF-8 nor GB18030; save it in UTF-8.")
        return Row(number, None, cells=(path,), error=problem)
    try:
        record = record_of_markdown(text, path)
    except InvalidMemory as error:
        return Row(number, None, cells=(path,), error=str(error))
    return Row(number, record, _identity_of(record), (path,))


def _identity_of(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")


def _path_of(info: zipfile.ZipInfo) -> str:
    """Return a file's path; without the mark for UTF-8 it is Python's guess, often wrong."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("gb18030")
    except UnicodeError:
        return info.filename
