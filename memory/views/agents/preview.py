"""A message tried on what an agent remembers, and the reason for trying it on somebody else's."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from agents import audit
from agents.models import Agent
from agents.preferences import PageRequest
from agents.roles import VIEW_CONTENT
from memory.services import people, trying
from memory.views.agents.page import for_agent
from memory.views.agents.preview_panel import SubjectForm, TryForm, panel
from memory.views.agents.settings_page import show


@require_POST
@for_agent
@never_cache
def preview(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show what would be injected for the message that was posted; nothing counts as recalled."""
    shown = panel(request, agent, TryForm(request.POST))
    if request.htmx:
        context = {"agent": agent, "preview": shown}
        return render(request, "memory/_preview.html", context)
    return show(request, agent, preview=shown)


@require_POST
@for_agent
@never_cache
def give_reason(request: PageRequest, agent: Agent) -> HttpResponse:
    """Let a reader try messages on somebody else's memories for a while, by a recorded reason."""
    if not request.user.has_perm(VIEW_CONTENT):
        raise PermissionDenied
    form = SubjectForm(request.POST)
    if form.is_valid() and not people.is_known(agent, form.cleaned_data["user_id"]):
        form.add_error("user_id", _("The agent remembers nothing of a user of this ID."))
    if not form.is_valid():
        shown = panel(request, agent) | {"reason": form}
        return show(request, agent, preview=shown, status=422)
    user_id = form.cleaned_data["user_id"]
    if not audit.owns(request.user, agent, user_id):
        # committed before anything is shown: no look without a record
        reason = form.cleaned_data["reason"]
        trying.note_trial(request.user, agent, user_id, reason=reason, now=timezone.now())
    return redirect(f"{reverse('agent-settings', args=[agent.name])}#preview")
