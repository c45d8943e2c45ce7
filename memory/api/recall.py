"""Search and prefetch over HTTP."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from agents.endpoint import endpoint
from memory import serializers
from memory.api.base import AgentView
from memory.filters import MemoryFilter
from memory.retrieval.lexical import SearchRequest
from memory.serializers import hit_json, memory_json
from memory.services.context import prefetch
from memory.services.instructions import system_prompt
from memory.services.recall import due_reminders, least_score, recall

_TAGS = ("recall",)


class SearchView(AgentView):
    """Ranked memories for a query."""

    @endpoint(
        "search_memories", body=serializers.SearchBody,
        answers={200: serializers.SearchAnswer}, errors=(409,), tags=_TAGS,
    )  # fmt: skip
    def post(self, request: Request, agent: str, query: Any, body: dict[str, Any]) -> Response:
        """Return what fits a query, best first; each counts as recalled once more."""
        wanted = SearchRequest(
            body["query"],
            limit=body["limit"],
            offset=int(body["cursor"]),
            filter=MemoryFilter(
                types=(body["type"],) if "type" in body else (),
                kinds=(body["kind"],) if "kind" in body else (),
                tags=tuple(body.get("tags", ())),
                created_after=body.get("after"),
                created_before=body.get("before"),
            ),
            min_score=body.get("min_score", least_score(self.agent)),
        )
        found = recall(self.agent, body["user_id"], wanted, mode=body["mode"], now=timezone.now())
        results = [hit_json(hit, body["user_id"]) for hit in found.hits]
        return Response(
            {
                "results": results,
                "next": str(wanted.offset + wanted.limit) if found.has_more else None,
                "mode": found.mode,
                "degraded": found.degraded,
                "reranked": found.reranked,
                "abstained": found.abstained,
                "nearest": [hit_json(hit, body["user_id"]) for hit in found.nearest],
            }
        )


class PrefetchView(AgentView):
    """What goes into the prompt for a message."""

    @endpoint(
        "prefetch", body=serializers.PrefetchBody, answers={200: serializers.PrefetchAnswer},
        tags=_TAGS,
    )  # fmt: skip
    def post(self, request: Request, agent: str, query: Any, body: dict[str, Any]) -> Response:
        """Return the block for the user's message, and the prompt that it belongs in."""
        user_id, now = body["user_id"], timezone.now()
        found = prefetch(self.agent, user_id, body["message"], now=now)
        if not found.enabled:
            return Response({"enabled": False})
        return Response(
            {
                "enabled": True,
                "memory_context": found.block,
                "system_prompt": system_prompt(self.agent, found.block),
                "memories": [hit_json(hit, user_id) for hit in found.hits],
                "reminders": [
                    memory_json(memory, user_id)
                    for memory in due_reminders(self.agent, user_id, now=now)
                ],
                "tokens": {
                    "used": found.tokens,
                    "budget": self.agent.memory_config.budget_tokens,
                },
                "degraded": found.degraded,
                "abstained": found.abstained,
            }
        )
