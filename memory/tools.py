"""memory_save and memory_recall: what a model is offered, and what its calls do.

Agent and user come from the credential and the request, never from a model's arguments.
The texts are for the model, in the agent's language.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import Agent
from memory.errors import (
    AmbiguousName,
    HippoError,
    IdempotencyConflict,
    InvalidMemory,
    MemoryOff,
    UnknownMemory,
)
from memory.filters import MemoryFilter
from memory.ids import MAX_ID
from memory.models import ActorKind, MemoryType, Status
from memory.numbers import whole_number
from memory.retrieval.lexical import Hit, SearchRequest
from memory.services import duplicates, memories
from memory.services.context import format_block, one_line
from memory.services.idempotency import Done, Ticket, once
from memory.services.naming import find_named, save_named
from memory.services.recall import least_score, recall, require_on
from memory.services.writing import Actor

SAVE, RECALL = "memory_save", "memory_recall"
NAMES = (SAVE, RECALL)
FORMATS = ("openai", "anthropic")
MAX_RECALLED = 50
_ACTIONS = ("create", "update", "delete")
_SAVE_ARGUMENTS = {"action", "name", "type", "content", "description", "id"}
_WORDS = {"content", "query"}
_RECALL_ARGUMENTS = {"query", "type", "limit"}


@dataclass(frozen=True, slots=True)
class Call:
    """A model's call of a tool, on behalf of a user that the credential vouches for."""

    agent: Agent
    user_id: str
    arguments: Any
    ticket: Ticket | None
    now: datetime


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """`text` is what the model reads; `result` is for the program round it.

    Of a recall, `hits` are the memories found. `is_repeated` where a call under the same
    ticket was carried out before.
    """

    ok: bool
    result: Mapping[str, Any]
    text: str
    hits: tuple[Hit, ...] = ()
    is_repeated: bool = False


def definitions(agent: Agent, form: str) -> list[dict[str, Any]]:
    """Return the tools as a provider's API takes them; none while the memory is off.

    `form` is one of `FORMATS`. Descriptions are in the agent's language.
    """
    if not agent.memory_config.enabled:
        return []
    with translation.override(agent.language):
        tools = [_save_definition(), _recall_definition()]
    if form == "anthropic":
        return [
            {"name": name, "description": text, "input_schema": schema}
            for name, text, schema in tools
        ]
    return [
        {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}
        for name, text, schema in tools
    ]


def call_tool(name: str, call: Call) -> ToolAnswer:
    """Carry out a model's call of the tool `name`, one of `NAMES`.

    Whatever is wrong with the arguments is an answer that the model can act on; what is
    wrong with the store is raised, and IdempotencyConflict, which is the program's doing.
    """
    with translation.override(call.agent.language):
        try:
            require_on(call.agent, call.user_id)
            return _save(call) if name == SAVE else _recall(call)
        except InvalidMemory as error:
            text = _("%(problem)s Nothing was changed; put it right and call %(tool)s again.")
            text %= {"problem": error, "tool": name}
            return ToolAnswer(False, {"code": error.code, "fields": error.fields}, text)
        except HippoError as error:
            if error.is_servers_fault or isinstance(error, IdempotencyConflict):
                raise
            return ToolAnswer(False, {"code": error.code}, _explained(error))


def _explained(error: HippoError) -> str:
    """Return what a model can do about an error, in the language that is active."""
    if isinstance(error, UnknownMemory):
        return _("There is no such memory of this user; call memory_recall to find its id or name.")
    if isinstance(error, AmbiguousName):
        ids = ", ".join(map(str, error.ids))
        return _("Several memories have this name, ids %s; say which by its id.") % ids
    if isinstance(error, MemoryOff):
        return _("Your memory is switched off; go on without it.")
    return str(error)


