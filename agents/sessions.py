"""What becomes of a page that outlives its session."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django_htmx.http import HttpResponseClientRedirect

from agents.preferences import PageRequest


class ExpiredSessionMiddleware:
    """Sends the whole page to the login, and back to where it was, when htmx asks in vain.

    htmx would follow a redirect and put the login into the fragment that it asked for.
    """

    def __init__(self, get_response: Callable[[PageRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: PageRequest) -> HttpResponse:
        """Answer; a fragment's redirect to the login becomes one of the page."""
        response = self._get_response(request)
        if request.htmx and _leads_to_login(response):
            return HttpResponseClientRedirect(redirect_to_login(_page_of(request)).url)
        return response


def _leads_to_login(response: HttpResponse) -> bool:
    login = resolve_url(settings.LOGIN_URL)
    return isinstance(response, HttpResponseRedirect) and urlsplit(response.url).path == login


def _page_of(request: PageRequest) -> str:
    """Return the address, without the host, of the page that sent a fragment's request."""
    page = urlsplit(request.htmx.current_url or "")
    # the scheme is not compared: behind a proxy ours is http
    if page.netloc != request.get_host():
        return resolve_url(settings.LOGIN_REDIRECT_URL)
    return urlunsplit(("", "", page.path, page.query, ""))
