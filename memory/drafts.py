"""From a caller's words to a memory that can be stored: every field checked once, here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import TextChoices

from agents.models import validate_user_id
from memory.analyzer import fold
from memory.errors import InvalidMemory
from memory.models import MemoryKind, MemoryType, Status, Tier, Visibility

MAX_NAME_CHARS = 255
MAX_DESCRIPTION_CHARS = 500
MAX_CONTENT_BYTES = 64 * 1024
MAX_METADATA_BYTES = 16 * 1024
MAX_TAGS = 32
MAX_TAG_CHARS = 64
_DERIVED_NAME_CHARS = 60
_MAX_JSON_DEPTH = 32


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """The fields of a memory that its author decides; the defaults are those of a save."""

    type: str
    content: str
    name: str = ""
    kind: str = MemoryKind.OBSERVATION
    tier: str = Tier.LONG_TERM
    description: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    source: str = ""
    importance: float = 0.5
    confidence: float = 1.0
    pinned: bool = False
    core: bool = False
    visibility: str = Visibility.PRIVATE
    status: str = Status.ACTIVE
    due_at: datetime | None = None
    expires_at: datetime | None = None


DRAFT_FIELDS = tuple(each.name for each in fields(MemoryDraft))


def parse_draft(data: Mapping[str, Any]) -> MemoryDraft:
    """Return the draft that `data` describes; an absent name is made from the content.

    Raises InvalidMemory naming every field at fault.
    """
    values = _checked(data, required=("type", "content"))
    if not fold(values.get("name", "")):
        values["name"] = derive_name(values["content"])
    kind = values.get("kind", MemoryKind.OBSERVATION)
    values["detail"] = parse_detail(kind, values.get("detail", {}))
    return MemoryDraft(**values)


def parse_changes(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked values of a partial change; `detail` waits for its kind.

    A value replaces the old one whole, metadata and tags included.
    Raises InvalidMemory naming every field at fault.
    """
    values = _checked(data)
    if not fold(values.get("name", "name")):
        raise InvalidMemory({"name": "A name cannot be empty."})
    return values


def parse_user_id(user_id: Any) -> str:
    """Return `user_id` where it can name a user. Raises InvalidMemory."""
    if not isinstance(user_id, str):
        raise InvalidMemory({"user_id": "A user_id is a string of 1 to 255 characters."})
    try:
        validate_user_id(user_id)
    except ValidationError as error:
        raise InvalidMemory({"user_id": error.messages[0]}) from error
    return user_id


def parse_note(value: Any) -> str:
    """Return a revision's actor or reason where it can be stored. Raises ValueError."""
    return _text(255, is_blank_allowed=True)("" if value is None else value)


def parse_reason(reason: str) -> str:
    """Return `reason` where a revision can hold it. Raises InvalidMemory."""
    try:
        return parse_note(reason)
    except ValueError as error:
        raise InvalidMemory({"reason": str(error)}) from error


def derive_name(content: str) -> str:
    """Return the first line of `content`, cut at a word where it is long."""
    line = next(line for line in map(str.strip, content.splitlines()) if fold(line))
    if len(line) <= _DERIVED_NAME_CHARS:
        return line
    cut = line[:_DERIVED_NAME_CHARS]
    head, _, last = cut.rpartition(" ")
    return (head if head and len(last) < 20 else cut).rstrip() + "…"


