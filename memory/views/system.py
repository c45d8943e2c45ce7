"""How Hippo is: a page for operators, figures for Prometheus."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.preferences import PageRequest
from agents.roles import for_operators
from memory.services.health import background, machine, metrics, survey


@for_operators
@require_GET
@never_cache
def page(request: PageRequest) -> HttpResponse:
    """Show how every part is, with reason and mend; asked for again every ten seconds."""
    context = {
        "report": survey.look(now=timezone.now()),
        "broker": {"kind": background.broker_kind(), "address": background.broker_address()},
        "cache_address": survey.cache_address(),
        "versions": machine.versions(),
    }
    template = "memory/_system.html" if request.htmx else "memory/system.html"
    return render(request, template, context)


@require_GET
@never_cache
def figures(request: HttpRequest) -> HttpResponse:
    """Answer Prometheus, which sends METRICS_TOKEN, or an operator who is logged in.

    Without that setting the address is there for operators alone; nobody else is told of it.
    """
    token = settings.METRICS_TOKEN
    if not (_has_token(request, token) or request.user.is_staff):
        if not token:
            raise Http404
        words = "Send METRICS_TOKEN: Authorization: Bearer …\n"
        headers = {"WWW-Authenticate": "Bearer", "Content-Type": "text/plain; charset=utf-8"}
        return HttpResponse(words, status=401, headers=headers)
    report = survey.look(now=timezone.now(), has_counts=True)
    return HttpResponse(metrics.render(report), content_type=metrics.CONTENT_TYPE)


def _has_token(request: HttpRequest, token: str) -> bool:
    given = request.headers.get("Authorization", "").encode()
    return bool(token) and secrets.compare_digest(given, f"Bearer {token}".encode())
