"""A person writes a memory."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from agents.models import Agent, Identity
from agents.preferences import PageRequest
from memory.drafts import MAX_NAME_CHARS, parse_draft
from memory.errors import InvalidMemory
from memory.forms import TYPE_LABELS, checked_content
from memory.services import memories
from memory.services.naming import infer_type


class NewMemoryForm(forms.Form):
    """A new memory; name and type are made from the text where they are left out."""

    place = forms.ChoiceField(label=gettext_lazy("For which agent"))
    content = forms.CharField(
        label=gettext_lazy("Content"), widget=forms.Textarea(attrs={"rows": 6})
    )
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_NAME_CHARS,
        required=False,
        help_text=gettext_lazy("Left out, it is made from the text."),
    )
    type = forms.ChoiceField(
        label=gettext_lazy("Type"),
        required=False,
        choices=[("", gettext_lazy("by the text")), *TYPE_LABELS.items()],
    )

    def clean_content(self) -> str:
        """Return the text, if it can be kept."""
        return checked_content(self.cleaned_data["content"])

    def __init__(self, places: list[tuple[Agent, str]], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.places = {f"{agent.pk}:{user_id}": (agent, user_id) for agent, user_id in places}
        users = {user_id for _, user_id in places}
        self.fields["place"].choices = [  # type: ignore[attr-defined]
            (value, str(agent) if len(users) == 1 else f"{agent} · {user_id}")
            for value, (agent, user_id) in self.places.items()
        ]


@login_required
@require_http_methods(["GET", "POST"])
def new(request: PageRequest) -> HttpResponse:
    """Show the form and save what was written."""
    suggested = {"content": request.GET.get("content", "")}
    form = NewMemoryForm(places_of(request.user), request.POST or None, initial=suggested)
    if request.method == "POST" and form.is_valid():
        value = form.cleaned_data
        agent, user_id = form.places[value["place"]]
        content = value["content"]
        fields = {
            "content": content,
            "type": value["type"] or infer_type(content),
            "name": value["name"],
            "source": "web",
        }
        try:
            memory = memories.save(agent, user_id, parse_draft(fields), now=timezone.now())
        except InvalidMemory as error:
            for name, problem in error.fields.items():
                form.add_error(name if name in form.fields else None, problem)
        else:
            messages.success(request, _("Saved."))
            return redirect("memory-detail", memory.pk)
    status = 422 if form.errors else 200
    return render(request, "memory/new.html", {"form": form}, status=status)


def places_of(account: object) -> list[tuple[Agent, str]]:
    """Return where the account may write: its identities with every agent they are for."""
    agents = list(Agent.objects.filter(is_active=True, memory_config__isnull=False)
                  .select_related("memory_config").order_by("name"))  # fmt: skip
    return [
        (agent, identity.user_id)
        for identity in Identity.objects.filter(account=account).order_by("pk")  # type: ignore[misc]
        for agent in agents
        if identity.agent_id in {None, agent.pk}
    ]
