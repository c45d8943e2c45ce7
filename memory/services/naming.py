"""Memories by name: how a model refers to what it saved, without ids."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agents.models import Agent
from memory.analyzer import fold
from memory.drafts import MemoryDraft, parse_changes, parse_draft
from memory.errors import AmbiguousName, UnknownMemory
from memory.models import Memory, MemoryType, Scope
from memory.querysets import MemoryQuerySet
from memory.services import duplicates, memories, writing
from memory.services.writing import Actor, locked_scope

_LINK = re.compile(r"https?://|www\.", re.IGNORECASE)
_FEEDBACK = re.compile(
    r"\b(?:don't|do not|never|stop|instead|next time|should have|well done)\b"
    r"|不要|别再|别用|下次|以后请|应该|改成|做得好",
    re.IGNORECASE,
)
_USER = re.compile(
    r"\b(?:likes?|loves?|prefers?|hates?|dislikes?|allergic|lives? in|works? (?:as|at)|birthday|"
    r"the user|my name|i am|i'm)\b|用户|喜欢|讨厌|偏好|习惯|过敏|生日|住在|我是|我叫",
    re.IGNORECASE,
)


def infer_type(text: str) -> str:
    """Return the likeliest type of a memory by its words, where nobody said it.

    A link is a reference, a correction feedback, a taste or trait the user's; else project.
    """
    if _LINK.search(text):
        return MemoryType.REFERENCE
    if _FEEDBACK.search(text):
        return MemoryType.FEEDBACK
    if _USER.search(text):
        return MemoryType.USER
    return MemoryType.PROJECT


@writing.retried
def save_named(
    agent: Agent, user_id: str, values: Mapping[str, Any], *, actor: Actor, now: datetime
) -> tuple[Memory, str]:
    """Update the live memory of this name, or create it; return it and what was done.

    `values` are fields of a draft; a missing type is kept, or inferred for a new memory.
    Content that a memory has already, but for its spelling, makes none beside it and changes
    nothing, unless a name or a type is given that says more. What was done is one of
    `created`, `updated`, `unchanged`. Raises InvalidMemory, AmbiguousName.
    """
    text = f"{values.get('name', '')}\n{values.get('content', '')}"
    draft = parse_draft({"type": infer_type(text), **values})
    if not fold(values.get("name", "")):
        values = {field: value for field, value in values.items() if field != "name"}
    prepared = memories.prepare([draft], now=now)
    with locked_scope(agent, user_id, create=True) as scope:
        same = live_of_name(scope, draft.name, now=now)
        if "name" not in values:
            same = [memory for memory in same if memory.content == draft.content][:1]
        if not same and (known := _known(scope, draft, values, prepared[0][1].digest, now=now)):
            return known, "unchanged"
        if not same:
            writing.insert(scope, prepared)
            created = prepared[0][0]
            writing.note_saved(scope, [created], now=now)
            return created, "created"
        memory = _only(same, draft.name)
        changes = parse_changes(values)
        changed = writing.change(
            scope, [memory], lambda _: changes, actor=actor, reason="", now=now
        )
        return memory, "updated" if changed else "unchanged"


def _known(
    scope: Scope, draft: MemoryDraft, given: Mapping[str, Any], digest: str, *, now: datetime
) -> Memory | None:
    """Return the memory that has a draft's content already, where nothing given says more."""
    for memory in duplicates.find_exact(scope, draft.content, digest=digest, now=now):
        is_of_type = memory.type == given.get("type", memory.type)
        is_of_kind = (memory.kind, memory.detail) == (draft.kind, draft.detail)
        says_no_more = "name" not in given or duplicates.adds_nothing(draft.name, memory)
        if is_of_type and is_of_kind and says_no_more:
            return memory
    return None


def find_named(agent: Agent, user_id: str, name: str, *, now: datetime) -> Memory:
    """Return the live memory of this name.

    Raises UnknownMemory, AmbiguousName, and InvalidMemory for what no memory can be named.
    """
    parse_changes({"name": name})
    scope = Scope.objects.of_user(agent, user_id).first()
    same = live_of_name(scope, name, now=now) if scope else []
    if scope and not same:
        # as a model read it: on one line, in whatever case it says it again
        said = fold(_one_line(name))
        same = [memory for memory in _live(scope, now=now) if fold(_one_line(memory.name)) == said]
    if not same:
        raise UnknownMemory(
            f"No memory named {name!r} for user {user_id} of agent {agent.name}; call "
            "memory_recall to find its name or id."
        )
    return _only(same, name)


def live_of_name(scope: Scope, name: str, *, now: datetime) -> list[Memory]:
    """Return memories of a name that are recalled, or are so once they are not paused."""
    return list(_live(scope, now=now).named(name).order_by("-id")[:5])


def _live(scope: Scope, *, now: datetime) -> MemoryQuerySet:
    return Memory.objects.of_scope(scope).lasting(now)


def _one_line(name: Any) -> Any:
    """Return a name without breaks and double blanks; what is no text is refused elsewhere."""
    return " ".join(name.split()) if isinstance(name, str) else name


def _only(same: list[Memory], name: str) -> Memory:
    if len(same) > 1:
        raise AmbiguousName(name, [memory.pk for memory in same])
    return same[0]
