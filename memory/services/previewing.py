"""What a prefetch would give for a message, for operators, and whose memories they may try it on.

Their own and those of the demo's people; anybody else's by a reason that was given.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents import audit
from agents.models import Agent, AuditEntry
from memory.models import Scope
from memory.services import demo, trying
from memory.services.context import Measure, Prefetch, compose

BEYOND = 20
"""How many that the limit leaves out are shown."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose memories a message is tried on; `reading` is the reason's record where one is needed.

    `kind` is `own`, `demo` or `reading`.
    """

    user_id: str
    kind: str
    reading: AuditEntry | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What a prefetch gives and how long it took."""

    found: Prefetch
    milliseconds: float


def find_subjects(account: Any, agent: Agent, *, now: datetime) -> list[Subject]:
    """Return on whose memories of `agent` the account may try messages, the likeliest first.

    That is who a reason was given for, then itself, then the demo's people. Four queries.
    Raises what a silent store raises.
    """
    own = trying.own_users(account, agent)
    known = Scope.objects.for_agent(agent).filter(user_id__in=own, memory_count__gt=0)
    readings = trying.open_readings(account, agent, now=now)
    found = {each: Subject(each, "reading", entry) for each, entry in readings.items()}
    for user_id in known.order_by("-memory_count").values_list("user_id", flat=True):
        found[user_id] = Subject(user_id, "own")
    for user_id in demo.demo_users(agent):
        found.setdefault(user_id, Subject(user_id, "demo"))
    return list(found.values())


def preview(
    agent: Agent, subject: Subject, message: str, measure: Measure, *, now: datetime
) -> Preview:
    """Return what `message` would be given of the subject's memories, as far as `measure` lets.

    The real prefetch's own code, without its traces: no memory counts as recalled. How many
    memories are shown is added to the record of a reading before they are.
    """
    started = time.perf_counter()
    found = compose(agent, subject.user_id, message, measure, beyond=BEYOND, now=now)
    elapsed = time.perf_counter() - started
    if subject.reading:
        shown = len(found.hits) + len(found.over_budget) + len(found.over_limit)
        audit.note_shown(subject.reading, shown)
    return Preview(found, elapsed * 1000)