def parse_detail(kind: str, detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return `detail` in the form its `kind` demands. Raises InvalidMemory.

    observation: {}; fact: subject, predicate, object; procedure: when, keywords, steps,
    cautions; summary: source_ids, session_id.
    """
    shape = _DETAILS[kind]
    problems = {
        f"detail.{name}": f"Of kind {kind} there is no such detail."
        for name in detail
        if name not in shape
    }
    checked: dict[str, Any] = {}
    for name, (check, is_required) in shape.items():
        if name not in detail:
            if is_required:
                problems[f"detail.{name}"] = f"Kind {kind} needs it."
            continue
        try:
            checked[name] = check(detail[name])
        except ValueError as error:
            problems[f"detail.{name}"] = str(error)
    if problems:
        raise InvalidMemory(problems)
    return checked


def _checked(data: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    problems = {str(name): "There is no such field." for name in data if name not in _CHECKS}
    problems.update({name: "This field is required." for name in required if name not in data})
    values = {}
    for name, check in _CHECKS.items():
        if name in data:
            try:
                values[name] = check(data[name])
            except ValueError as error:
                problems[name] = str(error)
    if problems:
        raise InvalidMemory(problems)
    return values


def _text(max_chars: int, *, is_blank_allowed: bool) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        text = _storable(value)
        if len(text) > max_chars:
            raise ValueError(f"At most {max_chars} characters; this has {len(text)}.")
        if not is_blank_allowed and not fold(text):
            raise ValueError("This cannot be empty.")
        return text

    return check


def _storable(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("This must be text.")
    if "\x00" in value:
        raise ValueError("NUL (U+0000) cannot be stored.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("Half a surrogate pair cannot be stored; send whole characters.")
    return value


def _content(value: Any) -> str:
    text = _storable(value)
    size = len(text.encode())
    if size > MAX_CONTENT_BYTES:
        raise ValueError(f"At most {MAX_CONTENT_BYTES} bytes of UTF-8; this has {size}.")
    if not fold(text):
        raise ValueError("This cannot be empty.")
    return text


def _choice(choices: type[TextChoices]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in choices.values:
            raise ValueError(f"One of {', '.join(choices.values)}.")
        return str(value)

    return check


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("This must be a number.")
    if not 0 <= value <= 1:  # nor is NaN
        raise ValueError("This lies between 0 and 1.")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("This must be true or false.")
    return value


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("This must be an object.")
    return dict(value)


def _metadata(value: Any) -> dict[str, Any]:
    metadata = _mapping(value)
    _check_json(metadata, depth=0)
    try:
        size = len(json.dumps(metadata, ensure_ascii=False, allow_nan=False).encode())
    except ValueError as error:  # NaN, or an integer of thousands of digits
        raise ValueError(f"This is not JSON: {error}.") from error
    if size > MAX_METADATA_BYTES:
        raise ValueError(f"At most {MAX_METADATA_BYTES} bytes of JSON; this has {size}.")
    return metadata


def _check_json(value: Any, depth: int) -> None:
    if depth > _MAX_JSON_DEPTH:
        raise ValueError(f"At most {_MAX_JSON_DEPTH} levels deep.")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _storable(key)
            _check_json(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_json(item, depth + 1)
    elif isinstance(value, str):
        _storable(value)
    elif not (value is None or isinstance(value, bool | int | float)):
        raise ValueError("This must be JSON.")


def _tags(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("This must be a list of tags.")
    check = _text(MAX_TAG_CHARS, is_blank_allowed=False)
    tags = tuple(dict.fromkeys(check(tag).strip() for tag in value))
    if any(len(tag.splitlines()) > 1 for tag in tags):
        raise ValueError("A tag is one line.")
    if len(tags) > MAX_TAGS:
        raise ValueError(f"At most {MAX_TAGS} tags; this has {len(tags)}.")
    return tags


def _time(value: Any) -> datetime | None:
    """Return an aware time; text is ISO 8601, and without a zone it is UTC."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("This must be a time such as 2026-12-03T09:00:00Z.") from None
    if not isinstance(value, datetime):
        raise ValueError("This must be a time such as 2026-12-03T09:00:00Z.")
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError("This time is out of range.") from None


parse_time = _time

_line = _text(MAX_DESCRIPTION_CHARS, is_blank_allowed=False)


def _lines(value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or len(value) > 100:
        raise ValueError("This must be a list of at most 100 texts.")
    return [_line(item) for item in value]


def _ids(value: Any) -> list[int]:
    if not isinstance(value, list | tuple) or len(value) > 1_000:
        raise ValueError("This must be a list of at most 1000 ids.")
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        raise ValueError("Ids are whole numbers.")
    return list(value)


_DETAILS: dict[str, dict[str, tuple[Callable[[Any], Any], bool]]] = {
    MemoryKind.OBSERVATION: {},
    MemoryKind.FACT: {
        "subject": (_line, True),
        "predicate": (_line, True),
        "object": (_line, True),
    },
    MemoryKind.PROCEDURE: {
        "when": (_line, True),
        "keywords": (_lines, False),
        "steps": (_lines, True),
        "cautions": (_lines, False),
    },
    MemoryKind.SUMMARY: {"source_ids": (_ids, False), "session_id": (_line, False)},
}

_CHECKS: dict[str, Callable[[Any], Any]] = {
    "type": _choice(MemoryType),
    "content": _content,
    "name": _text(MAX_NAME_CHARS, is_blank_allowed=True),
    "kind": _choice(MemoryKind),
    "tier": _choice(Tier),
    "description": _text(MAX_DESCRIPTION_CHARS, is_blank_allowed=True),
    "detail": _mapping,
    "metadata": _metadata,
    "tags": _tags,
    "source": _text(50, is_blank_allowed=True),
    "importance": _share,
    "confidence": _share,
    "pinned": _flag,
    "core": _flag,
    "visibility": _choice(Visibility),
    "status": _choice(Status),
    "due_at": _time,
    "expires_at": _time,
}