def _save(call: Call) -> ToolAnswer:
    values = _arguments(call.arguments, _SAVE_ARGUMENTS)
    has_id = "id" in values
    action = values.pop("action", "update" if has_id else "create")
    if action not in _ACTIONS:
        raise InvalidMemory({"action": _("One of %s.") % ", ".join(_ACTIONS)})
    actor = Actor(ActorKind.AGENT, call.agent.name)

    def write() -> Done:
        if action == "create":
            if has_id:
                raise InvalidMemory(
                    {"id": _("A new memory gets its id; to change one, update it.")}
                )
            memory, done = save_named(call.agent, call.user_id, values, actor=actor, now=call.now)
            return Done([memory], done)
        memory_id = _id_of(call, values)
        if action == "delete":
            memory = memories.trash(call.agent, call.user_id, memory_id, actor=actor, now=call.now)
            return Done([memory], "deleted")
        if not values:
            raise InvalidMemory({"content": _("Say what is to be changed.")})
        memory = memories.update(
            call.agent, call.user_id, memory_id, values, actor=actor, now=call.now
        )
        return Done([memory], "updated")

    done = once(
        call.agent, call.user_id, call.ticket, write, now=call.now, create=action == "create"
    )
    answer = _saved(done)
    return _with_similar(call, done, answer) if done.action == "created" else answer


def _id_of(call: Call, values: dict[str, Any]) -> int:
    """Take the id, or the name that stands for one, out of `values`; a name beside an id stays."""
    if "id" in values:
        return _whole_number(values.pop("id"), "id", MAX_ID)
    name = values.pop("name", "")
    if not isinstance(name, str) or not name:
        raise InvalidMemory({"id": _("Give the memory's id or its name.")})
    return find_named(call.agent, call.user_id, name, now=call.now).pk


def _saved(done: Done) -> ToolAnswer:
    memory, action = done.memories[0], done.action
    texts = {
        "created": _("Saved as a new memory, id %(id)s, named “%(name)s”."),
        "updated": _("Updated the memory “%(name)s”, id %(id)s."),
        "paused": _(
            "Updated the memory “%(name)s”, id %(id)s; the user has paused it, so it is not "
            "recalled until that ends."
        ),
        "unchanged": _("The memory “%(name)s”, id %(id)s, says so already."),
        "deleted": _("Deleted the memory “%(name)s”, id %(id)s."),
    }
    result = {
        "action": action,
        "id": memory.pk,
        "name": memory.name,
        "type": memory.type,
        "version": memory.version,
    }
    is_unseen = action == "updated" and memory.status == Status.PAUSED
    text = texts["paused" if is_unseen else action] % {
        "id": memory.pk,
        "name": one_line(memory.name),
    }
    return ToolAnswer(True, result, text, is_repeated=done.is_repeated)


def _with_similar(call: Call, done: Done, answer: ToolAnswer) -> ToolAnswer:
    """Return the answer to a save with what else says something like it, where anything does."""
    found = duplicates.beside(done.memories[0], now=call.now)
    if not found:
        return answer
    named = [
        _("%(id)s “%(name)s”") % {"id": each.memory.pk, "name": one_line(each.memory.name)}
        for each in found
    ]
    text = ngettext(
        "Another memory says something like it: %s. If both are about one thing, update that one "
        "and delete this one.",
        "Other memories say something like it: %s. If one of them is about the same thing, update "
        "that one and delete this one.",
        len(found),
    ) % ", ".join(named)
    result = {**answer.result, "duplicates": [duplicate_json(each) for each in found]}
    return replace(answer, result=result, text=f"{answer.text}\n{text}")


def duplicate_json(duplicate: duplicates.Duplicate) -> dict[str, Any]:
    """Return what an answer tells of a duplicate."""
    return {
        "id": duplicate.memory.pk,
        "name": duplicate.memory.name,
        "likeness": round(duplicate.likeness, 2),
        "is_exact": duplicate.is_exact,
        "is_same": duplicate.is_same,
    }


