"""Golden questions from a file: asked of an agent, or of memories that the file brings along."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from agents.models import Agent
from memory.services.evaluation import scratch
from memory.services.golden import questions
from memory.services.golden.questions import Draft, InvalidQuestion

_OF_AGENT = ("prefetch_limit", "min_score", "synonyms")
"""What of an agent's settings decides what comes back."""


@dataclass(slots=True)
class QuestionFile:
    """The questions of a file, and the memories it brings, a JSON line each."""

    drafts: list[Draft] = field(default_factory=list)
    memories: list[bytes] = field(default_factory=list)
    users: set[str] = field(default_factory=set)
    """Whose memories it brings: questions about them are asked of these."""


def read(path: Path) -> QuestionFile:
    """Return what a file of JSON lines asks.

    A line is an object with `user_id`, with `question`, `expected` and `unwanted`, with
    `memories` to be remembered of that user, or with both. Raises ValueError naming the line.
    """
    found = QuestionFile()
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                _take(found, json.loads(line))
            except InvalidQuestion as error:
                raise ValueError(f"{path.name}, line {number}: {error.field}: {error}") from error
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path.name}, line {number}: {error}") from error
    return found


def _take(found: QuestionFile, record: Any) -> None:
    if not isinstance(record, dict):
        raise ValueError("a line is a JSON object")
    if unknown := record.keys() - {"user_id", "question", "expected", "unwanted", "memories"}:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    memories = record.get("memories", [])
    if not isinstance(memories, list) or not all(isinstance(each, dict) for each in memories):
        raise ValueError("memories: a list of objects")
    if "question" in record or not memories:
        found.drafts.append(questions.parse(record))
    for each in memories:
        user_id = record.get("user_id")
        found.users.add(str(user_id))
        text = json.dumps({"type": "user", **each, "user_id": user_id})
        found.memories.append(text.encode())


@contextmanager
def stage(agent: Agent, brought: QuestionFile, *, embeds: bool, now: datetime) -> Iterator[Agent]:
    """Make an agent with the settings of another that remembers only what a file brings.

    It is erased at the end. Raises ValueError for what is no memory.
    """
    backend = agent.memory_config.backend
    with scratch.throw_away_agent(backend) as copy:
        for name in _OF_AGENT:
            setattr(copy.memory_config, name, getattr(agent.memory_config, name))
        copy.memory_config.save(update_fields=_OF_AGENT)
        try:
            scratch.load(copy, brought.memories, embeds=embeds, now=now)
        except ValueError as error:
            raise ValueError(f"memories, {error}") from error
        yield copy
