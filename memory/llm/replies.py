"""JSON out of what a chat model says: between thoughts, fences and prose, with small mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
"""JSON Schema, of which `type`, `properties`, `required` and `items` count."""

_MAX_CHARS = 50_000
_MAX_STARTS = 50
_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float),
    "boolean": bool,
}  # fmt: skip


class ReplyUnreadable(Exception):
    """The model's text holds no JSON of the wanted shape."""


def read_json(text: str, schema: Schema) -> Any:
    """Return the last value in `text` that fits `schema`; raises ReplyUnreadable.

    The last, for a model that thinks aloud comes to its answer in the end.
    """
    # what a server leaves of thoughts may lack the mark that opens them
    answer = _END_OF_THOUGHT.split(text[:_MAX_CHARS])[-1]
    found = [value for value in _values(answer) if fits(value, schema)]
    if not found:
        raise ReplyUnreadable
    return found[-1]


def fits(value: Any, schema: Schema) -> bool:
    """Return whether a JSON value has the shape that `schema` says."""
    wanted = _TYPES[schema["type"]]
    # True is an int to Python, not to JSON
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        return False
    if isinstance(value, list):
        return all(fits(item, schema["items"]) for item in value) if "items" in schema else True
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return all(name in value for name in schema.get("required", ())) and all(
            fits(value[name], inner) for name, inner in properties.items() if name in value
        )
    return True


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON objects and lists that stand in a text, outermost ones only."""
    position, is_clean = 0, False
    for _ in range(_MAX_STARTS):
        starts = (text.find(mark, position) for mark in "{[")
        position = min((start for start in starts if start >= 0), default=len(text))
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            if is_clean:
                position += 1
            else:  # once more from here
                text, position, is_clean = _without_commas(text[position:]), 0, True
        else:
            yield value


def _without_commas(text: str) -> str:
    """Return JSON without the commas before a closing bracket, which models like to leave."""
    return _STRING_OR_COMMA.sub(lambda found: "" if found[0] == "," else found[0], text)


def _refuse(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse)
