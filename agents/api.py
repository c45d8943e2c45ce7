"""The API of operators: agents and their keys."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn

from django.db import IntegrityError
from django.utils import timezone
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import (
    APIException,
    NotFound,
    PermissionDenied,
    ValidationError,
)
from rest_framework.request import Request
from rest_framework.response import Response

from agents import keys
from agents.authentication import IsOperator
from agents.endpoint import ApiView, endpoint
from agents.keys import NewKey
from agents.models import Agent, ApiKey, Backend
from agents.serializers import (
    AgentPage,
    AgentSerializer,
    IssuedKey,
    KeyPage,
    KeySerializer,
    PageQuery,
    RotateBody,
)

_TAGS = ("operators",)
_ERRORS = (403,)
_KEY_PLACE = re.compile(r"[0-9]{1,18}")


class OperatorView(ApiView):
    """What operators reach by their session; no memory content is behind it."""

    authentication_classes = [SessionAuthentication]
    permission_classes = [IsOperator]

    def permission_denied(
        self, request: Request, message: Any = None, code: Any = None
    ) -> NoReturn:
        """Raise PermissionDenied: there is no header that would do instead of a session."""
        raise PermissionDenied(IsOperator.message)

    def find_agent(self, name: str) -> Agent:
        """Return the agent called `name`. Raises NotFound."""
        try:
            return Agent.objects.named(name)
        except Agent.DoesNotExist:
            raise NotFound(f"There is no agent {name}; list the agents to see them.") from None


class AgentsView(OperatorView):
    """All agents."""

    @endpoint("list_agents", query=PageQuery, answers={200: AgentPage}, errors=_ERRORS, tags=_TAGS)
    def get(self, request: Request, query: dict[str, Any]) -> Response:
        """List agents by name."""
        agents = Agent.objects.filter(name__gt=read_cursor(query["cursor"]))
        rows = list(agents.order_by("name")[: query["limit"] + 1])
        shown = rows[: query["limit"]]
        following = make_cursor(shown[-1].name) if len(rows) > len(shown) else None
        return Response({"results": AgentSerializer(shown, many=True).data, "next": following})

    @endpoint(
        "create_agent", body=AgentSerializer, answers={201: AgentSerializer}, errors=_ERRORS,
        tags=_TAGS,
    )  # fmt: skip
    def post(self, request: Request, query: Any, body: dict[str, Any]) -> Response:
        """Create an agent, with memory on in local SQLite; `memory-config` changes that."""
        with _name_taken_meanwhile():
            agent = Agent.objects.create_agent(backend=Backend.SQLITE, **body)
        return Response(AgentSerializer(agent).data, status=201)


class AgentDetailView(OperatorView):
    """One agent."""

    @endpoint("get_agent", answers={200: AgentSerializer}, errors=_ERRORS, tags=_TAGS)
    def get(self, request: Request, agent: str, query: Any) -> Response:
        """Return an agent."""
        return Response(AgentSerializer(self.find_agent(agent)).data)

    @endpoint(
        "change_agent", body=AgentSerializer, answers={200: AgentSerializer}, errors=_ERRORS,
        tags=_TAGS, partial=True,
    )  # fmt: skip
    def patch(self, request: Request, agent: str, query: Any, body: dict[str, Any]) -> Response:
        """Change an agent; a new name changes its addresses, its keys go on working."""
        found = self.find_agent(agent)
        for name, value in body.items():
            setattr(found, name, value)
        found.full_clean()
        with _name_taken_meanwhile():
            found.save(update_fields=list(body))
        return Response(AgentSerializer(found).data)

    @endpoint("delete_agent", answers={204: None}, errors=_ERRORS, tags=_TAGS)
    def delete(self, request: Request, agent: str, query: Any) -> Response:
        """Delete an agent, its keys, and everything that it remembers of anybody."""
        self.find_agent(agent).delete()
        return Response(status=204)


class KeysView(OperatorView):
    """The keys of one agent."""

    @endpoint("list_keys", query=PageQuery, answers={200: KeyPage}, errors=_ERRORS, tags=_TAGS)
    def get(self, request: Request, agent: str, query: dict[str, Any]) -> Response:
        """List an agent's keys, newest first; the keys themselves are kept nowhere."""
        found = ApiKey.objects.filter(agent=self.find_agent(agent))
        if before := read_cursor(query["cursor"]):
            if not _KEY_PLACE.fullmatch(before):
                raise _no_cursor()
            found = found.filter(pk__lt=int(before))
        rows = list(found.order_by("-pk")[: query["limit"] + 1])
        shown = rows[: query["limit"]]
        following = make_cursor(str(shown[-1].pk)) if len(rows) > len(shown) else None
        return Response({"results": KeySerializer(shown, many=True).data, "next": following})

    @endpoint(
        "create_key", body=KeySerializer, answers={201: IssuedKey}, errors=_ERRORS, tags=_TAGS
    )
    def post(self, request: Request, agent: str, query: Any, body: dict[str, Any]) -> Response:
        """Create a key; the answer shows it this once."""
        found, now = self.find_agent(agent), timezone.now()
        return _shown(keys.create(found, NewKey(**body), actor=request.user, now=now))


class KeyView(OperatorView):
    """Addresses of one key."""

    def find_key(self, agent: str, key_id: int) -> ApiKey:
        """Return a key of an agent. Raises NotFound."""
        found = ApiKey.objects.filter(agent=self.find_agent(agent), pk=key_id)
        if key := found.select_related("agent").first():
            return key
        raise NotFound(f"Agent {agent} has no key {key_id}; list its keys to see them.")


class KeyDetailView(KeyView):
    """One key of an agent."""

    @endpoint("revoke_key", answers={204: None}, errors=_ERRORS, tags=_TAGS)
    def delete(self, request: Request, agent: str, key_id: int, query: Any) -> Response:
        """Revoke a key: from now on it opens nothing. Safe to repeat."""
        keys.revoke(self.find_key(agent, key_id), actor=request.user, now=timezone.now())
        return Response(status=204)


class RotateView(KeyView):
    """A key in place of another."""

    @endpoint(
        "rotate_key", body=RotateBody, answers={201: IssuedKey}, errors=(*_ERRORS, 409),
        tags=_TAGS,
    )  # fmt: skip
    def post(
        self, request: Request, agent: str, key_id: int, query: Any, body: dict[str, Any]
    ) -> Response:
        """Create a key in place of this one, which works on for a while; shown this once."""
        overlap = timedelta(seconds=body["overlap_seconds"])
        key = self.find_key(agent, key_id)
        try:
            issued = keys.rotate(key, overlap=overlap, actor=request.user, now=timezone.now())
        except keys.NotRotatable as error:
            raise KeyNotLive(str(error)) from error
        return _shown(issued)


class KeyNotLive(APIException):
    """The key is revoked, expired or replaced."""

    status_code = 409
    default_code = "key_not_live"


def _shown(issued: keys.Issued) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(IssuedKey(issued).data, status=201, headers=headers)


@contextmanager
def _name_taken_meanwhile() -> Iterator[None]:
    """Raise ValidationError where another request was quicker with an agent's name."""
    try:
        yield
    except IntegrityError:
        raise ValidationError({"name": "An agent with this name exists already."}) from None


def make_cursor(place: str) -> str:
    """Return where a list goes on, as text that is safe in a URL."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    """Return the place that `make_cursor` wrote. Raises ValidationError for anything else."""
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (ValueError, binascii.Error):
        raise _no_cursor() from None


def _no_cursor() -> ValidationError:
    return ValidationError({"cursor": "This is no cursor of a list; begin again without one."})
