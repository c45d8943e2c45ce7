"""The tools over HTTP: what to offer a model, and its calls."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from agents.endpoint import IDEMPOTENCY_KEY, endpoint
from memory import serializers, tools
from memory.api.base import AgentView, replayed, ticket_of
from memory.serializers import hit_json

_TAGS = ("tools",)


class ToolsView(AgentView):
    """The tool definitions."""

    @endpoint(
        "list_tools", query=serializers.ToolsQuery, answers={200: serializers.ToolsAnswer},
        tags=_TAGS,
    )  # fmt: skip
    def get(self, request: Request, agent: str, query: dict[str, Any]) -> Response:
        """Return the tools in the form of a provider's API, in the agent's language."""
        return Response({"tools": tools.definitions(self.agent, query["format"])})


class ToolView(AgentView):
    """One tool."""

    @endpoint(
        "call_tool", body=serializers.ToolBody, answers={200: serializers.ToolAnswerSerializer},
        errors=(422,), headers=(IDEMPOTENCY_KEY,), tags=_TAGS,
    )  # fmt: skip
    def post(
        self, request: Request, agent: str, tool: str, query: Any, body: dict[str, Any]
    ) -> Response:
        """Carry out a model's call. What the model did wrong is told in `text`, with ok=false."""
        if tool not in tools.NAMES:
            raise NotFound(f"There is no tool {tool}; there are {' and '.join(tools.NAMES)}.")
        user_id = body["user_id"]
        call = tools.Call(
            self.agent, user_id, body["arguments"], ticket_of(request), timezone.now()
        )
        answer = tools.call_tool(tool, call)
        result = dict(answer.result)
        if tool == tools.RECALL and answer.ok:
            result["memories"] = [hit_json(hit, user_id) for hit in answer.hits]
        return Response(
            {"ok": answer.ok, "result": result, "text": answer.text},
            headers=replayed(answer.is_repeated),
        )
