"""What changed between the states of a memory, character by character."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from diff_match_patch import diff_match_patch

from memory.drafts import DRAFT_FIELDS
from memory.models import Memory, MemoryRevision

_TIMEOUT_SECONDS = 0.2
_MARKS = {-1: "del", 0: "same", 1: "ins"}


@dataclass(frozen=True, slots=True)
class Change:
    """One change: from version `version` to the next, by whom, when and why.

    `text` holds (mark, text) pairs of the content, mark being del, ins or same; it is empty
    where the content stayed. `fields` are the others that changed.
    """

    version: int
    actor_kind: str
    actor: str
    reason: str
    at: datetime
    text: tuple[tuple[str, str], ...]
    fields: tuple[str, ...]


def differences(memory: Memory, revisions: Sequence[MemoryRevision]) -> list[Change]:
    """Return the changes that led from each of `revisions`, newest first, to the next state."""
    changes = []
    after = {name: getattr(memory, name) for name in DRAFT_FIELDS}
    for revision in revisions:
        state = revision.state
        # times are kept as text in a state
        changed = [
            name
            for name in DRAFT_FIELDS
            if name not in {"due_at", "expires_at"} and state.get(name) != after.get(name)
        ]
        changes.append(
            Change(
                revision.version,
                revision.actor_kind,
                revision.actor,
                revision.reason,
                revision.created_at,
                compare(state["content"], after["content"]) if "content" in changed else (),
                tuple(name for name in changed if name != "content"),
            )
        )
        after = state
    return changes


def compare(before: str, after: str) -> tuple[tuple[str, str], ...]:
    """Return (mark, text) pairs that lead from `before` to `after`; whole words where it can."""
    differ: Any = diff_match_patch()
    differ.Diff_Timeout = _TIMEOUT_SECONDS
    parts = differ.diff_main(before, after)
    differ.diff_cleanupSemantic(parts)
    return tuple((_MARKS[mark], text) for mark, text in parts)
