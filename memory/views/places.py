"""Whose memories a form is about: one's own, or for operators somebody else's."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents import audit
from agents.forms import AgentChoiceField
from agents.models import Agent, validate_user_id
from memory.views.create import places_of

EVERYWHERE, OTHER = "*", "other"
Place = tuple[Agent, str]


class PlaceForm(forms.Form):
    """A choice among one's own places, all of them, or somebody else's by agent and user ID."""

    place = forms.ChoiceField(label=gettext_lazy("For which agent"))
    agent = AgentChoiceField(label=gettext_lazy("Agent"), required=False)
    user_id = forms.CharField(label=gettext_lazy("User ID"), required=False, max_length=255)

    ALL_LABEL = gettext_lazy("as each row says")
    may_reach_others = False

    def __init__(self, account: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.account = account
        own = places_of(account)
        users = {user_id for _agent, user_id in own}
        self.places = {f"{agent.pk}:{user_id}": (agent, user_id) for agent, user_id in own}
        choices: list[tuple[str, Any]] = [
            (value, str(agent) if len(users) == 1 else f"{agent} · {user_id}")
            for value, (agent, user_id) in self.places.items()
        ]
        if len(choices) > 1:
            choices.append((EVERYWHERE, self.ALL_LABEL))
        if self.may_reach_others:
            choices.append((OTHER, _("somebody else's, below")))
        else:
            del self.fields["agent"], self.fields["user_id"]
        self.fields["place"].choices = choices  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Return the fields, if they name a place."""
        cleaned = super().clean() or {}
        if cleaned.get("place") == OTHER:
            try:
                validate_user_id(cleaned.get("user_id") or "")
            except ValidationError as error:
                self.add_error("user_id", error)
            if not cleaned.get("agent"):
                self.add_error("agent", _("Choose one."))
        return cleaned

    def chosen(self) -> tuple[tuple[Place, ...], bool]:
        """Return the places, and whether all of them are the account's own."""
        value = self.cleaned_data["place"]
        if value == EVERYWHERE:
            return tuple(self.places.values()), True
        if value != OTHER:
            return (self.places[value],), True
        agent, user_id = self.cleaned_data["agent"], self.cleaned_data["user_id"]
        return ((agent, user_id),), audit.owns(self.account, agent, user_id)
