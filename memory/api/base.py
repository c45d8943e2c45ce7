"""What every address of an agent's memories shares: its key, its user, its conditions."""

from __future__ import annotations

import json
import re
from typing import Any

from rest_framework.exceptions import NotFound, ParseError, ValidationError
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from agents.authentication import HasKey, KeyAuthentication, KeyThrottle
from agents.endpoint import ApiView, is_repeated
from agents.models import Agent, ApiKey
from memory.services.idempotency import Ticket, fingerprint

_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]{1,255}")
_ETAG = re.compile(r'"(\d{1,16})-(\d{1,10})"')


class AgentView(ApiView):
    """Reached by an agent's own key; the agent is the key's, and the address must name it."""

    authentication_classes = [KeyAuthentication]
    permission_classes = [HasKey]
    throttle_classes = [KeyThrottle]
    key: ApiKey
    agent: Agent

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the credential, then that the address is its agent's. Raises NotFound."""
        super().initial(request, *args, **kwargs)
        assert isinstance(request.auth, ApiKey)  # noqa: S101  # HasKey saw to it
        self.key = request.auth
        self.agent = self.key.agent
        if kwargs["agent"] != self.agent.name:
            raise NotFound(
                f"There is no agent {kwargs['agent']} for this key; it is {self.agent.name}'s."
            )

    def arrange(
        self, query: Any, body: Any, query_of: type[Serializer[Any]], body_of: Any
    ) -> tuple[Any, Any]:
        """Return query and body with `user_id` where it belongs, checked against the key.

        It may be given in either. Raises NotFound for a user that the key is not bound to.
        """
        given = [each["user_id"] for each in (query, body) if each and "user_id" in each]
        if is_repeated(query, "user_id") or any(each != given[0] for each in given[1:]):
            raise ValidationError({"user_id": "Give this once."})
        if not given:
            return query, body
        bound = self.key.user_id
        if bound and given[0] != bound:
            raise NotFound("There is no such user for this key; it is bound to another.")
        if body is not None:
            body = {name: value for name, value in body.items() if name != "user_id"}
        query = query.copy()
        query.pop("user_id", None)
        if body_of is not None and "user_id" in body_of().fields:
            return query, {**body, "user_id": given[0]}
        if not isinstance(given[0], str):
            raise ValidationError({"user_id": "This must be text."})
        query["user_id"] = given[0]
        return query, body


def ticket_of(request: Request) -> Ticket | None:
    """Return the request's Idempotency-Key with its fingerprint, or None.

    Raises ValidationError for a malformed key.
    """
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not _VISIBLE_ASCII.fullmatch(key):
        raise ValidationError(
            {"Idempotency-Key": "1 to 255 visible ASCII characters, without blanks."}
        )
    body = json.dumps(request.data, sort_keys=True).encode()
    return Ticket(
        key, fingerprint(request.path.encode(), request.META["QUERY_STRING"].encode(), body)
    )


def replayed(is_repeated: bool) -> dict[str, str]:
    """Return the header that marks the repetition of an answer."""
    return {"Idempotency-Replayed": "true"} if is_repeated else {}


def etag(memory_id: int, version: int) -> str:
    """Return the ETag of a memory's version; a recall does not change it."""
    return f'"{memory_id}-{version}"'


def is_known(request: Request, memory_id: int, version: int) -> bool:
    """Return whether If-None-Match names this version; a proxy that zips makes ETags weak."""
    known = [each.strip() for each in request.headers.get("If-None-Match", "").split(",")]
    return known == ["*"] or etag(memory_id, version) in {each.removeprefix("W/") for each in known}


def expected_version(request: Request, memory_id: int) -> int | None:
    """Return the version that If-Match demands; 0, which none has, for another memory's.

    None where any will do. An ETag that a proxy made weak by zipping still names a version,
    so it counts, other than RFC 9110 has it. Raises ParseError for what is no ETag of ours.
    """
    header = request.headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    match = _ETAG.fullmatch(header.removeprefix("W/"))
    if match is None:
        raise ParseError('If-Match takes one ETag, as it came: If-Match: "123-4".')
    return int(match[2]) if int(match[1]) == memory_id else 0
