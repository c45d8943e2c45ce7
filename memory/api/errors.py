"""Every error in one shape: {"error": {"code", "message", "fields"?}}."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import DisallowedHost, PermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from agents.endpoint import ErrorAnswer
from agents.models import AgentNotErased
from memory import errors
from memory.views import faults

logger = logging.getLogger(__name__)

_STATUSES = {
    errors.InvalidMemory: 400,
    errors.UnknownMemory: 404,
    errors.UnknownJob: 404,
    errors.VersionConflict: 412,
    errors.IdempotencyConflict: 422,
}
_RETRY_SECONDS = 2


def explain(error: Exception, context: Any) -> Response | None:
    """Return the answer to an error, or None for a fault of ours, which is then raised."""
    if isinstance(error, errors.HippoError):
        status = 503 if error.is_servers_fault else _STATUSES.get(type(error), 409)
        fields = error.fields if isinstance(error, errors.InvalidMemory) else None
        message = "The request is not valid; `fields` says why." if fields else str(error)
        response = _answer(status, error.code, message, fields)
    elif isinstance(error, AgentNotErased):
        message = f"Nothing was deleted, the memories cannot be erased now. {error}"
        response = _answer(503, "not_erased", message)
    elif isinstance(error, OperationalError):
        logger.error("a database fails", exc_info=error)
        message = "A database does not answer; nothing was written. Try again shortly."
        response = _answer(503, "database_unavailable", message)
    elif isinstance(error, DjangoValidationError):
        fields = dict(_flatten(error.message_dict)) if hasattr(error, "error_dict") else None
        response = _answer(400, "invalid", "; ".join(error.messages), fields)
    elif isinstance(error, Http404):
        response = _answer(404, "not_found", str(error) or "There is no such thing.")
    elif isinstance(error, PermissionDenied):
        response = _answer(403, "forbidden", str(error) or "This is not allowed.")
    elif isinstance(error, exceptions.APIException):
        response = _explain_framework(error)
    else:
        return None
    if response.status_code == 503:
        response.headers["Retry-After"] = str(_RETRY_SECONDS)
    set_rollback()
    return response


def _explain_framework(error: exceptions.APIException) -> Response:
    headers = {}
    if scheme := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = scheme
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait) + 1)
    if isinstance(error, exceptions.ValidationError):
        if isinstance(error.detail, dict):
            fields = dict(_flatten(error.detail))
            return _answer(400, "invalid", "The request is not valid; `fields` says why.", fields)
        return _answer(400, "invalid", " ".join(map(str, error.detail)))
    response = _answer(error.status_code, _code(error), str(error.detail))
    for name, value in headers.items():
        response.headers[name] = value
    return response


def _code(error: exceptions.APIException) -> str:
    codes = error.get_codes()
    return {"parse_error": "malformed", "permission_denied": "forbidden"}.get(
        str(codes), str(codes)
    )


def _flatten(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, message) for every leaf: {"memories": {3: {"name": […]}}} → memories.3.name."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            yield from _flatten(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(detail, list) and any(isinstance(each, dict | list) for each in detail):
        for index, inner in enumerate(detail):
            yield from _flatten(inner, f"{path}.{index}")
    elif isinstance(detail, list):
        yield path, " ".join(map(str, detail))
    else:
        yield path, str(detail)


def _answer(status: int, code: str, message: str, fields: dict[str, str] | None = None) -> Response:
    error: dict[str, Any] = {"code": code, "message": message}
    if fields:
        error["fields"] = fields
    return Response(ErrorAnswer({"error": error}).data, status=status)


# --- outside of the API's views --------------------------------------------------------


@csrf_exempt  # a key needs no token, and a wrong address is told as one
def unknown_address(request: HttpRequest) -> JsonResponse:
    """Answer an address of the API that is none."""
    hint = "" if request.path.endswith("/") else " Addresses end in a slash."
    return _page(404, "not_found", f"There is nothing at {request.path}.{hint} See /api/docs/.")


def handle_400(request: HttpRequest, exception: Exception) -> Any:
    """Answer a request that Django itself refuses."""
    if not _is_api(request):
        return faults.show_400(request, exception)
    if isinstance(exception, DisallowedHost):
        message = "Hippo does not answer to this host name; the operator adds it to ALLOWED_HOSTS."
        return _page(400, "unknown_host", message)
    return _page(400, "malformed", "The request cannot be read.")


def handle_403(request: HttpRequest, exception: Exception) -> Any:
    """Answer what is not allowed."""
    if not _is_api(request):
        return faults.show(request, 403)
    return _page(403, "forbidden", "This is not allowed.")


def handle_404(request: HttpRequest, exception: Exception) -> Any:
    """Answer an unknown address."""
    return unknown_address(request) if _is_api(request) else faults.show(request, 404)


def handle_429(request: HttpRequest) -> Any:
    """Answer who tries to log in, or the like, too often; only people can."""
    return faults.show(request, 429)


def handle_500(request: HttpRequest) -> Any:
    """Answer where the fault is ours."""
    if not _is_api(request):
        return faults.show_500(request)
    return _page(500, "internal", "Hippo has a fault here; the server's log says more.")


def handle_csrf_failure(request: HttpRequest, reason: str = "") -> Any:
    """Answer a form without a valid token."""
    if not _is_api(request):
        return faults.show(request, 403, "403_csrf.html")
    return _page(403, "forbidden", f"The request has no valid CSRF token: {reason}")


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _page(status: int, code: str, message: str) -> JsonResponse:
    return JsonResponse({"error": {"code": code, "message": message}}, status=status)
