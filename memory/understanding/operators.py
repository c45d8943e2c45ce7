"""Operators that people type into a search: `type:project tag:deploy after:2026-03-05`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo

from memory.analyzer import fold, unify
from memory.understanding.times import Span, spans

_NAMES = {
    "type": "type", "类型": "type", "tag": "tag", "标签": "tag", "after": "after",
    "before": "before", "之后": "after", "之前": "before",
}  # fmt: skip
_QUOTED = r"\"[^\"]*\"|“[^”]*”|「[^」]*」|『[^』]*』"
_OPERATOR = re.compile(
    rf"(?<!\S)(?:(?P<phrase>{_QUOTED})"  # what is quoted holds no operator
    r"|(?P<name>type|tag|after|before|类型|類型|标签|標籤|之后|之後|之前)[:：]"
    rf"(?:(?P<quoted>{_QUOTED})|(?P<plain>[^\s\"“「『：:]\S*)|(?=\s|$))(?=\s|$))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Operators:
    """What a search is narrowed to by what was typed.

    `text` is the rest of it, to be looked for. `created_from` is the first moment that fits,
    `created_until` the first that does no more. `refused` are operators, by their name,
    whose value says nothing.
    """

    text: str
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    created_from: datetime | None = None
    created_until: datetime | None = None
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def is_narrowing(self) -> bool:
        """Return whether anything beside the text was understood."""
        return bool(self.types or self.tags or self.created_from or self.created_until)


def parse(query: str, *, types: Mapping[str, str], now: datetime, zone: tzinfo) -> Operators:
    """Return what `query` asks for. `types` maps what people call a type, folded, to its name.

    After a time is from its beginning on, before it is up to its beginning. Several types
    are alternatives, several tags must all be there, of several times the last one counts.
    An operator without a value is being typed: it narrows nothing. Other words with a colon
    are plain text.
    """
    given: dict[str, list[str]] = {"type": [], "tag": []}
    times: dict[str, datetime] = {}
    refused = []
    for match in _OPERATOR.finditer(query):
        if match["phrase"]:
            continue
        name = _NAMES[unify(match["name"].lower())]
        value = " ".join((match["plain"] or (match["quoted"] or "")[1:-1]).split())
        if not value:
            continue
        if name == "tag":
            given["tag"].append(value)
        elif name == "type" and fold(value) in types:
            given["type"].append(types[fold(value)])
        elif name != "type" and (span := _time(value, now, zone)):
            times[name] = span.start
        else:
            refused.append((name, value))
    return Operators(
        text=_OPERATOR.sub(_without, query).strip(),
        types=tuple(dict.fromkeys(given["type"])),
        tags=tuple(dict.fromkeys(given["tag"])),
        created_from=times.get("after"),
        created_until=times.get("before"),
        refused=tuple(refused),
    )


def _without(match: re.Match[str]) -> str:
    return match["phrase"] or ""


def _time(value: str, now: datetime, zone: tzinfo) -> Span | None:
    """Return the time that `value` is, the whole of it."""
    wanted = fold(value)
    named = (fold(value), f"on {value}", f"in {value}")
    for words in (value, *named[1:]):
        for span in spans(words, now=now, zone=zone):
            if fold(span.words) in {wanted, *map(fold, named)}:
                return span
    return None
