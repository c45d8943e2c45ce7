"""The agents: who they are, whether they remember, and the switch for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from agents.models import Agent
from agents.preferences import PageRequest
from agents.roles import for_operators
from agents.views import safe_next
from memory.numbers import whole_number
from memory.services import configuring
from memory.services.figures import activity as activities
from memory.services.figures import roster, sums
from memory.services.figures.roster import Entry
from memory.services.health import meaning
from memory.services.moves import placing
from memory.views.agents.page import for_agent, render_tab
from memory.views.dash import RANGES, Span, figures_context

AGENTS = 50
EVENTS = 30
_MOST_PAGES = 100
_WEEK = 7
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Row:
    """What the list says of an agent; recalls of the last seven days."""

    entry: Entry
    memories: int
    users: int
    recalls: int
    answered: float | None

    @property
    def agent(self) -> Agent:
        """Return the agent."""
        return self.entry.agent


ORDERS: dict[str, tuple[Any, Callable[[Row], Any]]] = {
    "name": (gettext_lazy("By name"), lambda row: ()),
    "recalls": (gettext_lazy("Most recalls first"), lambda row: -row.recalls),
    "memories": (gettext_lazy("Most memories first"), lambda row: -row.memories),
    "active": (
        gettext_lazy("Called last first"),
        lambda row: -(row.entry.last_call or _LONG_AGO).timestamp(),
    ),
    "quiet": (
        gettext_lazy("Longest not called first"),
        lambda row: (row.entry.last_call or _LONG_AGO).timestamp(),
    ),
}


@for_operators
@require_GET
def agent_list(request: PageRequest) -> HttpResponse:
    """Show agents with their figures, narrowed by name and in an order."""
    query, sort = request.GET.get("q", "").strip(), request.GET.get("sort", "")
    sort = sort if sort in ORDERS else "name"
    now = timezone.now()
    entries = [entry for entry in roster.entries(now=now) if _matches(entry.agent, query)]
    span = Span.until(now, _WEEK)
    agents = [entry.agent for entry in entries]
    found = sums.of_server(agents, first=span.first, today=span.today)
    rows = sorted((_row(entry, found, span) for entry in entries), key=ORDERS[sort][1])
    context = {
        "query": query,
        "sort": sort,
        "orders": [(name, label) for name, (label, _) in ORDERS.items()],
        "page": Paginator(rows, AGENTS).get_page(request.GET.get("page")),
        "silent": sorted(found.silent),
    }
    part = "#list" if request.htmx.target == "agents" else ""
    return render(request, f"memory/agents.html{part}", context)


@require_GET
@for_agent
def overview(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show how one agent does."""
    days = request.GET.get("days", "")
    asked = {"days": int(days) if days in map(str, RANGES) else RANGES[1]}
    span = Span.until(timezone.now(), asked["days"])
    found = sums.of_server([agent], first=span.earliest, today=span.today)
    context = {
        "asked": asked,
        "users": found.users[agent.pk],
        "formers": placing.former_stores(agent),
        "coverage": None if found.silent else meaning.coverage(agent),
        **figures_context(found, span),
    }
    template = "memory/agent_overview.html" + ("#dash" if request.htmx.target == "dash" else "")
    return render_tab(request, agent, template, **context)


@require_GET
@for_agent
def activity(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show what was done with an agent and by which keys it was called; no contents."""
    number = min(whole_number(request.GET.get("page", "")) or 1, _MOST_PAGES)
    events, has_more = activities.of_agent(agent, page=number, size=EVENTS)
    context: dict[str, Any] = {
        "events": events,
        "keys": agent.api_keys.order_by("-last_used_at", "-pk"),
        "number": number,
        "before": number - 1,
        "after": number + 1 if has_more and number < _MOST_PAGES else 0,
    }
    return render_tab(request, agent, "memory/agent_activity.html", **context)


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


def _matches(agent: Agent, query: str) -> bool:
    wanted = query.casefold()
    return wanted in agent.name.casefold() or wanted in agent.display_name.casefold()


def _row(entry: Entry, found: sums.Figures, span: Span) -> Row:
    agent_id = entry.agent.pk
    days = found.recent.get(agent_id, {})
    week = sums.total(day for each, day in days.items() if each >= span.first)
    return Row(
        entry,
        found.memories[agent_id],
        found.users[agent_id],
        week["recalls"],
        sums.share_answered(week),
    )
