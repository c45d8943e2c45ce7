"""Who may open which page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.http.response import HttpResponseBase

from agents.preferences import PageRequest

View = Callable[..., HttpResponse]

VIEW_CONTENT = "agents.view_content"
"""The permission to read what agents remember of others."""


def for_operators(view: Callable[..., HttpResponseBase]) -> View:
    """Let in operators: accounts that are staff."""

    @login_required
    @wraps(view)
    def guarded(request: PageRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_staff:
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return guarded  # type: ignore[return-value]  # a stream is no HttpResponse, and serves as one
