"""The settings tab of an agent: its fields, the section of stores, the preview beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import Agent
from agents.preferences import PageRequest
from memory import endpoints
from memory.retrieval import calibration
from memory.services import configuring
from memory.views.agents.page import render_tab
from memory.views.agents.preview_panel import panel
from memory.views.agents.store_section import section

TUNES = ("prefetch_limit", "budget_tokens", "min_score", "language")
"""What changes the preview, before it is saved as well."""


class SettingsForm(forms.Form):
    """All that can be set; a request changes one field of it."""

    enabled = forms.BooleanField(label=gettext_lazy("Enable memory"), required=False)
    prefetch_limit = forms.IntegerField(
        label=gettext_lazy("Memories given per message"), min_value=1, max_value=50
    )
    budget_tokens = forms.IntegerField(
        label=gettext_lazy("Token budget"), min_value=50, max_value=100_000
    )
    min_score = forms.FloatField(
        label=gettext_lazy("Silence below"),
        min_value=0,
        max_value=1,
        required=False,
        widget=forms.NumberInput(attrs={"step": "0.01"}),
    )
    reranks = forms.BooleanField(
        label=gettext_lazy("A model picks among the best hits"), required=False
    )
    language = forms.ChoiceField(label=gettext_lazy("Language"), choices=settings.LANGUAGES)
    display_name = forms.CharField(
        label=gettext_lazy("Display name"), max_length=200, required=False
    )
    system_prompt = forms.CharField(
        label=gettext_lazy("System prompt"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 5}),
    )

    def __init__(self, agent: Agent, data: Mapping[str, Any] | None = None, only: str = "") -> None:
        of_agent = configuring.OF_AGENT
        super().__init__(
            data,
            initial={
                name: getattr(agent if name in of_agent else agent.memory_config, name)
                for name in self.base_fields
            },
        )
        if only:
            self.fields = {only: self.fields[only]}
        for name, field in self.fields.items():
            # what is wrong is said in the same place as what is saved
            field.widget.attrs["aria-describedby"] = f"said-{name}"
            if name in TUNES:
                field.widget.attrs["data-tunes"] = True

    def clean_reranks(self) -> bool:
        """Return the switch, on only where there is a model that can pick."""
        is_wanted = bool(self.cleaned_data["reranks"])
        if is_wanted and endpoints.of_chat().endpoint is None:
            raise ValidationError(_("No chat model is set; an operator sets one under Models."))
        return is_wanted

    def clean_system_prompt(self) -> str:
        """Return the text without what the browser made of its line breaks."""
        return str(self.cleaned_data["system_prompt"]).replace("\r\n", "\n")


def show(
    request: PageRequest,
    agent: Agent,
    *,
    refused: SettingsForm | None = None,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """Render the whole tab; `refused` is a field that was not saved, as it was typed.

    What `context` has of the parts beside the settings is not looked up.
    """
    form = SettingsForm(agent)
    setting = {name: form[name] for name in form.fields}
    if refused:
        setting |= {name: refused[name] for name in refused.fields}
    context["default_min_score"] = calibration.MIN_SCORE
    if "store" not in context:
        context["store"] = section(request, agent)
    if "preview" not in context:
        context["preview"] = panel(request, agent)
    context["has_chat"] = endpoints.of_chat().endpoint is not None
    return render_tab(
        request, agent, "memory/agent_settings.html", status=status, setting=setting, **context
    )
