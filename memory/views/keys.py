"""The keys of all agents: who has which, whether they are used, and what can be done."""

from __future__ import annotations

from datetime import timedelta
from functools import partial, wraps
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import reswap, retarget

from agents import keys
from agents.models import ApiKey
from agents.preferences import PageRequest
from agents.roles import View, for_operators
from memory.numbers import whole_number
from memory.views.agents.connect import (
    answer_issued,
    call_context,
    issue,
    issued_context,
    render_connect,
)
from memory.views.answers import toasted
from memory.views.key_list import (
    OVERLAPS,
    AnyAgentKeyForm,
    KeyForm,
    agent_choices,
    list_context,
    narrowing_of,
    page_address,
)


def for_key(view: View) -> View:
    """Let operators in and hand the view the key that the address names; 404 for none."""

    @never_cache
    @for_operators
    @wraps(view)
    def found(request: PageRequest, key_id: int, *args: Any, **kwargs: Any) -> HttpResponse:
        key = ApiKey.objects.select_related("agent__memory_config").filter(pk=key_id).first()
        if key is None:
            raise Http404
        return view(request, key, *args, **kwargs)

    return found


@never_cache
@for_operators
@require_http_methods(["GET", "POST"])
def key_list(request: PageRequest) -> HttpResponse:
    """Show the keys of all agents, and create one that is shown this once."""
    narrowing = narrowing_of(request)
    if request.method == "GET" and request.htmx:
        return _render_list(request)
    agents = agent_choices()
    fresh = partial(AnyAgentKeyForm.fresh, agents=agents)
    issued, form, status = None, fresh(), 200
    if request.method == "POST":
        issued, form, status = issue(
            request, AnyAgentKeyForm(request.POST, agents=agents), None, fresh
        )
        if request.htmx:
            return answer_issued(request, form, issued, narrowing, status)
    now = timezone.now()
    context = {**list_context(narrowing, now=now), "form": form, "agents": agents}
    if issued:
        context |= issued_context(request, issued[0].agent, issued, now=now)
        context["agent"] = issued[0].agent
    return render(request, "memory/keys.html", context, status=status)


@require_POST
@for_key
def rotate(request: PageRequest, key: ApiKey) -> HttpResponse:
    """Make a key in place of another, which works on for as long as was chosen."""
    seconds = whole_number(request.POST.get("overlap", ""))
    if seconds is None or seconds not in OVERLAPS:
        raise Http404  # no button of ours sends it
    overlap = timedelta(seconds=seconds)
    try:
        issued = keys.rotate(key, overlap=overlap, actor=request.user, now=timezone.now())
    except keys.NotRotatable as error:
        return _answer(request, str(error), changed=key.pk)
    if request.htmx:
        return answer_issued(request, None, issued, narrowing_of(request), 200)
    return render_connect(request, key.agent, KeyForm.fresh(), issued)


@require_POST
@for_key
def revoke(request: PageRequest, key: ApiKey) -> HttpResponse:
    """Let a key open nothing from now on; for a short while that can be undone."""
    if not keys.revoke(key, actor=request.user, now=timezone.now()):
        return _answer(request, _("The key %s was revoked already.") % key, changed=key.pk)
    undo = f"{reverse('key-restore', args=[key.pk])}?{urlencode(narrowing_of(request))}"
    return _answer(request, _("The key %s is revoked.") % key, undo=undo, changed=key.pk)


@require_POST
@for_key
def restore(request: PageRequest, key: ApiKey) -> HttpResponse:
    """Take back that a key was just revoked."""
    if keys.restore(key, actor=request.user, now=timezone.now()):
        return _answer(request, _("The key %s works again.") % key, changed=key.pk)
    text = _("The key %s stays revoked: the time to undo that is over. Create a new one.")
    return _answer(request, text % key, changed=key.pk)


@require_GET
@for_key
def first_call(request: PageRequest, key: ApiKey) -> HttpResponse:
    """Tell whether a key's first call has come; 204 while that is what the page shows."""
    if not request.htmx:
        return redirect("agent-connect", key.agent.name)
    context = call_context(request, key, now=timezone.now())
    if request.GET.get("seen") == context["stage"]:
        return HttpResponse(status=204)
    return render(request, "memory/_first_call.html", context)


def _answer(request: PageRequest, text: str, *, undo: str = "", changed: int) -> HttpResponse:
    """Show the list as it is now, with a word on what was done."""
    if request.htmx:
        response = _render_list(request, changed)
        # a rotation that is refused leaves the place of the new key alone
        return reswap(retarget(toasted(response, text, undo), "#list"), "outerHTML")
    messages.success(request, text, extra_tags=undo)
    return redirect(page_address(narrowing_of(request)))


def _render_list(request: PageRequest, changed: int | None = None) -> HttpResponse:
    context = list_context(narrowing_of(request), now=timezone.now(), changed=changed)
    return render(request, "memory/_key_list.html", context)
