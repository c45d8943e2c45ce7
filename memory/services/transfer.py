"""Memories as JSON lines: out and in again with nothing lost, and safe to repeat.

A line is one memory: its fields, `user_id`, and its earlier states as `revisions`. What
a line holds besides goes into the metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import groupby, islice
from typing import Any

from agents.models import Agent
from memory.drafts import DRAFT_FIELDS, MemoryDraft, parse_draft, parse_time, parse_user_id
from memory.errors import InvalidMemory
from memory.ids import MAX_ID, next_ids
from memory.indexing import Analysis, analyze
from memory.models import ActorKind, Memory, MemoryRevision, Scope
from memory.services import memories, writing
from memory.services.writing import SYSTEM, locked_scope

_CHUNK = 200
_TIMES = ("created_at", "updated_at", "last_accessed_at")
_COUNTS = ("version", "access_count")
_OWN_FIELDS = frozenset({"id", "user_id", "revisions", "external_id", *_TIMES, *_COUNTS})


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


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    user_id: str
    draft: MemoryDraft
    analysis: Analysis
    id: int | None
    external_id: str | None
    times: Mapping[str, datetime | None]
    counts: Mapping[str, int]
    revisions: tuple[Mapping[str, Any], ...]


def export_lines(agent: Agent, user_id: str | None = None) -> Iterator[str]:
    """Yield one JSON line for every memory of a user, or of all users, the trash included."""
    for memory in memories.walk(agent, user_id):
        yield json.dumps(_record(memory), ensure_ascii=False)


def import_lines(
    agent: Agent,
    lines: Iterable[bytes],
    *,
    user_id: str | None = None,
    now: datetime,
    on_chunk: Callable[[], object] = lambda: None,
) -> ImportReport:
    """Take in JSON lines in chunks, one transaction a user and chunk; `on_chunk` after each.

    With `user_id` all lines become that user's; without, each line names its own, as
    `user_id` or, in evaluation sets, `scope`. An id is kept where it is free; a line
    that was taken in before is recognised, whatever id it got; where the memory here
    has a later version than the line, it stays. Bad lines are reported and skipped.
    """
    report = ImportReport()
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while chunk := list(islice(numbered, _CHUNK)):
        parsed: list[_Line] = []
        for number, line in chunk:
            try:
                parsed.append(_parse(number, line, user_id))
            except InvalidMemory as error:
                report.errors.append((number, str(error)))
        parsed.sort(key=lambda line: line.user_id)  # stable: a user's lines keep their order
        for owner, group in groupby(parsed, key=lambda line: line.user_id):
            report.add(_import_group(agent, owner, list(group), now=now))
        on_chunk()
    return report


def _record(memory: Memory) -> dict[str, Any]:
    record: dict[str, Any] = {"id": memory.pk, "user_id": memory.scope.user_id}
    for name in (*DRAFT_FIELDS, *_TIMES, *_COUNTS):
        value = getattr(memory, name)
        record[name] = value.isoformat() if isinstance(value, datetime) else value
    if memory.external_id is not None:
        record["external_id"] = memory.external_id
    record["revisions"] = [
        {
            "version": revision.version,
            "state": revision.state,
            "actor_kind": revision.actor_kind,
            "actor": revision.actor,
            "reason": revision.reason,
            "created_at": revision.created_at.isoformat(),
        }
        for revision in sorted(memory.revisions.all(), key=lambda each: each.version)
    ]
    return record


def _parse(number: int, line: bytes, user_id: str | None) -> _Line:
    """Return a checked line. Raises InvalidMemory."""
    try:
        record = json.loads(line)
    except UnicodeDecodeError as error:
        raise InvalidMemory({"line": f"This is not UTF-8: {error.reason}."}) from error
    except (ValueError, RecursionError) as error:
        raise InvalidMemory({"line": f"This is not JSON: {error}."}) from error
    if not isinstance(record, dict):
        raise InvalidMemory({"line": "This is not a JSON object."})
    owner = user_id if user_id is not None else record.get("user_id", record.get("scope"))
    values = {name: record[name] for name in DRAFT_FIELDS if name in record}
    others = {
        name: value
        for name, value in record.items()
        if name not in _OWN_FIELDS and name not in values
    }
    if others and isinstance(values.get("metadata", {}), dict):
        values["metadata"] = {**others, **values.get("metadata", {})}
    draft = parse_draft(values)
    memory_id, external_id = _identity(record, line)
    return _Line(
        number=number,
        user_id=parse_user_id(owner),
        draft=draft,
        analysis=analyze(draft),
        id=memory_id,
        external_id=external_id,
        times={name: _field(record, name, parse_time) for name in _TIMES},
        counts={name: _field(record, name, _count) for name in _COUNTS if name in record},
        revisions=tuple(map(_revision, _field(record, "revisions", _list) or [])),
    )


def _identity(record: Mapping[str, Any], line: bytes) -> tuple[int | None, str | None]:
    """Return the line's id where it can be one of ours, and its name in other systems."""
    external_id = record.get("external_id")
    if external_id is not None and not (isinstance(external_id, str) and len(external_id) <= 255):
        raise InvalidMemory({"external_id": "This must be text of at most 255 characters."})
    given = record.get("id")
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given <= MAX_ID:
        return given, external_id
    if isinstance(given, str | int) and not isinstance(given, bool) and len(str(given)) <= 255:
        return None, parse_user_id(str(given))  # the same rules: stored exactly, 1 to 255
    if given is not None:
        raise InvalidMemory({"id": "This must be a number or text of at most 255 characters."})
    return None, external_id or f"line:{hashlib.sha256(line.strip()).hexdigest()}"


