"""The settings of an agent's memory: each is saved on its own, and says so."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.models import Agent, AgentNotErased
from agents.preferences import PageRequest
from memory.services import configuring
from memory.views.agents.page import for_agent
from memory.views.agents.settings_page import SettingsForm, show


@require_http_methods(["GET", "POST"])
@for_agent
def settings(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show the settings, or save the one that `field` names."""
    if request.method == "GET":
        return show(request, agent)
    name = request.POST.get("field", "")
    if name not in SettingsForm.base_fields:
        raise Http404
    form = SettingsForm(agent, request.POST, only=name)
    if form.is_valid():
        try:
            configuring.change(agent, form.cleaned_data, actor=request.user, now=timezone.now())
        except ValidationError as error:
            form.add_error(name, error)
    status = 422 if form.errors else 200
    if request.htmx:
        context = {"agent": agent, "setting": form[name], "is_saved": not form.errors}
        return render(request, "memory/_said.html", context, status=status)
    if form.errors:
        return show(request, agent, refused=form, status=422)
    messages.success(request, _("Saved: %s") % form.fields[name].label)
    return redirect("agent-settings", agent.name)


@require_POST
@for_agent
def delete(request: PageRequest, agent: Agent) -> HttpResponse:
    """Delete an agent with all that it remembers, if its name was typed."""
    if request.POST.get("confirm", "") != agent.name:
        refused = _("That is not the agent's name; nothing was deleted.")
        return show(request, agent, delete_refused=refused, status=422)
    name = str(agent)
    try:
        count = configuring.delete(agent, actor=request.user, now=timezone.now())
    except AgentNotErased:
        refused = _("Nothing was deleted: a store takes no changes now; try again shortly.")
        return show(request, agent, delete_refused=refused, status=409)
    text = _("%(agent)s is deleted, and with it %(count)d memories.")
    messages.success(request, text % {"agent": name, "count": count})
    return redirect(reverse("agent-list"))
