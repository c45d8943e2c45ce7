"""What every page about one agent shares: the agent itself, its head and its tabs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render

from agents.models import Agent
from agents.preferences import PageRequest
from agents.roles import for_operators


def for_agent(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Let operators in and hand the view the agent that the address names; 404 for none."""

    @for_operators
    @wraps(view)
    def found(request: PageRequest, agent: str, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            named = Agent.objects.named(agent)
        except Agent.DoesNotExist as error:
            raise Http404 from error
        return view(request, named, *args, **kwargs)

    return found


def render_tab(
    request: PageRequest, agent: Agent, template: str, *, status: int = 200, **context: Any
) -> HttpResponse:
    """Render a tab: a template that extends `memory/agent.html`."""
    return render(request, template, {"agent": agent, **context}, status=status)
