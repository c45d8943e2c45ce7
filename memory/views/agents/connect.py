"""How to connect an agent: a key, calls that are ready to run, and whether one has come."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agents import keys
from agents.models import Agent, ApiKey, KeyState
from agents.preferences import PageRequest
from memory.views.agents.page import for_agent, render_tab
from memory.views.agents.snippets import Caller, snippets_for
from memory.views.key_list import KeyForm, list_context, narrowing_of

_PATIENCE = timedelta(minutes=1)
"""So long a first call may take before it is said what may be wrong."""
_WATCH_TIME = timedelta(minutes=30)


@never_cache
@require_http_methods(["GET", "POST"])
@for_agent
def connect(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show how to connect an agent, and create a key that is shown this once."""
    if request.method == "GET":
        return render_connect(request, agent, KeyForm.fresh())
    form = KeyForm(request.POST)
    issued, form, status = issue(request, form, agent, KeyForm.fresh)
    if request.htmx:
        return answer_issued(request, form, issued, {"tab": agent.name}, status)
    return render_connect(request, agent, form, issued, status=status)


def issue(
    request: PageRequest, form: Any, agent: Agent | None, fresh: Any
) -> tuple[keys.Issued | None, Any, int]:
    """Create the key that a form asks for; return it, the form to show next, and the status."""
    if not form.is_valid():
        return None, form, 422
    now = timezone.now()
    found = agent or Agent.objects.named(form.cleaned_data["agent"])
    try:
        issued = keys.create(found, form.wanted(now=now), actor=request.user, now=now)
    except keys.AlreadyIssued as error:
        form.renew()
        text = _(
            "This form was sent before and made the key %s, which cannot be shown again. "
            "If you have not copied it, rotate it in the list below."
        )
        form.add_error(None, text % error.key)
        return None, form, 409
    return issued, fresh(), 200


def render_connect(
    request: PageRequest,
    agent: Agent,
    form: KeyForm,
    issued: keys.Issued | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """Render the whole page, with a key that was just made where there is one."""
    now = timezone.now()
    narrowing = {**narrowing_of(request), "tab": agent.name}
    context = {
        **list_context(narrowing, now=now),
        **issued_context(request, agent, issued, now=now),
        "form": form,
    }
    return render_tab(request, agent, "memory/connect.html", status=status, **context)


def answer_issued(
    request: PageRequest,
    form: KeyForm | None,
    issued: keys.Issued | None,
    narrowing: dict[str, str],
    status: int,
) -> HttpResponse:
    """Answer a fragment: the form, and where a key was made the key and the list as it is now."""
    now = timezone.now()
    context: dict[str, Any] = {
        "form": form,
        "tab": narrowing.get("tab", ""),
        "narrowing": urlencode(narrowing),
    }
    if issued:
        context |= list_context(narrowing, now=now)
        context |= issued_context(request, issued[0].agent, issued, now=now)
        context["agent"] = issued[0].agent
    return render(request, "memory/_key_made.html", context, status=status)


def issued_context(
    request: PageRequest, agent: Agent, issued: keys.Issued | None, *, now: datetime
) -> dict[str, Any]:
    """Return the key that was just made, calls with it, and the last or the awaited call."""
    row, key = issued or (None, "")
    user_id = (row.user_id if row else "") or request.user.get_username()
    watched = row or _watched(agent, now)
    return {
        "issued": row,
        "key": key,
        "snippets": snippets_for(Caller(request, agent, user_id, key)),
        **(call_context(request, watched, now=now) if watched else {}),
    }


def _watched(agent: Agent, now: datetime) -> ApiKey | None:
    """Return the key whose call says most: the last that was used, else the newest live one."""
    own = ApiKey.objects.filter(agent=agent)
    found = own.latest_used() or own.live(now).order_by("-pk").first()
    if found:
        found.agent = agent  # the one with its configuration
    return found


def call_context(request: PageRequest, key: ApiKey, *, now: datetime) -> dict[str, Any]:
    """Return how far a key is from its first call; `stage` says whether to go on asking."""
    age = now - key.created_at
    if key.last_used_at:
        stage = "called"
    elif key.state(now) in {KeyState.REVOKED, KeyState.EXPIRED}:
        stage = "ended"
    else:
        stage = "waiting" if age < _PATIENCE else "checks" if age < _WATCH_TIME else "stopped"
    return {
        "watched": key,
        "stage": stage,
        "is_first": "seen" in request.GET,
        "is_asking": stage in {"waiting", "checks"},
        "health": request.build_absolute_uri("/healthz"),
    }
