"""Memories over HTTP: save, list, read, change, delete, restore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.endpoint import (
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    NoParameters,
    StrictSerializer,
    endpoint,
)
from memory import serializers
from memory.api.base import (
    AgentView,
    etag,
    expected_version,
    is_known,
    replayed,
    ticket_of,
)
from memory.drafts import MemoryDraft, parse_draft
from memory.errors import InvalidMemory
from memory.models import ActorKind, Memory
from memory.numbers import whole_number
from memory.serializers import memory_json, time_json, to_filter
from memory.serializers.fields import NumberField
from memory.services import duplicates, memories
from memory.services.idempotency import Done, once
from memory.services.recall import require_on
from memory.services.writing import Actor
from memory.tools import duplicate_json

_TAGS = ("memories",)
_POST_ERRORS = (409, 422)


class ReinforceBody(StrictSerializer):
    """By how much the importance changes."""

    delta = NumberField(min_value=-1, max_value=1)


class MemoriesBase(AgentView):
    """What the addresses of memories share."""

    @property
    def actor(self) -> Actor:
        """Return who the memory's history will name."""
        return Actor(ActorKind.AGENT, self.agent.name)

    def one(
        self,
        memory: Memory,
        user_id: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Return the answer that shows one memory."""
        headers = {"ETag": etag(memory.pk, memory.version), **(headers or {})}
        return Response(memory_json(memory, user_id), status=status, headers=headers)

    def write_once(
        self,
        user_id: str,
        write: Callable[[], Memory],
        *,
        now: datetime,
        create: bool = False,
        status: int = 200,
    ) -> tuple[Response, Memory]:
        """Carry out a write of one memory under the request's Idempotency-Key, and show it."""
        ticket = ticket_of(self.request)
        done = once(self.agent, user_id, ticket, lambda: Done([write()]), now=now, create=create)
        memory = done.memories[0]
        headers = replayed(done.is_repeated)
        return self.one(memory, user_id, status=status, headers=headers), memory


class MemoriesView(MemoriesBase):
    """The memories of one user."""

    @endpoint(
        "list_memories", query=serializers.ListQuery, answers={200: serializers.MemoryPage},
        tags=_TAGS,
    )  # fmt: skip
    def get(self, request: Request, agent: str, query: dict[str, Any]) -> Response:
        """List memories, newest first. Walking the cursors meets each of them once."""
        user_id = query["user_id"]
        page = memories.list_page(
            self.agent, user_id, to_filter(query), cursor=query["cursor"], limit=query["limit"]
        )
        results = [memory_json(memory, user_id) for memory in page.memories]
        return Response({"results": results, "next": page.next or None})

    @endpoint(
        "save_memory", body=serializers.NewMemory, answers={201: serializers.SavedMemory},
        errors=_POST_ERRORS, headers=(IDEMPOTENCY_KEY,), tags=_TAGS,
    )  # fmt: skip
    def post(self, request: Request, agent: str, query: Any, body: dict[str, Any]) -> Response:
        """Save a memory; it is found from the moment of the answer on.

        What says the same or the like already is told in `duplicates`, and left alone.
        """
        user_id, now = body["user_id"], timezone.now()
        require_on(self.agent, user_id)
        prepared = memories.prepare([body["draft"]], now=now)

        def write() -> Memory:
            return memories.store(self.agent, user_id, prepared)[0]

        answer, saved = self.write_once(user_id, write, now=now, create=True, status=201)
        if found := duplicates.beside(saved, now=now):
            answer.data["duplicates"] = [duplicate_json(each) for each in found]
        return answer

    @endpoint(
        "delete_memories", query=serializers.DeleteManyQuery, answers={200: serializers.Deleted},
        tags=_TAGS,
    )  # fmt: skip
    def delete(self, request: Request, agent: str, query: dict[str, Any]) -> Response:
        """Move every memory that meets the filter to the trash; without one, all of the user's.

        With `purge` they are erased with every trace, those in the trash too.
        """
        if query["purge"]:
            erased = memories.purge_matching(self.agent, query["user_id"], to_filter(query))
            return Response({"deleted": erased})
        deleted = memories.trash_matching(
            self.agent, query["user_id"], to_filter(query), actor=self.actor, now=timezone.now()
        )
        return Response({"deleted": deleted})


class BatchView(MemoriesBase):
    """Many memories in one request."""

    @endpoint(
        "save_memories", body=serializers.NewMemories, answers={200: serializers.BatchAnswer},
        errors=_POST_ERRORS, headers=(IDEMPOTENCY_KEY,), tags=_TAGS,
    )  # fmt: skip
    def post(self, request: Request, agent: str, query: Any, body: dict[str, Any]) -> Response:
        """Save all memories that are valid, in one transaction; say of the others why not."""
        user_id, now = body["user_id"], timezone.now()
        require_on(self.agent, user_id)
        drafts: dict[int, MemoryDraft] = {}
        results: list[dict[str, Any]] = []
        for index, data in enumerate(body["memories"]):
            try:
                drafts[index] = _parse_item(data)
                results.append({"index": index})
            except InvalidMemory as error:
                problem = {"code": error.code, "message": str(error), "fields": error.fields}
                results.append({"index": index, "error": problem})
        prepared = memories.prepare(list(drafts.values()), now=now)
        ticket = ticket_of(request)
        headers: dict[str, str] = {}
        if prepared:
            done = once(
                self.agent, user_id, ticket,
                lambda: Done(memories.store(self.agent, user_id, prepared)), now=now, create=True,
            )  # fmt: skip
            headers = replayed(done.is_repeated)
            for index, memory in zip(drafts, done.memories, strict=True):
                results[index]["memory"] = memory_json(memory, user_id)
        return Response({"saved": len(drafts), "results": results}, headers=headers)


def _parse_item(data: Any) -> MemoryDraft:
    if not isinstance(data, Mapping):
        raise InvalidMemory({"memory": "This must be an object."})
    return parse_draft(data)


class MemoryView(MemoriesBase):
    """One memory."""

    @endpoint(
        "get_memory", query=serializers.UserQuery,
        answers={200: serializers.MemorySerializer, 304: None}, headers=(IF_NONE_MATCH,),
        tags=_TAGS,
    )  # fmt: skip
    def get(self, request: Request, agent: str, memory_id: int, query: dict[str, Any]) -> Response:
        """Return a memory with its ETag."""
        memory = memories.get(self.agent, query["user_id"], memory_id)
        if is_known(request, memory.pk, memory.version):
            return Response(status=304, headers={"ETag": etag(memory.pk, memory.version)})
        return self.one(memory, query["user_id"])

    @endpoint(
        "change_memory", query=serializers.UserQuery, body=serializers.MemoryChanges,
        answers={200: serializers.MemorySerializer}, errors=(409, 412), headers=(IF_MATCH,),
        tags=_TAGS, partial=True,
    )  # fmt: skip
    def patch(
        self, request: Request, agent: str, memory_id: int, query: dict[str, Any], body: Any
    ) -> Response:
        """Change fields of a memory; each value replaces the old one whole, metadata too."""
        memory = memories.update(
            self.agent, query["user_id"], memory_id, body, actor=self.actor, now=timezone.now(),
            expected_version=expected_version(request, memory_id),
        )  # fmt: skip
        return self.one(memory, query["user_id"])

    @endpoint(
        "delete_memory", query=serializers.DeleteQuery, answers={204: None}, errors=(412,),
        headers=(IF_MATCH,), tags=_TAGS,
    )  # fmt: skip
    def delete(
        self, request: Request, agent: str, memory_id: int, query: dict[str, Any]
    ) -> Response:
        """Move a memory to the trash; with `purge` erase it, from the trash too."""
        user_id, version = query["user_id"], expected_version(request, memory_id)
        if query["purge"]:
            memories.purge(self.agent, user_id, memory_id, expected_version=version)
        else:
            memories.trash(
                self.agent, user_id, memory_id, actor=self.actor, now=timezone.now(),
                expected_version=version,
            )  # fmt: skip
        return Response(status=204)


class TouchView(MemoriesBase):
    """Note that a memory was used."""

    @endpoint(
        "touch_memory", query=serializers.UserQuery, body=NoParameters,
        answers={200: serializers.MemorySerializer}, errors=_POST_ERRORS,
        headers=(IDEMPOTENCY_KEY,), tags=_TAGS,
    )  # fmt: skip
    def post(
        self, request: Request, agent: str, memory_id: int, query: dict[str, Any], body: Any
    ) -> Response:
        """Count one more use; version and ETag stay. Recall and prefetch do so themselves."""
        user_id, now = query["user_id"], timezone.now()

        def write() -> Memory:
            memories.touch(self.agent, user_id, [memory_id], now=now)
            return memories.get(self.agent, user_id, memory_id)

        return self.write_once(user_id, write, now=now)[0]


class ReinforceView(MemoriesBase):
    """Make a memory more or less important."""

    @endpoint(
        "reinforce_memory", query=serializers.UserQuery, body=ReinforceBody,
        answers={200: serializers.MemorySerializer}, errors=_POST_ERRORS,
        headers=(IDEMPOTENCY_KEY,), tags=_TAGS,
    )  # fmt: skip
    def post(
        self, request: Request, agent: str, memory_id: int, query: dict[str, Any], body: Any
    ) -> Response:
        """Add `delta` to the importance, which stays within [0, 1]."""
        user_id, now = query["user_id"], timezone.now()

        def write() -> Memory:
            return memories.reinforce(
                self.agent, user_id, memory_id, body["delta"], actor=self.actor, now=now
            )

        return self.write_once(user_id, write, now=now)[0]


class RestoreView(MemoriesBase):
    """Take a memory out of the trash."""

    @endpoint(
        "restore_memory", query=serializers.UserQuery, body=NoParameters,
        answers={200: serializers.MemorySerializer}, errors=_POST_ERRORS,
        headers=(IDEMPOTENCY_KEY,), tags=_TAGS,
    )  # fmt: skip
    def post(
        self, request: Request, agent: str, memory_id: int, query: dict[str, Any], body: Any
    ) -> Response:
        """Take a memory out of the trash, with the status it had; elsewhere it stays as it is."""
        user_id, now = query["user_id"], timezone.now()

        def write() -> Memory:
            return memories.restore(self.agent, user_id, memory_id, actor=self.actor, now=now)

        return self.write_once(user_id, write, now=now)[0]


class HistoryView(MemoriesBase):
    """What a memory was."""

    @endpoint(
        "memory_history", query=serializers.HistoryQuery, answers={200: serializers.HistoryPage},
        tags=_TAGS,
    )  # fmt: skip
    def get(self, request: Request, agent: str, memory_id: int, query: dict[str, Any]) -> Response:
        """List a memory's earlier states, newest first, trashed or not."""
        cursor, limit = query["cursor"], query["limit"]
        before = whole_number(cursor, digits=9) if cursor else None
        if cursor and before is None:
            raise ValidationError({"cursor": "This is no cursor; begin again without one."})
        revisions = memories.history(
            self.agent, query["user_id"], memory_id,
            before_version=before, limit=limit + 1,
        )  # fmt: skip
        results = [
            {
                "version": each.version,
                "state": each.state,
                "actor_kind": each.actor_kind,
                "actor": each.actor,
                "reason": each.reason,
                "created_at": time_json(each.created_at),
            }
            for each in revisions[:limit]
        ]
        following = str(results[-1]["version"]) if len(revisions) > limit else None
        return Response({"results": results, "next": following})
