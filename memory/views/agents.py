"""The agents: who they are, whether they remember, and the switch for that."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.models import Agent
from agents.preferences import PageRequest
from agents.roles import for_operators
from agents.views import safe_next
from memory.services import configuring
from memory.views.agent_page import for_agent, render_tab


@for_operators
@require_GET
def agent_list(request: PageRequest) -> HttpResponse:
    """Show all agents."""
    agents = Agent.objects.filter(memory_config__isnull=False).select_related("memory_config")
    return render(request, "memory/agents.html", {"agents": agents})


@require_GET
@for_agent
def overview(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show how one agent does."""
    return render_tab(request, agent, "memory/agent_overview.html")


@require_POST
@for_agent
def switch(request: PageRequest, agent: Agent) -> HttpResponse:
    """Switch an agent's memory on or off; a fragment is answered with the switch as it is now."""
    enabled = request.POST.get("enabled") == "true"
    configuring.change(agent, {"enabled": enabled}, actor=request.user, now=timezone.now())
    if request.htmx:
        return render(request, "memory/_switch.html", {"agent": agent, "is_saved": True})
    text = _("The memory of %s is on.") if enabled else _("The memory of %s is off.")
    messages.success(request, text % agent)
    return redirect(safe_next(request, reverse("agent-list")))
