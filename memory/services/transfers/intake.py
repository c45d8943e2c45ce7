"""What becomes of the lines of an import: decided first, by one rule, and then done.

A look beforehand and the import itself ask the same `plan`, so that one does what the other
said. A line is known by its id or its name elsewhere, and one that has neither by its text
where that is wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from itertools import groupby
from typing import Any

from agents.models import Agent
from memory.databases import store_alias
from memory.drafts import DRAFT_FIELDS
from memory.ids import next_ids
from memory.indexing import Analysis, analyze
from memory.models import Memory, MemoryRevision, Scope, Status
from memory.services import writing
from memory.services.transfers.records import Line
from memory.services.writing import Actor, draft_values, locked_scope

_MARK_BYTES = 8
_PLACES = {name: place * _MARK_BYTES for place, name in enumerate(DRAFT_FIELDS)}
_MAX_PARAMETERS = 400


class Outcome(StrEnum):
    """What becomes of a line; `kept` means that the memory here is newer, or in the trash."""

    NEW = "new"
    UPDATE = "update"
    DUPLICATE = "duplicate"
    KEPT = "kept"
    ERROR = "error"


@dataclass(slots=True)
class Known:
    """A memory as a plan sees it: its fields as marks of a few bytes, so that many fit.

    It has no id while it is new and the store chooses one.
    """

    id: int | None
    version: int
    marks: bytes

    @property
    def text(self) -> bytes:
        """Return the marks of name and content."""
        return _part(self.marks, "name") + _part(self.marks, "content")

    @property
    def is_trashed(self) -> bool:
        """Return whether it is in the trash."""
        return _part(self.marks, "status") == _TRASHED

    def __str__(self) -> str:
        return f"memory {self.id}" if self.id else "the memory of an earlier line"


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a line, and of which memory; `taken_id` is its id that is another's."""

    line: Line
    outcome: Outcome
    known: Known
    note: str = ""
    taken_id: int | None = None


@dataclass(slots=True)
class Seen:
    """The memories of one scope that lines named so far, as those lines will have left them."""

    by_id: dict[int, Known] = field(default_factory=dict)
    by_name: dict[str, Known] = field(default_factory=dict)
    by_text: dict[bytes, Known] = field(default_factory=dict)

    def add(self, known: Known, external_id: str | None) -> None:
        """Let later lines find a memory by all its names."""
        if known.id is not None:
            self.by_id[known.id] = known
        if external_id:
            self.by_name[external_id] = known
        if self.alive(known.text) is None:
            self.by_text[known.text] = known

    def alive(self, text: bytes) -> Known | None:
        """Return what says the same and is not in the trash."""
        known = self.by_text.get(text)
        return known if known and known.text == text and not known.is_trashed else None


def in_groups(
    lines: Iterable[tuple[Agent, Line]],
) -> Iterator[tuple[Agent, str, list[Line]]]:
    """Yield the lines of a chunk by agent and user; each one's lines keep their order."""
    placed = sorted(lines, key=lambda each: (each[0].pk, each[1].user_id))
    for (_, user_id), group in groupby(placed, key=lambda each: (each[0].pk, each[1].user_id)):
        pairs = list(group)
        yield pairs[0][0], user_id, [line for _, line in pairs]


def foresee(
    agent: Agent,
    user_id: str,
    lines: Sequence[Line],
    seen: Seen | None = None,
    elsewhere: Collection[int] = (),
) -> list[Decision]:
    """Return what would become of lines now; nothing is written, no lock is taken.

    `seen` holds what earlier lines would have done, `elsewhere` ids that they would have
    given to others of the same store.
    """
    scope = Scope.objects.of_user(agent, user_id).first()
    seen = Seen() if seen is None else seen
    if scope:
        _load(scope, lines, seen)
    return _plan(store_alias(agent), scope, lines, seen, elsewhere)


@writing.retried
def take_in(
    agent: Agent,
    user_id: str,
    lines: Sequence[Line],
    analyses: Mapping[int, Analysis],
    *,
    actor: Actor,
    now: datetime,
) -> list[Decision]:
    """Take in one user's lines in one transaction, and return what became of each.

    `analyses` holds those of new lines by their numbers, made before the lock is taken.
    """
    with locked_scope(agent, user_id, create=True) as scope:
        seen = Seen()
        rows = _load(scope, lines, seen)
        decisions = _plan(str(scope._state.db), scope, lines, seen, ())
        rows |= _insert(scope, decisions, analyses, now=now)
        for each in decisions:
            if each.outcome == Outcome.UPDATE and each.known.id:
                _change(scope, rows[each.known.id], each.line, actor=actor, now=now)
    return decisions


def _change(scope: Scope, memory: Memory, line: Line, *, actor: Actor, now: datetime) -> None:
    values = line.values()
    writing.change(scope, [memory], lambda _: values, actor=actor, reason="import", now=now)


def analyses_of(decisions: Iterable[Decision]) -> dict[int, Analysis]:
    """Return the analyses that taking these in will need."""
    return {
        each.line.number: analyze(each.line.draft)
        for each in decisions
        if each.outcome == Outcome.NEW
    }


