"""Agents that live for one measurement, and what they are given to remember."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import numpy as np
from django.db import transaction
from django.db.models import F

from agents.models import Agent
from memory.databases import store_alias
from memory.models import Memory, MemoryVector, Scope
from memory.retrieval import embedder
from memory.services.transfers.transfer import import_lines

_AGENT_PREFIX = "evaluate."
_CHUNK = 256


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
    alias = store_alias(agent)
    for scope in Scope.objects.for_agent(agent):
        pending = MemoryVector.objects.of_scope(scope).pending(model.model).select_related("memory")
        rows = list(pending.order_by("memory_id"))
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK]
            vectors = model.embed([_text(row.memory) for row in chunk]).astype("<f2")
            with transaction.atomic(using=alias):
                Scope.objects.using(alias).filter(pk=scope.pk).update(
                    vector_stamp=F("vector_stamp") + 1
                )
                scope.refresh_from_db(fields=["vector_stamp"])
                for row, vector in zip(chunk, vectors, strict=True):
                    row.model, row.dimension = model.model, len(vector)
                    row.vector, row.stamp = np.asarray(vector).tobytes(), scope.vector_stamp
                fields = ["model", "dimension", "vector", "stamp"]
                MemoryVector.objects.using(alias).bulk_update(chunk, fields)


def _text(memory: Memory) -> str:
    return "\n".join(filter(None, [memory.name, memory.description, memory.content]))
