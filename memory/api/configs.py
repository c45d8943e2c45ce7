"""Whether and where an agent remembers: the operators' door to its memory configuration."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api import OperatorView
from agents.endpoint import endpoint
from agents.models import Backend
from memory import serializers
from memory.databases import mysql_obstacle
from memory.serializers import config_json
from memory.services import configuring
from memory.services.moves.moving import change_store

_TAGS = ("operators",)


class MemoryConfigView(OperatorView):
    """The memory configuration of one agent."""

    @endpoint(
        "get_memory_config", answers={200: serializers.MemoryConfigSerializer}, errors=(403,),
        tags=_TAGS,
    )  # fmt: skip
    def get(self, request: Request, agent: str, query: Any) -> Response:
        """Return an agent's memory configuration."""
        return Response(config_json(self.find_agent(agent).memory_config))

    @endpoint(
        "change_memory_config", body=serializers.ConfigChanges,
        answers={200: serializers.MemoryConfigSerializer}, errors=(403, 409), tags=_TAGS,
        partial=True,
    )  # fmt: skip
    def patch(self, request: Request, agent: str, query: Any, body: dict[str, Any]) -> Response:
        """Change it. Another store for an agent that has memories is refused with the choices."""
        found = self.find_agent(agent)
        config = found.memory_config
        leave = body.pop("leave_memories", False)
        backend = body.pop("backend", config.backend)
        if "sqlite_path" in body and backend != Backend.SQLITE:
            raise ValidationError({"sqlite_path": "A file goes with the backend sqlite."})
        sqlite_path = body.pop("sqlite_path", config.sqlite_path)
        if backend == Backend.MYSQL and backend != config.backend and (why := mysql_obstacle()):
            raise ValidationError({"backend": why})
        if (backend, sqlite_path) != (config.backend, config.sqlite_path):
            change_store(
                found,
                backend=backend,
                sqlite_path=sqlite_path,
                leave=leave,
                actor=request.user,
                now=timezone.now(),
            )
        if body:
            configuring.change(found, body, actor=request.user, now=timezone.now())
        return Response(config_json(self.find_agent(agent).memory_config))
