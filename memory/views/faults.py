"""What people see when something goes wrong; programs get JSON instead."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import loader
from django.utils.translation import gettext as _

from agents import logs
from agents.preferences import theme_in_cookie
from memory.errors import BackendUnavailable, StoreNotOpen

logger = logging.getLogger(__name__)


def show(request: HttpRequest, status: int, template: str = "") -> HttpResponse:
    """Answer with the page of a status; a fragment gets a few words, not a page."""
    if _is_fragment(request):
        return _words(status)
    context = {"request_id": logs.request_id()}
    return render(request, template or f"{status}.html", context, status=status)


def show_400(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer a request that Django refuses, perhaps before anything of it could be read."""
    return _show_bare(request, 400, is_unknown_host=isinstance(error, DisallowedHost))


def show_500(request: HttpRequest) -> HttpResponse:
    """Answer where the fault is ours; asks no database, for that may be what fails."""
    return _words(500) if _is_fragment(request) else _show_bare(request, 500)


class StoreMiddleware:
    """Tells people when a store is shut or silent, so that they know what to do: wait."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request; what a view raises comes to `process_exception`."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the page of a store that takes no changes or gives no answer; None else."""
        is_busy = isinstance(error, StoreNotOpen)
        is_silent = isinstance(error, BackendUnavailable | OperationalError | InterfaceError)
        if request.path.startswith("/api/") or not (is_busy or is_silent):
            return None
        logger.warning("%s %s: %s", request.method, request.path, error)
        if _is_fragment(request):
            return _words(503)
        return _show_bare(request, 503, is_busy=is_busy)


def _is_fragment(request: HttpRequest) -> bool:
    # by the header: what failed may lie before the middleware that reads it
    return request.headers.get("HX-Request") == "true"


def _show_bare(request: HttpRequest, status: int, **context: object) -> HttpResponse:
    """Render without the request, so that no context processor runs."""
    page = loader.get_template(f"{status}.html")
    context |= {"theme": theme_in_cookie(request), "request_id": logs.request_id()}
    return HttpResponse(page.render(context), status=status)


def _words(status: int) -> HttpResponse:
    words = {
        403: _("This is not allowed, or the page is out of date; reload it."),
        404: _("There is nothing here."),
        429: _("Too many attempts; wait a minute."),
        503: _("The store is shut or silent for now; nothing was changed."),
        500: _("Hippo has a fault here; the server's log says more."),
    }
    return HttpResponse(words[status], status=status, content_type="text/plain; charset=utf-8")
