"""Memories as JSON lines: out and in again with nothing lost, and safe to repeat.

A line is one memory: its fields, `user_id`, and its earlier states as `revisions`. What
a line holds besides goes into the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby, islice

from agents.models import Agent
from memory.errors import InvalidMemory
from memory.ids import next_ids
from memory.models import Memory, MemoryRevision, Scope
from memory.services import memories, writing
from memory.services.records import Line, parse_line, to_record
from memory.services.writing import SYSTEM, locked_scope

_CHUNK = 200


@dataclass(slots=True)
class ImportReport:
    """What an import did; the lists hold line numbers, from 1, with what happened.

    `kept` lines are older than the memory that is here already.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: list[tuple[int, str]] = field(default_factory=list)
    renumbered: list[tuple[int, str]] = field(default_factory=list)
    errors: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: ImportReport) -> None:
        """Count another report's lines in."""
        self.created += other.created
        self.updated += other.updated
        self.unchanged += other.unchanged
        self.kept += other.kept
        self.renumbered += other.renumbered
        self.errors += other.errors


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
    has a later version than the line, it stays. Bad lines are reported and skipped.
    """
    report = ImportReport()
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while chunk := list(islice(numbered, _CHUNK)):
        parsed: list[Line] = []
        for number, line in chunk:
            try:
                parsed.append(parse_line(number, line, user_id))
            except InvalidMemory as error:
                report.errors.append((number, str(error)))
        parsed.sort(key=lambda line: line.user_id)  # stable: a user's lines keep their order
        for owner, group in groupby(parsed, key=lambda line: line.user_id):
            report.add(_import_group(agent, owner, list(group), now=now))
    return report


@writing.retried
def _import_group(agent: Agent, user_id: str, lines: list[Line], *, now: datetime) -> ImportReport:
    """Take in one user's lines of a chunk, in one transaction."""
    report = ImportReport()
    new_ids = iter(next_ids(len(lines), now=now))
    with locked_scope(agent, user_id, create=True) as scope:
        by_id, by_external_id = _present(scope, lines)
        taken = Memory.objects.using(scope._state.db).filter(
            pk__in=[line.id for line in lines if line.id]
        )
        elsewhere = set(taken.exclude(scope_id=scope.pk).values_list("pk", flat=True))
        created: list[tuple[Memory, Line]] = []
        repeated: list[tuple[Memory, Line]] = []
        for original in lines:
            line = original
            present = by_id.get(line.id) if line.id else None
            if line.id in elsewhere:
                line = replace(line, id=None, external_id=line.external_id or str(line.id))
            present = present or by_external_id.get(line.external_id or str(line.id))
            if present:
                repeated.append((present, line))
                continue
            memory = _memory(line.id or next(new_ids), line, now=now)
            if original.id in elsewhere:
                report.renumbered.append(
                    (line.number, f"id {original.id} is another's; it became {memory.pk}")
                )
            created.append((memory, line))
            by_id[memory.pk] = memory
            if line.external_id:
                by_external_id[line.external_id] = memory
        writing.insert(scope, [(memory, line.analysis) for memory, line in created])
        writing.note_saved(scope, [memory for memory, _ in created], now=now)
        revisions = (
            MemoryRevision(memory_id=memory.pk, **revision)
            for memory, line in created
            for revision in line.revisions
        )
        for batch in writing.batches(revisions, lambda each: len(each.state["content"])):
            MemoryRevision.objects.using(scope._state.db).bulk_create(batch)
        report.created += len(created)
        for memory, line in repeated:
            _merge(scope, memory, line, report, now=now)
    return report


def _present(scope: Scope, lines: list[Line]) -> tuple[dict[int, Memory], dict[str, Memory]]:
    """Return the scope's memories that lines may mean, by id and by external id."""
    ids = [line.id for line in lines if line.id]
    names = [line.external_id for line in lines if line.external_id]
    names += [str(memory_id) for memory_id in ids]
    of_scope = Memory.objects.of_scope(scope)
    external = of_scope.filter(external_id__in=names)
    return of_scope.in_bulk(ids), {each.external_id or "": each for each in external}


def _merge(
    scope: Scope, memory: Memory, line: Line, report: ImportReport, *, now: datetime
) -> None:
    values = writing.draft_values(line.draft)
    # a line that does not say what it is a version of is the first
    version = line.counts.get("version", 1 if line.is_anonymous else memory.version)
    if not writing.differences(memory, values):
        report.unchanged += 1
    elif version < memory.version:
        report.kept.append((line.number, f"memory {memory.pk} is at version {memory.version} here"))
    else:
        writing.change(scope, [memory], lambda _: values, actor=SYSTEM, reason="import", now=now)
        report.updated += 1


def _memory(memory_id: int, line: Line, *, now: datetime) -> Memory:
    memory = writing.new_memory(memory_id, line.draft, now=now)
    memory.external_id = line.external_id
    memory.created_at = line.times["created_at"] or now
    memory.updated_at = line.times["updated_at"] or memory.created_at
    memory.last_accessed_at = line.times["last_accessed_at"]
    memory.version = max(line.counts.get("version", 1), 1)
    memory.recall_log = line.recall_log
    memory.access_count = line.counts.get("access_count", 0)
    return memory