def _field(record: Mapping[str, Any], name: str, check: Any) -> Any:
    try:
        return check(record.get(name))
    except ValueError as error:
        raise InvalidMemory({name: str(error)}) from error


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise ValueError("This must be a whole number.")
    return value


def _list(value: Any) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise ValueError("This must be a list.")
    return value or []


def _revision(revision: Any) -> Mapping[str, Any]:
    if not isinstance(revision, dict) or not isinstance(revision.get("state"), dict):
        raise InvalidMemory({"revisions": "Each is an object with a state."})
    created_at = _field(revision, "created_at", parse_time)
    if created_at is None or revision.get("actor_kind") not in ActorKind.values:
        raise InvalidMemory({"revisions": "Each has created_at and actor_kind."})
    state = asdict(parse_draft(revision["state"]))
    for name in ("due_at", "expires_at"):
        state[name] = state[name].isoformat() if state[name] else None
    return {
        "version": _field(revision, "version", _count),
        "state": state,
        "actor_kind": revision["actor_kind"],
        "actor": str(revision.get("actor", ""))[:255],
        "reason": str(revision.get("reason", ""))[:255],
        "created_at": created_at,
    }


@writing.retried
def _import_group(agent: Agent, user_id: str, lines: list[_Line], *, now: datetime) -> ImportReport:
    """Take in one user's lines of a chunk, in one transaction."""
    report = ImportReport()
    new_ids = iter(next_ids(len(lines), now=now))
    with locked_scope(agent, user_id, create=True) as scope:
        by_id, by_external_id = _present(scope, lines)
        taken = Memory.objects.using(scope._state.db).filter(
            pk__in=[line.id for line in lines if line.id]
        )
        elsewhere = set(taken.exclude(scope_id=scope.pk).values_list("pk", flat=True))
        created: list[tuple[Memory, _Line]] = []
        repeated: list[tuple[Memory, _Line]] = []
        for original in lines:
            line = original
            present = by_id.get(line.id) if line.id else None
            if line.id in elsewhere:
                line = replace(line, id=None, external_id=str(line.id))
            present = present or by_external_id.get(line.external_id or "")
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


def _present(scope: Scope, lines: list[_Line]) -> tuple[dict[int, Memory], dict[str, Memory]]:
    """Return the scope's memories that lines may mean, by id and by external id."""
    ids = [line.id for line in lines if line.id]
    names = [line.external_id for line in lines if line.external_id]
    names += [str(memory_id) for memory_id in ids]
    of_scope = Memory.objects.of_scope(scope)
    external = of_scope.filter(external_id__in=names)
    return of_scope.in_bulk(ids), {each.external_id or "": each for each in external}


def _merge(
    scope: Scope, memory: Memory, line: _Line, report: ImportReport, *, now: datetime
) -> None:
    values = writing.draft_values(line.draft)
    if all(getattr(memory, name) == value for name, value in values.items()):
        report.unchanged += 1
    elif line.counts.get("version", memory.version) < memory.version:
        report.kept.append((line.number, f"memory {memory.pk} is at version {memory.version} here"))
    else:
        writing.change(scope, [memory], lambda _: values, actor=SYSTEM, reason="import", now=now)
        report.updated += 1


def _memory(memory_id: int, line: _Line, *, now: datetime) -> Memory:
    memory = writing.new_memory(memory_id, line.draft, now=now)
    memory.external_id = line.external_id
    memory.created_at = line.times["created_at"] or now
    memory.updated_at = line.times["updated_at"] or memory.created_at
    memory.last_accessed_at = line.times["last_accessed_at"]
    memory.version = max(line.counts.get("version", 1), 1)
    memory.access_count = line.counts.get("access_count", 0)
    return memory
