"""Forms of the account and of the first run."""

from __future__ import annotations

import zoneinfo
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth import get_user_model, password_validation
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from agents.authority import Role
from agents.models import Agent, Backend, Identity, Profile, validate_agent_name


def time_zone_choices() -> list[tuple[str, str]]:
    """Return the time zones people live in, by name."""
    names = sorted(name for name in zoneinfo.available_timezones() if "/" in name)
    kept = [name for name in names if not name.startswith(("Etc/", "SystemV/", "US/", "posix/"))]
    return [("UTC", "UTC"), *((name, name.replace("_", " ")) for name in kept)]


class AgentChoiceField(forms.ModelChoiceField):
    """A choice among the agents that have a memory, by name."""

    def __init__(self, **kwargs: Any) -> None:
        agents = Agent.objects.filter(memory_config__isnull=False)
        super().__init__(agents.select_related("memory_config"), to_field_name="name", **kwargs)

    def label_from_instance(self, obj: Agent) -> str:
        """Return how the agent is told from others."""
        return obj.label


class ProfileForm(forms.ModelForm):
    """How somebody wants to see the pages."""

    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)

    class Meta:
        model = Profile
        fields = ["language", "time_zone", "theme", "has_shortcuts"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        by_server = (_("as the server: %s") % settings.TIME_ZONE).replace("_", " ")
        self.fields["time_zone"].choices = [("", by_server), *time_zone_choices()]  # type: ignore[attr-defined]
        self.fields["language"].choices = [  # type: ignore[attr-defined]
            ("", _("as the browser asks for")),
            *settings.LANGUAGES,
        ]


def _check_password(form: forms.Form) -> None:
    """Say beside the field what is wrong with a password that was typed for a new account."""
    value = form.cleaned_data
    if not value.get("password"):
        return
    account = get_user_model()(username=value.get("username", ""))
    try:
        password_validation.validate_password(value["password"], account)
    except ValidationError as error:
        form.add_error("password", error)


class OperatorForm(forms.Form):
    """The first account: it operates everything."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        help_text=_("Agents that send it as user_id remember things about you."),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("At least eight characters; not only digits, and not a common one."),
    )
    again = forms.CharField(
        label=_("Password again"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    language = forms.ChoiceField(label=_("Language"), choices=settings.LANGUAGES)
    time_zone = forms.ChoiceField(label=_("Time zone"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["time_zone"].choices = time_zone_choices()  # type: ignore[attr-defined]
        self.fields["username"].widget.attrs["autocomplete"] = "username"

    @staticmethod
    def guess(*, language: str | None) -> dict[str, Any]:
        """Return what is filled in beforehand: the page's language, the server's time zone."""
        zones = dict(time_zone_choices())
        zone = settings.TIME_ZONE if settings.TIME_ZONE in zones else "UTC"
        return {"language": language, "time_zone": zone}

    def account(self) -> dict[str, str]:
        """Return what the account is made of."""
        names = ("username", "password", "language", "time_zone")
        return {name: self.cleaned_data[name] for name in names}

    def clean_username(self) -> str:
        """Return a name that can be a user name."""
        name: str = self.cleaned_data["username"]
        get_user_model()._meta.get_field("username").run_validators(name)
        return name

    def clean(self) -> dict[str, Any]:
        """Return the values, if the password is good enough and was typed twice."""
        value = self.cleaned_data
        password = value.get("password", "")
        if password and value.get("again", password) != password:
            self.add_error("again", _("The two passwords differ."))
        else:
            _check_password(self)
        return value


class AccountForm(forms.Form):
    """A new account: a plain user."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=_("It stays as it is. Agents that send it as user_id remember things of it."),
    )
    language = forms.ChoiceField(label=_("Language"), choices=settings.LANGUAGES)
    password = forms.CharField(
        label=_("First password"),
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Left empty, one is made and shown once."),
    )

    def clean_username(self) -> str:
        """Return a name that nobody has, in whatever case: the login does not tell them apart."""
        accounts = get_user_model()
        name: str = accounts.normalize_username(self.cleaned_data["username"])
        accounts._meta.get_field("username").run_validators(name)
        if accounts.objects.filter(username__iexact=name).exists():
            raise ValidationError(_("There is an account of this name."))
        return name

    def clean(self) -> dict[str, Any]:
        """Return the values, if a password that was typed is good enough."""
        _check_password(self)
        return self.cleaned_data


class RoleForm(forms.Form):
    """What an account is to be."""

    role = forms.ChoiceField(label=_("Role"), choices=Role)


class IdentityForm(forms.ModelForm):
    """Under which name agents know somebody."""

    class Meta:
        model = Identity
        fields = ["user_id", "agent"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["user_id"].widget.attrs["autocomplete"] = "off"
        agent: Any = self.fields["agent"]
        agent.queryset, agent.empty_label = Agent.objects.all(), _("all agents")

    def clean(self) -> dict[str, Any]:
        """Return the values, unless the account has this identity already."""
        value = super().clean() or self.cleaned_data
        same = Identity.objects.filter(
            account=self.instance.account, user_id=value.get("user_id"), agent=value.get("agent")
        )
        if same.exists():
            self.add_error("user_id", _("This account has this identity already."))
        return value


class BackendForm(forms.Form):
    """Where the first agent keeps its memories."""

    backend = forms.ChoiceField(label=_("Backend"), choices=Backend)


class FirstAgentForm(BackendForm):
    """The first agent: a name is enough."""

    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        validators=[validate_agent_name],
        help_text=_("Letters, digits, '-', '_' and '.' of any script; it is part of addresses."),
    )
    language = forms.ChoiceField(
        label=_("Language"),
        choices=settings.LANGUAGES,
        help_text=_("In which the agent is told about its memory."),
    )
    field_order: tuple[str, ...] = ("name", "language", "backend")
