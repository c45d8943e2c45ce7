"""The fields of a memory as short texts, in the cells of a table or the head of a Markdown file.

A cell that a spreadsheet would take for a formula begins with an apostrophe, and so does one
that began with an apostrophe: reading takes one away. Ids have it too, since a spreadsheet
would round a number of so many digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from memory.drafts import DRAFT_FIELDS
from memory.models import Memory
from memory.numbers import whole_number

FIELDS = ("name", "content", "type", "tags", "description", "importance")
"""What people look at first; the others follow."""
COLUMNS = (
    *("id", "agent", "user_id"),
    *FIELDS,
    *(name for name in DRAFT_FIELDS if name not in FIELDS),
    *("version", "created_at", "updated_at"),
)
_FORMULA = re.compile(r"[=+\-@\t\r'＝＋－＠]")
_GUARDED = re.compile(rf"'(?={_FORMULA.pattern})")
_DATE = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?: (\d{1,2}):(\d{2})(?::(\d{2}))?)?")
ALIASES = {
    "名称": "name", "标题": "name", "title": "name", "内容": "content", "类型": "type",
    "标签": "tags", "描述": "description", "重要性": "importance", "来源": "source",
    "created": "created_at", "updated": "updated_at",
}  # fmt: skip


def field_of(heading: str) -> str:
    """Return which field the heading of a column, or a name in front of a text, means."""
    name = heading.strip()
    return ALIASES.get(name.lower(), name.lower() if name.lower() in COLUMNS else name)


def texts_of(memory: Memory) -> dict[str, str]:
    """Return the fields of a memory, with its scope loaded, as texts; empty ones are ''."""
    texts = {"id": str(memory.pk), "user_id": memory.scope.user_id}
    for name in (*DRAFT_FIELDS, "version", "created_at", "updated_at"):
        texts[name] = _text_of(getattr(memory, name))
    return texts


def _text_of(value: Any) -> str:
    if isinstance(value, list):
        is_plain = not any(re.search(r"[,，\[]|^\s|\s$", each) for each in value)
        return ", ".join(value) if is_plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)


def record_of(texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record that texts describe; what is no such value stays a text.

    Empty texts are left out: they say nothing. Lists and objects stay as they are.
    """
    record = {}
    for name, text in texts.items():
        if text in ("", None):
            continue
        read = _READERS.get(name)
        record[name] = read(text) if read and isinstance(text, str) else text
    return record


def guarded(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """Return the text that `guarded` was given."""
    return text[1:] if _GUARDED.match(text) else text


def _tags(text: str) -> list[Any]:
    if text.startswith("["):
        with suppress(ValueError):
            found = json.loads(text)
            if isinstance(found, list):
                return found
    tags = (tag.strip() for tag in re.split("[,，、;；\n]", text))
    return [tag for tag in tags if tag]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _whole(text: str) -> Any:
    text = text.removeprefix("'")
    number = whole_number(text)
    return text if number is None else number


def _flag(text: str) -> Any:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower(), text)


def _time(text: str) -> str:
    """Return the time of ISO 8601 that a spreadsheet made into another, in UTC."""
    found = _DATE.fullmatch(text.strip())
    if not found:
        return text.strip()
    try:
        return datetime(*(int(part or 0) for part in found.groups()), tzinfo=UTC).isoformat()  # type: ignore[misc, arg-type]
    except ValueError:
        return text


_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("tags",), _tags),
    **dict.fromkeys(("detail", "metadata"), _json),
    **dict.fromkeys(("importance", "confidence"), _number),
    **dict.fromkeys(("id", "version"), _whole),
    **dict.fromkeys(("pinned", "core"), _flag),
    **dict.fromkeys(("due_at", "expires_at", "created_at", "updated_at"), _time),
    **dict.fromkeys(
        ("type", "kind", "tier", "status", "visibility"), lambda text: text.strip().lower()
    ),
}
