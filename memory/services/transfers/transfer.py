"""Memories as JSON lines: out and in again with nothing lost, and safe to repeat.

A line is one memory: its fields, `user_id`, and its earlier states as `revisions`. What
a line holds besides goes into the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from agents.models import Agent
from memory.errors import InvalidMemory
from memory.services import memories
from memory.services.transfers import intake
from memory.services.transfers.intake import Decision, Outcome
from memory.services.transfers.records import Line, parse_line, to_record
from memory.services.writing import SYSTEM

CHUNK = 200
"""So many lines are taken in at a time, one transaction for each user of theirs."""


@dataclass(slots=True)
class ImportReport:
    """What an import did; the lists hold line numbers, from 1, with what happened.

    `kept` lines are older than the memory that is here already, or it is in the trash.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: list[tuple[int, str]] = field(default_factory=list)
    renumbered: list[tuple[int, str]] = field(default_factory=list)
    errors: list[tuple[int, str]] = field(default_factory=list)

    def add(self, decision: Decision) -> None:
        """Count what became of a line."""
        number = decision.line.number
        self.created += decision.outcome == Outcome.NEW
        self.updated += decision.outcome == Outcome.UPDATE
        self.unchanged += decision.outcome == Outcome.DUPLICATE
        if decision.outcome == Outcome.KEPT:
            self.kept.append((number, decision.note))
        if decision.taken_id:
            note = f"id {decision.taken_id} is another's; it became {decision.known.id}"
            self.renumbered.append((number, note))


def export_lines(agent: Agent, user_id: str | None = None) -> Iterator[str]:
    """Yield one JSON line for every memory of a user, or of all users, the trash included."""
    for memory in memories.walk(agent, user_id):
        yield json.dumps(to_record(memory), ensure_ascii=False)


def import_lines(
    agent: Agent,
    lines: Iterable[bytes],
    *,
    user_id: str | None = None,
    now: datetime,
) -> ImportReport:
    """Take in JSON lines in chunks, one transaction a user and chunk.

    With `user_id` all lines become that user's; without, each line names its own, as
    `user_id` or, in evaluation sets, `scope`. An id is kept where it is free; a line
    that was taken in before is recognised, whatever id it got; where the memory here
    has a later version than the line, it stays, and so does what a line does not speak of.
    Bad lines are reported and skipped.
    """
    report = ImportReport()
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while chunk := list(islice(numbered, CHUNK)):
        parsed: list[tuple[Agent, Line]] = []
        for number, line in chunk:
            try:
                parsed.append((agent, parse_line(number, line, user_id)))
            except InvalidMemory as error:
                report.errors.append((number, str(error)))
        for _, owner, group in intake.in_groups(parsed):
            analyses = intake.analyses_of(intake.foresee(agent, owner, group))
            for each in intake.take_in(agent, owner, group, analyses, actor=SYSTEM, now=now):
                report.add(each)
    return report
