"""Every request has an id and leaves one line in the log."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from agents import logs

HEADER = "X-Request-ID"
_SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
_STATIC, _UNKNOWN = "/static/", "-"
_ASKED_BY_MACHINES = {_STATIC, "/healthz", "/readyz", "/metrics"}
"""What is asked for so often that its lines, while all is well, are for LOG_LEVEL=DEBUG."""

logger = logging.getLogger(__name__)


class RequestLogMiddleware:
    """Names each request, in its log lines and to the caller, and logs it once it is answered.

    What is streamed afterwards is logged without the id.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, with the id in a header."""
        request_id = _given_id(request) or secrets.token_hex(8)
        began = time.perf_counter()
        with logs.bound(request=request_id):
            response = self._get_response(request)
            _note(request, response, time.perf_counter() - began)
        response.headers[HEADER] = request_id
        return response


def _given_id(request: HttpRequest) -> str:
    """Return the id that a proxy of ours gave the request, if it is one; '' else."""
    given = request.headers.get(HEADER, "")
    is_trusted = settings.ALLAUTH_TRUSTED_PROXY_COUNT > 0
    return given if is_trusted and _SANE.fullmatch(given) else ""


def _note(request: HttpRequest, response: HttpResponse, seconds: float) -> None:
    route, status, ms = _route(request), response.status_code, round(seconds * 1000, 1)
    caller = _caller(request)
    level = logging.INFO
    if status >= 500:
        level = logging.WARNING
    elif route in _ASKED_BY_MACHINES:
        level = logging.DEBUG
    said = " ".join(caller.values()) or _UNKNOWN
    fields = {"method": request.method, "route": route, "status": status, "ms": ms, **caller}
    words = (request.method, route, status, ms, said)
    logger.log(level, "%s %s %d %.1f ms %s", *words, extra={"fields": fields})


def _route(request: HttpRequest) -> str:
    """Return the pattern of the address: what stands in its place may be somebody's words."""
    if request.resolver_match:
        return "/" + request.resolver_match.route.lstrip("^")
    return _STATIC if request.path.startswith(settings.STATIC_URL) else _UNKNOWN


def _caller(request: HttpRequest) -> dict[str, str]:
    """Return the agent or the account, where the view asked who it is; costs no query."""
    user = request.__dict__.get("user")
    if isinstance(user, SimpleLazyObject):
        user = getattr(request, "_cached_user", None)
    if key := getattr(user, "key", None):
        return {"agent": key.agent.name}
    if user is not None and user.is_authenticated:
        return {"account": user.get_username()}
    return {}
