"""Going anywhere by a few letters: memories, agents, pages."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents.models import Agent
from agents.preferences import PageRequest
from memory.filters import MemoryFilter
from memory.forms import narrowed, typed
from memory.services import library

_MEMORIES = 8


class Place(NamedTuple):
    """Where one can go."""

    label: str
    address: str
    icon: str


@login_required
@require_GET
def palette(request: PageRequest) -> HttpResponse:
    """Show what a few letters lead to, grouped; everything there is to do without any."""
    query = request.GET.get("q", "").strip()[:500]
    shelves, _unreachable = library.reachable_shelves(request.user)
    wanted = query.casefold()
    agents = {
        shelf.agent.name: Place(
            str(shelf.agent), f"{reverse('home')}?{urlencode({'agent': shelf.agent.name})}", "robot"
        )
        for shelf in shelves
        if wanted in f"{shelf.agent} {shelf.agent.name}".casefold()
    }
    asked = typed(query)
    narrow = narrowed(MemoryFilter(), asked)
    found = library.seek(shelves, asked.text, narrow, limit=_MEMORIES, now=timezone.now())
    context = {
        "q": query,
        "entries": found.entries if query else [],
        "agents": [agents[name] for name in sorted(agents)][:_MEMORIES],
        "operated": _operated(wanted) if request.user.is_staff else [],
        "places": [place for place in _places(request) if wanted in place.label.casefold()],
    }
    template = "memory/search.html" + ("#results" if request.htmx else "")
    return render(request, template, context)


def _operated(wanted: str) -> list[Place]:
    """Return the agents that an operator may mean; none before there is a letter."""
    agents = Agent.objects.filter(memory_config__isnull=False) if wanted else []
    found = [each for each in agents if wanted in f"{each} {each.name}".casefold()]
    return [
        Place(str(agent), reverse("agent-overview", args=[agent.name]), "adjustments")
        for agent in found[:_MEMORIES]
    ]


def _places(request: PageRequest) -> list[Place]:
    places = [
        Place(_("Overview"), reverse("overview"), "home"),
        Place(_("Memories"), reverse("home"), "brain"),
        Place(_("New memory"), reverse("memory-new"), "plus"),
        Place(_("Trash"), reverse("memory-trash"), "trash"),
        Place(_("My data"), reverse("mine"), "list-check"),
        Place(_("Download everything"), reverse("download"), "download"),
        Place(_("Jobs"), reverse("job-list"), "progress"),
        Place(_("Import"), reverse("import"), "file-import"),
        Place(_("Export"), reverse("export"), "download"),
        Place(_("Preferences"), reverse("preferences"), "user"),
    ]
    if request.user.is_staff:
        places.append(Place(_("Agents"), reverse("agent-list"), "robot"))
        places.append(Place(_("Connect & keys"), reverse("keys"), "key"))
        places.append(Place(_("Users"), reverse("users"), "users"))
        places.append(Place(_("Audit"), reverse("audit"), "history"))
        places.append(Place(_("Playground"), reverse("playground"), "flask"))
        places.append(Place(_("API reference"), reverse("api-docs"), "file-text"))
    if request.user.is_superuser:
        places.append(Place(_("Plain admin"), reverse("admin:index"), "database"))
    return places
