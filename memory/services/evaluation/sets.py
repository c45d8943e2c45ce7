"""Labelled sets: memories, questions about them, and which of them answer which question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memory.drafts import parse_time

APART = "adversarial"
"""Questions without an answer: kept out of a set's figures and shown on a line of their own."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A question, the ids that answer it, and where and when it was asked."""

    qid: str
    scope: str
    text: str
    relevant: frozenset[str]
    category: str
    language: str
    asked_at: datetime | None


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """One data set: the file of its memories and its questions."""

    name: str
    memories: Path
    queries: tuple[LabelledQuery, ...]


def read_sets(folder: Path) -> list[LabelledSet]:
    """Return the sets of a folder, by name: pairs of *.memories.jsonl and *.queries.jsonl.

    Raises ValueError naming file and line where a question is malformed.
    """
    found = []
    for memories in sorted(folder.glob("*.memories.jsonl")):
        name = memories.name.removesuffix(".memories.jsonl")
        queries = memories.with_name(f"{name}.queries.jsonl")
        if queries.exists():
            found.append(LabelledSet(name, memories, tuple(_read_queries(queries))))
    return found


def _read_queries(path: Path) -> Iterator[LabelledQuery]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record: dict[str, Any] = json.loads(line)
                yield LabelledQuery(
                    qid=record["qid"],
                    scope=record["scope"],
                    text=record["query"],
                    relevant=frozenset(record["relevant"]),
                    category=record.get("category", ""),
                    language=record.get("lang", ""),
                    asked_at=parse_time(record.get("asked_at")),
                )
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path.name}, line {number}: {error}") from error
