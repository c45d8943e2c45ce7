"""Agents that live for one measurement, and what they are given to remember."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from agents.models import Agent
from memory.models import MemoryVector, Scope
from memory.retrieval import embedder
from memory.services import embedding
from memory.services.embedding import Tally
from memory.services.transfers.transfer import import_lines

_AGENT_PREFIX = "evaluate."


@contextmanager
def throw_away_agent(backend: str) -> Iterator[Agent]:
    """Make an agent that is erased at the end, and erase those that dead processes left."""
    for left in Agent.objects.filter(name__startswith=_AGENT_PREFIX):
        ours = re.fullmatch(r"evaluate\.(?:sqlite|mysql)\.(\d+)", left.name)
        # in a container every run may have the same number
        if ours and (int(ours[1]) == os.getpid() or not Path(f"/proc/{ours[1]}").exists()):
            left.delete()
    agent = Agent.objects.create_agent(f"{_AGENT_PREFIX}{backend}.{os.getpid()}", backend=backend)
    try:
        yield agent
    finally:
        agent.delete()  # its memories go with it


def load(agent: Agent, lines: Iterable[bytes], *, embeds: bool, now: datetime) -> None:
    """Let an agent remember JSON lines, and what they mean where that is asked for.

    Raises ValueError that names the first line which is no memory.
    """
    report = import_lines(agent, lines, now=now)
    if report.errors:
        number, message = report.errors[0]
        raise ValueError(f"line {number}: {message}")
    if embeds:
        _embed(agent)


def _embed(agent: Agent) -> None:
    model = embedder.current()
    if model is None:
        return
    for scope in Scope.objects.for_agent(agent):
        rows = MemoryVector.objects.of_scope(scope)
        deque(embedding.embed_rows(rows, model, Tally()), maxlen=0)
