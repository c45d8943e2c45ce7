"""What the list of keys shows: narrowed by agent, state and text, in pages."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.paginator import Paginator
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from agents.keys import NewKey
from agents.models import Agent, ApiKey, KeyState, validate_user_id
from agents.preferences import PageRequest

KEYS = 50
_MAX_DAYS = 3_650
_NARROWING = ("tab", "agent", "state", "q", "page")
OVERLAPS = {
    0: _("at once"),
    60 * 60: _("in 1 hour"),
    24 * 60 * 60: _("in 24 hours"),
    7 * 24 * 60 * 60: _("in 7 days"),
}
"""When the old key of a rotation ends, by seconds."""


class KeyForm(forms.Form):
    """A new key of an agent; `ticket` tells a form that is sent twice from two forms."""

    ticket = forms.UUIDField(widget=forms.HiddenInput)
    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        required=False,
        help_text=_("Where it is used, such as “laptop of Ming”."),
    )
    user_id = forms.CharField(
        label=_("Bound to user ID"),
        max_length=255,
        required=False,
        strip=False,
        validators=[validate_user_id],
        help_text=_(
            "A bound key reaches this user's memories only: for an agent on one person's machine. "
            "Leave it empty for a server that speaks with many users."
        ),
    )
    days = forms.IntegerField(
        label=_("Ends after days"),
        min_value=1,
        max_value=_MAX_DAYS,
        required=False,
        help_text=_("Empty: it works until it is revoked."),
    )

    @classmethod
    def fresh(cls, **kwargs: Any) -> KeyForm:
        """Return an empty form with a ticket of its own."""
        return cls(initial={"ticket": uuid.uuid4()}, **kwargs)

    def renew(self) -> None:
        """Give a form that was sent a new ticket, so that it can be sent again."""
        self.data = {**self.data.dict(), "ticket": str(uuid.uuid4())}  # type: ignore[attr-defined]

    def wanted(self, *, now: datetime) -> NewKey:
        """Return what the key is to be like."""
        value = self.cleaned_data
        days = value["days"]
        expires_at = now + timedelta(days=days) if days else None
        return NewKey(value["name"], value["user_id"], expires_at, value["ticket"])


class AnyAgentKeyForm(KeyForm):
    """A new key of an agent that is to be chosen."""

    agent = forms.ChoiceField(label=_("Agent"))
    field_order = ("ticket", "agent", "name", "user_id", "days")

    def __init__(self, *args: Any, agents: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["agent"].choices = agents  # type: ignore[attr-defined]


def agent_choices() -> list[tuple[str, str]]:
    """Return every agent that can remember, by name; one query."""
    agents = Agent.objects.filter(memory_config__isnull=False)
    return [(agent.name, agent.label) for agent in agents]


def narrowing_of(request: PageRequest) -> dict[str, str]:
    """Return what narrows the list; `tab` names the agent on whose page it is."""
    return {name: request.GET[name] for name in _NARROWING if request.GET.get(name)}


def page_address(narrowing: dict[str, str]) -> str:
    """Return the address of the page that the list is on."""
    if "tab" in narrowing:
        return reverse("agent-connect", args=[narrowing["tab"]])
    return f"{reverse('keys')}?{urlencode(narrowing)}" if narrowing else reverse("keys")


def list_context(
    narrowing: dict[str, str], *, now: datetime, changed: int | None = None
) -> dict[str, Any]:
    """Return what the list needs; two queries. `changed` is the key whose row gets the focus."""
    keys = ApiKey.objects.select_related("agent", "replaced_by").order_by("-pk")
    if agent := narrowing.get("tab") or narrowing.get("agent"):
        keys = keys.filter(agent__name=agent)
    keys = keys.in_state(narrowing.get("state", ""), now)
    if text := narrowing.get("q", ""):
        keys = keys.filter(
            Q(name__icontains=text) | Q(user_id__icontains=text) | Q(prefix__startswith=text[:12])
        )
    return {
        "page": Paginator(keys, KEYS).get_page(narrowing.get("page")),
        "narrowing": urlencode(narrowing),
        "address": page_address({name: narrowing[name] for name in narrowing if name == "tab"}),
        "is_narrowed": any(name in narrowing for name in ("agent", "state", "q")),
        "tab": narrowing.get("tab", ""),
        "overlaps": OVERLAPS.items(),
        "states": KeyState.choices,
        "changed": changed,
        "value": {name: narrowing.get(name, "") for name in _NARROWING},
    }
