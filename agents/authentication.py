"""Who calls the API: an agent by its key, or an operator by the session."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from agents.auth import KEY_PREFIX, find_key
from agents.models import ApiKey

logger = logging.getLogger(__name__)

_WINDOW_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of a request that came with a key; no account."""

    key: ApiKey
    is_authenticated: bool = True
    is_staff: bool = False


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer hippo_…`."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        """Return the caller and its key; None without an Authorization header.

        Raises AuthenticationFailed for anything in that header that is no live key.
        """
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer" or not text.startswith(KEY_PREFIX):
            raise AuthenticationFailed(
                f"Send the agent's key: Authorization: Bearer {KEY_PREFIX}…", "invalid_key"
            )
        key = find_key(text, now=timezone.now())
        if key is None:
            raise AuthenticationFailed(
                "This key is unknown, expired or revoked, or its agent is inactive; ask the "
                "operator for a new one.",
                "invalid_key",
            )
        return Caller(key), key

    def authenticate_header(self, request: Request) -> str:
        """Return what makes the answer a 401."""
        return "Bearer"


class HasKey(BasePermission):
    """Lets in who came with a key. A session, staff or not, reaches no memory."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return whether the request has a key."""
        return isinstance(request.auth, ApiKey)


class IsOperator(BasePermission):
    """Lets in operators: accounts that are staff, by their session."""

    message = "This is for operators: log in with a staff account; an agent's key does not do."

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return whether the request's session is an operator's."""
        return bool(request.user and request.user.is_staff)


class KeyThrottle(BaseThrottle):
    """At most API_RATE_PER_MINUTE requests of one key in each minute of the clock.

    The count is in the cache that all processes share. On Redis it is exact; in files,
    requests at the same moment may be counted as one. Without a cache nothing is limited.
    """

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count the request; return whether it is within the limit."""
        limit = settings.API_RATE_PER_MINUTE
        if not limit or not isinstance(request.auth, ApiKey):
            return True
        minute, self._second = divmod(timezone.now().timestamp(), _WINDOW_SECONDS)
        name = f"api-rate:{request.auth.pk}:{int(minute)}"
        try:
            cache.add(name, 0, timeout=2 * _WINDOW_SECONDS)
            return cache.incr(name) <= limit
        except ValueError:  # the cache dropped it between the two
            return True
        except Exception as error:  # noqa: BLE001  # each cache has errors of its own
            logger.warning("rate limits are not counted: %s", type(error).__name__)
            return True

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return _WINDOW_SECONDS - self._second


class KeyScheme(OpenApiAuthenticationExtension):
    """How the OpenAPI schema names the key."""

    target_class = "agents.authentication.KeyAuthentication"
    name = "agentKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme's definition."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": f"{KEY_PREFIX}…"}
