"""A memory as one JSON line, and back: every field, its times and its earlier states."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any

from memory import recall_log
from memory.drafts import (
    DRAFT_FIELDS,
    MemoryDraft,
    parse_draft,
    parse_note,
    parse_time,
    parse_user_id,
)
from memory.errors import InvalidMemory
from memory.ids import MAX_ID
from memory.models import ActorKind, Memory

_TIMES = ("created_at", "updated_at", "last_accessed_at")
_COUNTS = ("version", "access_count")
_OWN_FIELDS = frozenset(
    {"id", "user_id", "agent", "revisions", "external_id", "recalls", *_TIMES, *_COUNTS}
)


@dataclass(frozen=True, slots=True)
class Line:
    """One checked line: whose, what, its id here or its name elsewhere, and its past.

    `given` are the fields of the draft that the line itself names. With `is_by_text` a memory
    that says the same, in name and content, is the line's own.
    """

    number: int
    user_id: str
    draft: MemoryDraft
    given: frozenset[str]
    id: int | None
    external_id: str | None
    times: Mapping[str, datetime | None]
    counts: Mapping[str, int]
    recall_log: str
    revisions: tuple[Mapping[str, Any], ...]
    is_by_text: bool = False

    @property
    def is_anonymous(self) -> bool:
        """Return whether the line has no name but its own text."""
        return self.id is None and (self.external_id or "").startswith("line:")

    def values(self) -> dict[str, Any]:
        """Return the fields that the line names, as columns."""
        values = {name: getattr(self.draft, name) for name in DRAFT_FIELDS if name in self.given}
        return {name: list(v) if name == "tags" else v for name, v in values.items()}


def to_record(memory: Memory) -> dict[str, Any]:
    """Return a memory, with its scope and revisions loaded, as JSON values."""
    record: dict[str, Any] = {"id": memory.pk, "user_id": memory.scope.user_id}
    for name in (*DRAFT_FIELDS, *_TIMES, *_COUNTS):
        value = getattr(memory, name)
        record[name] = value.isoformat() if isinstance(value, datetime) else value
    if memory.external_id is not None:
        record["external_id"] = memory.external_id
    days = recall_log.days_of(memory.recall_log)
    record["recalls"] = {day.isoformat(): count for day, count in days.items()}
    record["revisions"] = [
        {
            "version": revision.version,
            "state": revision.state,
            "actor_kind": revision.actor_kind,
            "actor": revision.actor,
            "reason": revision.reason,
            "created_at": revision.created_at.isoformat(),
        }
        for revision in sorted(memory.revisions.all(), key=lambda each: each.version)
    ]
    return record


def parse_line(number: int, line: bytes, user_id: str | None) -> Line:
    """Return a checked line; with `user_id` it is that user's. Raises InvalidMemory."""
    return parse_record(number, read_record(line), user_id, text=line)


def read_record(line: bytes) -> dict[str, Any]:
    """Return the object that a line of JSON is. Raises InvalidMemory."""
    try:
        record = json.loads(line)
    except UnicodeDecodeError as error:
        raise InvalidMemory({"line": f"This is not UTF-8: {error.reason}."}) from error
    except (ValueError, RecursionError) as error:
        raise InvalidMemory({"line": f"This is not JSON: {error}."}) from error
    if not isinstance(record, dict):
        raise InvalidMemory({"line": "This is not a JSON object."})
    return record


def parse_record(number: int, record: dict[str, Any], user_id: str | None, *, text: bytes) -> Line:
    """Return a checked line; `text` names it where it has no other name. Raises InvalidMemory."""
    owner = user_id if user_id is not None else record.get("user_id", record.get("scope"))
    values = {name: record[name] for name in DRAFT_FIELDS if name in record}
    others = {
        name: value
        for name, value in record.items()
        if name not in _OWN_FIELDS and name not in values
    }
    if others and isinstance(values.get("metadata", {}), dict):
        values["metadata"] = {**others, **values.get("metadata", {})}
    draft = parse_draft(values)
    memory_id, external_id = _identity(record, text)
    return Line(
        number=number,
        user_id=parse_user_id(owner),
        draft=draft,
        given=_given(values),
        id=memory_id,
        external_id=external_id,
        times={name: _field(record, name, parse_time) for name in _TIMES},
        counts={name: _field(record, name, _count) for name in _COUNTS if name in record},
        recall_log=_field(record, "recalls", _recall_log),
        revisions=_revisions(record),
    )


def _given(values: Mapping[str, Any]) -> frozenset[str]:
    """Return which fields a line names; a detail is of a kind, and a blank name is none."""
    names = set(values) if values.get("name") else set(values) - {"name"}
    return frozenset(names | {"kind"} if "detail" in names else names)


def _identity(record: Mapping[str, Any], line: bytes) -> tuple[int | None, str | None]:
    """Return the line's id where it can be one of ours, and its name in other systems."""
    external_id = record.get("external_id") or None
    if external_id is not None:
        external_id = _name(record, "external_id")
    given = record.get("id")
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given <= MAX_ID:
        return given, external_id
    if given is not None:
        return None, _name(record, "id")
    return None, external_id or f"line:{hashlib.sha256(line.strip()).hexdigest()}"


def _name(record: Mapping[str, Any], field: str) -> str:
    """Return a name that another system gives, under the rules of a user_id."""
    value = record[field]
    if field == "id" and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    try:
        return parse_user_id(value)
    except InvalidMemory as error:
        problem = "This must be a number or text of 1 to 255 characters that can be stored."
        raise InvalidMemory({field: problem}) from error


def _revisions(record: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    found = tuple(map(_revision, _field(record, "revisions", _list)))
    versions = [each["version"] for each in found]
    current = max(record.get("version") or 1, 1)
    if len(set(versions)) < len(versions) or any(each >= current for each in versions):
        raise InvalidMemory({"revisions": "Versions are distinct and below the memory's own."})
    return found


def _field(record: Mapping[str, Any], name: str, check: Callable[[Any], Any]) -> Any:
    try:
        return check(record.get(name))
    except ValueError as error:
        raise InvalidMemory({name: str(error)}) from error


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise ValueError("This must be a whole number.")
    return value


def _recall_log(value: Any) -> str:
    problem = "This must be an object of days such as 2026-11-30 with their counts."
    if not isinstance(value, dict | None):
        raise ValueError(problem)
    try:
        days = {date.fromisoformat(day): _count(count) for day, count in (value or {}).items()}
    except ValueError as error:
        raise ValueError(problem) from error
    return recall_log.log_of(days)


def _list(value: Any) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise ValueError("This must be a list.")
    return value or []


def _revision(revision: Any) -> Mapping[str, Any]:
    if not isinstance(revision, dict) or not isinstance(revision.get("state"), dict):
        raise InvalidMemory({"revisions": "Each is an object with a state."})
    created_at = _field(revision, "created_at", parse_time)
    if created_at is None or revision.get("actor_kind") not in ActorKind.values:
        raise InvalidMemory({"revisions": "Each has created_at and actor_kind."})
    state = asdict(parse_draft(revision["state"]))
    for name in ("due_at", "expires_at"):
        state[name] = state[name].isoformat() if state[name] else None
    return {
        "version": _field(revision, "version", _count),
        "state": state,
        "actor_kind": revision["actor_kind"],
        "actor": _field(revision, "actor", parse_note),
        "reason": _field(revision, "reason", parse_note),
        "created_at": created_at,
    }
