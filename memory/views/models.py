"""The page on which operators set which models are called, and try them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from agents.preferences import PageRequest
from agents.roles import for_operators
from memory import endpoints
from memory.llm import addresses
from memory.llm.failures import ModelFailed
from memory.models import ModelPurpose
from memory.services import model_endpoints
from memory.services.model_endpoints import Trial, Wanted

PROVIDERS = {
    ModelPurpose.EMBEDDINGS: [
        (endpoints.EMBEDDED, gettext_lazy("The model that comes with Hippo")),
        (endpoints.ENDPOINT, gettext_lazy("A server that speaks OpenAI's protocol")),
        (endpoints.NONE, gettext_lazy("None")),
    ],
    ModelPurpose.CHAT: [
        (endpoints.NONE, gettext_lazy("None")),
        (endpoints.OPENAI, gettext_lazy("A server that speaks OpenAI's protocol")),
        (endpoints.ANTHROPIC, gettext_lazy("Anthropic, or a server that speaks its protocol")),
    ],
}


class EndpointForm(forms.Form):
    """A model and where it is; the key that is kept is never shown."""

    provider = forms.ChoiceField()
    url = forms.CharField(label=gettext_lazy("Address"), max_length=500, required=False)
    model = forms.CharField(label=gettext_lazy("Model"), max_length=200, required=False)
    key = forms.CharField(
        label=gettext_lazy("Key"),
        max_length=500,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    forgets_key = forms.BooleanField(label=gettext_lazy("Delete the key"), required=False)

    def __init__(self, purpose: str, data: Mapping[str, Any] | None = None) -> None:
        row = model_endpoints.row_of(purpose)
        provider = endpoints.EMBEDDED if purpose == ModelPurpose.EMBEDDINGS else endpoints.NONE
        initial = {"provider": row.provider, "url": row.url, "model": row.model} if row else {}
        super().__init__(data, initial={"provider": provider} | initial, auto_id=f"id_{purpose}_%s")
        self.purpose = purpose
        self.has_key = bool(row and row.sealed_key)
        choices = PROVIDERS[ModelPurpose(purpose)]
        self.fields["provider"] = forms.ChoiceField(choices=choices)
        if not self.has_key:
            del self.fields["forgets_key"]
        for name, example in self._examples().items():
            self.fields[name].widget.attrs |= {"placeholder": example, "spellcheck": "false"}

    def clean_key(self) -> str:
        """Return a key that can be sent in a header."""
        key = str(self.cleaned_data["key"])
        if not re.fullmatch(r"[!-~]*", key):
            raise ValidationError(_("A key holds no spaces and only letters of ASCII."))
        return key

    def clean(self) -> dict[str, Any]:
        """Check what is needed to call a server, if one is to be called."""
        values = super().clean() or self.cleaned_data
        provider = values.get("provider")
        if provider in {None, endpoints.EMBEDDED, endpoints.NONE} or self.errors:
            return values
        if not values["model"] and self.purpose == ModelPurpose.CHAT:
            self.add_error("model", _("Enter the model's name, as its server knows it."))
        if not values["url"] and provider != endpoints.ANTHROPIC:
            self.add_error("url", _("Enter the address of the server."))
        elif values["url"]:
            try:
                addresses.check_url(values["url"], allows_private=settings.MODEL_PRIVATE_ADDRESSES)
            except ModelFailed as error:
                self.add_error("url", str(error.words))
        return values

    def wanted(self) -> Wanted:
        """Return what was typed."""
        return Wanted(**self.cleaned_data)

    def _examples(self) -> dict[str, str]:
        if self.purpose == ModelPurpose.EMBEDDINGS:
            examples = {
                "url": "https://api.siliconflow.cn/v1",
                "model": endpoints.DEFAULT_EMBEDDING_MODEL,
            }
        else:
            examples = {"url": "https://api.deepseek.com/v1", "model": "deepseek-chat"}
        return examples | ({"key": "••••••••"} if self.has_key else {})


@for_operators
@require_GET
@never_cache
def models(request: PageRequest) -> HttpResponse:
    """Show which models are called and where from that is known."""
    return _show(request)


@for_operators
@require_POST
@never_cache
def save(request: PageRequest, purpose: str) -> HttpResponse:
    """Keep a model; nothing is to be set where the environment says it."""
    form = _form(request, purpose)
    if not form.is_valid():
        return _show(request, form, status=422)
    was_dropped = model_endpoints.save(
        purpose, form.wanted(), actor=request.user, now=timezone.now()
    )
    messages.success(request, _("Saved: %s") % ModelPurpose(purpose).label)
    if was_dropped:
        text = _("The key that was kept was that of another address, and is deleted; enter one.")
        messages.warning(request, text)
    return redirect("models")


@for_operators
@require_POST
@never_cache
def test(request: PageRequest, purpose: str) -> HttpResponse:
    """Call the model as it is typed, saved or not, and show how it did."""
    if purpose not in PROVIDERS:
        raise Http404
    form, choice = None, endpoints.choice_of(purpose)
    if not choice.variables:
        form = _form(request, purpose)
        if not form.is_valid():
            if request.htmx:
                refused = {"part": {"form": form}}
                return render(request, "memory/_model_trial.html", refused, status=422)
            return _show(request, form, status=422)
        choice = model_endpoints.choice_of(purpose, form.wanted())
    trial = model_endpoints.try_out(purpose, choice)
    if request.htmx:
        context = {"part": {"trial": trial}}
        return render(request, "memory/_model_trial.html", context)
    return _show(request, form, trial=(purpose, trial))


def _form(request: PageRequest, purpose: str) -> EndpointForm:
    if purpose not in PROVIDERS or endpoints.choice_of(purpose).variables:
        raise Http404
    return EndpointForm(purpose, request.POST)


def _show(
    request: PageRequest,
    form: EndpointForm | None = None,
    *,
    trial: tuple[str, Trial] | None = None,
    status: int = 200,
) -> HttpResponse:
    endpoints.forget()
    parts = [
        {
            "purpose": purpose.value,
            "choice": endpoints.choice_of(purpose),
            "form": form if form and form.purpose == purpose else EndpointForm(purpose),
            "trial": trial[1] if trial and trial[0] == purpose else None,
        }
        for purpose in PROVIDERS
    ]
    return render(request, "memory/models.html", {"parts": parts}, status=status)
