"""The first run: nobody has an account yet, so everything leads to the setup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpResponse
from django.shortcuts import redirect

_LEFT_ALONE = ("/api/", "/static/", "/healthz", "/readyz", "/metrics", "/look/", "/setup/")


def has_accounts() -> bool:
    """Return whether anybody has an account; one query."""
    return get_user_model().objects.exists()


class FirstRunMiddleware:
    """Leads people to the setup as long as nobody has an account.

    That somebody has one is remembered: it then costs no query any more.
    """

    def __init__(self, get_response: Callable[[Any], HttpResponse]) -> None:
        self._get_response = get_response
        self._is_over = False

    def __call__(self, request: Any) -> HttpResponse:
        """Answer, or lead to the setup."""
        if not self._is_over and not request.path.startswith(_LEFT_ALONE):
            self._is_over = request.user.is_authenticated or has_accounts()
            if not self._is_over:
                return redirect("setup")
        return self._get_response(request)
