"""A new agent: a name is enough."""

from __future__ import annotations

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.forms import FirstAgentForm
from agents.models import Backend
from agents.preferences import PageRequest
from agents.roles import for_operators
from memory.errors import BackendUnavailable
from memory.services import configuring
from memory.services.moves import trials


class NewAgentForm(FirstAgentForm):
    """Who the agent is, and where it remembers."""

    display_name = forms.CharField(
        label=gettext_lazy("Display name"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("What people read instead of the name; it may hold anything."),
    )
    field_order = ("name", "display_name", "language", "backend")


@for_operators
@require_http_methods(["GET", "POST"])
def new(request: PageRequest) -> HttpResponse:
    """Make an agent, and lead to where it is connected."""
    initial = {"backend": Backend.SQLITE, "language": get_language()}
    form = NewAgentForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            agent = configuring.create(**form.cleaned_data, actor=request.user, now=timezone.now())
        except BackendUnavailable as error:
            form.add_error("backend", str(error))
        except ValidationError as error:
            taken = any(each.code == "unique" for each in error.error_dict.get("name", ()))
            words = _("An agent with this name exists already.")
            form.add_error("name", words if taken else error.messages)
        else:
            return redirect("agent-connect", agent.name)
    context = {"form": form, "mysql_missing": trials.find_missing(Backend.MYSQL)}
    status = 422 if request.method == "POST" else 200
    return render(request, "memory/agent_new.html", context, status=status)