def _insert(
    scope: Scope, decisions: Sequence[Decision], analyses: Mapping[int, Analysis], *, now: datetime
) -> dict[int, Memory]:
    """Insert what is new, and return it by its ids."""
    new = [each for each in decisions if each.outcome == Outcome.NEW]
    for each, free_id in zip(new, next_ids(len(new), now=now), strict=True):
        each.known.id = each.line.id or free_id
    created = [(_memory(each.known.id or 0, each.line, now=now), each.line) for each in new]
    writing.insert(
        scope,
        [(memory, analyses.get(line.number) or analyze(line.draft)) for memory, line in created],
    )
    writing.note_saved(scope, [memory for memory, _ in created], now=now)
    revisions = (
        MemoryRevision(memory_id=memory.pk, **revision)
        for memory, line in created
        for revision in line.revisions
    )
    for batch in writing.batches(revisions, lambda each: len(each.state["content"])):
        MemoryRevision.objects.using(scope._state.db).bulk_create(batch)
    return {memory.pk: memory for memory, _ in created}


def _plan(
    alias: str,
    scope: Scope | None,
    lines: Sequence[Line],
    seen: Seen,
    elsewhere: Collection[int],
) -> list[Decision]:
    taken = Memory.objects.using(alias).filter(pk__in=[line.id for line in lines if line.id])
    if scope:
        taken = taken.exclude(scope_id=scope.pk)
    ids = set(taken.values_list("pk", flat=True))
    return [_decide(line, seen, ids, elsewhere) for line in lines]


def _load(scope: Scope, lines: Sequence[Line], seen: Seen) -> dict[int, Memory]:
    """Add the scope's memories that lines may mean, and return them; what is seen is newer."""
    ids = [line.id for line in lines if line.id]
    names = [line.external_id for line in lines if line.external_id]
    names += [str(memory_id) for memory_id in ids]
    texts = [line.draft.name for line in lines if line.is_by_text]
    of_scope = Memory.objects.of_scope(scope)
    rows = {
        memory.pk: memory
        for column, values in (("pk", ids), ("external_id", names), ("name", texts))
        for start in range(0, len(values), _MAX_PARAMETERS)
        for memory in of_scope.filter(
            **{f"{column}__in": values[start : start + _MAX_PARAMETERS]}
        ).order_by("pk")
    }
    for memory in rows.values():
        known = seen.by_id.get(memory.pk)
        if known is None:
            columns = {name: getattr(memory, name) for name in DRAFT_FIELDS}
            known = Known(memory.pk, memory.version, _marks(columns))
        seen.add(known, memory.external_id)
    return rows


def _decide(line: Line, seen: Seen, taken: Collection[int], elsewhere: Collection[int]) -> Decision:
    known = seen.by_id.get(line.id) if line.id else None
    taken_id = line.id if known is None and (line.id in taken or line.id in elsewhere) else None
    if taken_id is not None:
        line = replace(line, id=None, external_id=line.external_id or str(taken_id))
    known = known or seen.by_name.get(line.external_id or str(line.id))
    whole = _marks(draft_values(line.draft))
    if known is None and line.is_by_text:
        known = seen.alive(_part(whole, "name") + _part(whole, "content"))
        if known:
            return Decision(line, Outcome.DUPLICATE, known)
    if known is None:
        known = Known(line.id, max(line.counts.get("version", 1), 1), whole)
        seen.add(known, line.external_id)
        return Decision(line, Outcome.NEW, known, taken_id=taken_id)
    return _repeated(line, known, seen)


def _repeated(line: Line, known: Known, seen: Seen) -> Decision:
    """Decide about a line whose memory is here."""
    marks = _after(known.marks, line)
    # a line that does not say what it is a version of is the first
    version = line.counts.get("version", 1 if line.is_anonymous else known.version)
    if known.is_trashed and "status" not in line.given:
        return Decision(line, Outcome.KEPT, known, f"{known} is in the trash here")
    if marks == known.marks:
        return Decision(line, Outcome.DUPLICATE, known)
    if version < known.version:
        note = f"{known} is at version {known.version} here"
        return Decision(line, Outcome.KEPT, known, note)
    known.marks, known.version = marks, known.version + 1
    seen.by_text[known.text] = known
    return Decision(line, Outcome.UPDATE, known)


def _marks(columns: Mapping[str, Any]) -> bytes:
    return b"".join(_mark(columns[name]) for name in DRAFT_FIELDS)


def _after(marks: bytes, line: Line) -> bytes:
    """Return the marks of a memory once the line has changed it."""
    values = line.values()
    if "kind" in values and "detail" not in values:
        is_same = _part(marks, "kind") == _mark(values["kind"])
        # one that becomes of another kind leaves the old kind's detail behind
        values |= {} if is_same else {"detail": {}}
    return b"".join(
        _mark(values[name]) if name in values else _part(marks, name) for name in DRAFT_FIELDS
    )


def _part(marks: bytes, name: str) -> bytes:
    return marks[_PLACES[name] : _PLACES[name] + _MARK_BYTES]


def _mark(value: Any) -> bytes:
    """Return what is the same for values that a change would find the same."""
    if isinstance(value, float):
        value += 0.0  # -0.0 is no other number
    text = str(value) if isinstance(value, str | datetime) else repr(value)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_MARK_BYTES).digest()


_TRASHED = _mark(str(Status.TRASHED))


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