def _recall(call: Call) -> ToolAnswer:
    values = _arguments(call.arguments, _RECALL_ARGUMENTS)
    query = values.get("query", "")
    if not isinstance(query, str) or not query.strip():
        raise InvalidMemory({"query": _("Say in words what you look for.")})
    kind = values.get("type")
    if kind is not None and kind not in MemoryType.values:
        raise InvalidMemory({"type": _("One of %s.") % ", ".join(MemoryType.values)})
    request = SearchRequest(
        query,
        limit=_whole_number(values.get("limit", 5), "limit", MAX_RECALLED),
        filter=MemoryFilter(types=(kind,) if kind else ()),
        min_score=least_score(call.agent),
    )
    found = recall(call.agent, call.user_id, request, now=call.now)
    text, shown = format_block(
        [hit.memory for hit in found.hits],
        call.agent.language,
        call.agent.memory_config.budget_tokens,
        with_ids=True,
    )
    degraded = list(found.degraded)
    if left := len(found.hits) - shown:
        degraded.append("budget")
        more = ngettext(
            "%d more was found and has no room here; ask more narrowly.",
            "%d more were found and have no room here; ask more narrowly.",
            left,
        )
        text = f"{text}\n{more % left}"
    result = {"mode": found.mode, "degraded": degraded, "abstained": found.abstained}
    if not shown:
        text = _("Nothing about this is remembered. Try other words, or ask the user.")
    return ToolAnswer(True, result, text, found.hits[:shown])


def _arguments(arguments: Any, known: set[str]) -> dict[str, Any]:
    """Return the arguments, which models also send as JSON in a string.

    Null is absent, and so is '' but for what must have words: models fill in what they
    have nothing to say to.
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise InvalidMemory({"arguments": _("This is not JSON.")}) from None
    if not isinstance(arguments, Mapping):
        raise InvalidMemory({"arguments": _("This must be an object.")})
    if unknown := [str(name) for name in arguments if name not in known]:
        problem = _("There is no such argument; there are %s.") % ", ".join(sorted(known))
        raise InvalidMemory(dict.fromkeys(unknown, problem))
    given = {
        name: value
        for name, value in arguments.items()
        if value is not None and (value != "" or name in _WORDS)
    }
    if isinstance(given.get("name"), str):
        given["name"] = " ".join(given["name"].split())  # as it will be read again
    return given


def _whole_number(value: Any, name: str, most: int) -> int:
    """Return a number from 1 to `most`; models also send it as text, or as 5.0."""
    if isinstance(value, str):
        value = whole_number(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidMemory({name: _("A whole number from 1 to %d.") % most})
    return value


def _save_definition() -> tuple[str, str, dict[str, Any]]:
    properties = {
        "action": {
            "type": "string",
            "enum": list(_ACTIONS),
            "description": _(
                "create: save something new; where the name exists, that memory is updated. "
                "update and delete: a memory by its id or its name."
            ),
        },
        "name": {
            "type": "string",
            "description": _("A short title that says what it is about, the same every time."),
        },
        "type": {
            "type": "string",
            "enum": list(MemoryType.values),
            "description": _(
                "user: who the user is and prefers; project: progress, decisions, constraints; "
                "feedback: how you should work; reference: links and documents."
            ),
        },
        "content": {
            "type": "string",
            "description": _("What to remember, complete enough to be understood by itself."),
        },
        "description": {
            "type": "string",
            "description": _("One line that helps to find it: when it will be needed."),
        },
        "id": {
            "type": "integer",
            "description": _("The memory's id, from memory_recall; for update and delete."),
        },
    }
    description = _(
        "Save, update or delete a long-term memory about this user. Never save passwords or keys."
    )
    return SAVE, description, _schema(properties, ["action"])


def _recall_definition() -> tuple[str, str, dict[str, Any]]:
    properties = {
        "query": {"type": "string", "description": _("What you look for, in telling words.")},
        "type": {
            "type": "string",
            "enum": list(MemoryType.values),
            "description": _("Only memories of this type."),
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_RECALLED,
            "description": _("How many memories at most; 5 if you do not say."),
        },
    }
    description = _("Look up what is remembered about this user from earlier conversations.")
    return RECALL, description, _schema(properties, ["query"])


def _schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
