"""The rows of an import: where each goes, what is wrong with it, and a file of the failed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from agents.models import Agent
from memory.errors import InvalidMemory
from memory.services.transfers import uploads
from memory.services.transfers.cells import guarded
from memory.services.transfers.csv_rows import BOM
from memory.services.transfers.records import Line, parse_record
from memory.services.transfers.uploads import Row, Upload

_PROBLEMS = (
    gettext_noop("This field is required."),
    gettext_noop("This cannot be empty."),
    gettext_noop("This must be text."),
    gettext_noop("This must be a number."),
    gettext_noop("This lies between 0 and 1."),
    gettext_noop("This must be true or false."),
    gettext_noop("NUL (U+0000) cannot be stored."),
    gettext_noop("One of user, project, feedback, reference."),
    gettext_noop("This must be a time such as 2026-12-03T09:00:00Z."),
    gettext_noop("This is not JSON: %s."),
    gettext_noop("This is not a JSON object."),
    gettext_noop("This is not YAML: %s."),
    gettext_noop("These are not names with values."),
    gettext_noop("At most %s characters; this has %s."),
    gettext_noop("At most %s bytes of UTF-8; this has %s."),
    gettext_noop("At most %s bytes of JSON; this has %s."),
    gettext_noop("At most %s levels deep."),
    gettext_noop("At most %s tags; this has %s."),
    gettext_noop("Half a surrogate pair cannot be stored; send whole characters."),
)
"""What is most often wrong with a row; the rest, and a parser's own words, are told in English."""
_PATTERNS = [
    (re.compile(re.escape(words).replace("%s", "(.+)"), re.DOTALL), words) for words in _PROBLEMS
]


@dataclass(frozen=True, slots=True)
class Parsed:
    """Rows that are lines of a place, and what is wrong with the others by number."""

    lines: list[tuple[Agent, Line]]
    errors: dict[int, str]


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows go, and of which type they are where they do not say."""

    places: dict[tuple[str, str], Agent]
    type: str

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> Target:
        """Return the target of a job; agents that are gone are none."""
        ids = {agent_id for agent_id, _user in payload["places"]}
        agents = Agent.objects.select_related("memory_config").in_bulk(ids)
        places = {
            (agents[agent_id].name, user_id): agents[agent_id]
            for agent_id, user_id in payload["places"]
            if agent_id in agents
        }
        return cls(places, payload["type"])

    def parse(self, rows: Iterable[Row]) -> Parsed:
        """Return the rows as checked lines, and what is wrong with the others by number."""
        parsed = Parsed([], {})
        for row in rows:
            if row.record is None:
                parsed.errors[row.number] = _translated(row.error)
                continue
            try:
                parsed.lines.append(self._placed(row, row.record))
            except InvalidMemory as error:
                parsed.errors[row.number] = _words_of(error)
        return parsed

    def _placed(self, row: Row, record: dict[str, Any]) -> tuple[Agent, Line]:
        if len(self.places) == 1:
            [((_name, user_id), agent)] = self.places.items()
        else:
            whose = (record.get("agent"), record.get("user_id"))
            found = self.places.get(whose) if all(isinstance(each, str) for each in whose) else None  # type: ignore[arg-type]
            if found is None:
                problem = _("It does not say whose it is, or that is none of your agents.")
                raise InvalidMemory({"agent": problem})
            agent, user_id = found, str(whose[1])
        if self.type and not record.get("type"):
            record = {**record, "type": self.type}
        line = parse_record(row.number, record, user_id, text=row.text)
        return agent, replace(line, is_by_text=line.is_anonymous)


class Failures:
    """The file of the rows that failed: line, reason, and what the row looks like.

    It is made with its first row; going on after a kill, it is cut to what was noted.
    """

    def __init__(self, path: Path, upload: Upload, size: int = 0, count: int = 0) -> None:
        self._path, self._upload, self.count = path, upload, count
        self._file: IO[str] | None = None
        if size:
            self._file = path.open("r+", encoding="utf-8", newline="")
            self._file.truncate(size)
            self._file.seek(size)
        else:
            path.unlink(missing_ok=True)

    def add(self, row: Row, reason: str) -> None:
        """Write a row down."""
        if self._file is None:
            self._file = self._path.open("w", encoding="utf-8", newline="")
            heading = [_("line"), _("reason"), *uploads.heading_of(self._upload)]
            self._file.write(BOM)
            csv.writer(self._file).writerow(heading)
        cells = [str(row.number), reason, *row.cells]
        csv.writer(self._file).writerow([guarded(cell) for cell in cells])
        self.count += 1

    def saved(self) -> list[int]:
        """Return the size and the count of what is in the file now."""
        if self._file is None:
            return [0, 0]
        self._file.flush()
        return [self._path.stat().st_size, self.count]

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()


def _words_of(error: InvalidMemory) -> str:
    """Return what is wrong, in the language in force as far as that is known."""
    return "; ".join(f"{name}: {_translated(problem)}" for name, problem in error.fields.items())


def _translated(problem: str) -> str:
    for pattern, words in _PATTERNS:
        if found := pattern.fullmatch(problem):
            return _(words) % found.groups()
    # a file that could not be read says where before it says what
    where, colon, what = problem.partition(": ")
    return f"{where}: {_translated(what)}" if colon and where.isidentifier() else problem
