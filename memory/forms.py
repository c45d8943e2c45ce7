"""What people fill in about memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils import timezone
from django.utils.translation import gettext, override
from django.utils.translation import gettext_lazy as _

from memory.analyzer import fold
from memory.drafts import (
    MAX_CONTENT_BYTES,
    MAX_DESCRIPTION_CHARS,
    MAX_NAME_CHARS,
    MAX_TAG_CHARS,
    MAX_TAGS,
)
from memory.errors import InvalidMemory
from memory.filters import MemoryFilter
from memory.models import Memory, MemoryKind, MemoryType, Status
from memory.understanding import operators
from memory.understanding.operators import Operators

TYPE_LABELS = {
    MemoryType.USER: _("User"),
    MemoryType.PROJECT: _("Project"),
    MemoryType.FEEDBACK: _("Feedback"),
    MemoryType.REFERENCE: _("Reference"),
}
KIND_LABELS = {
    MemoryKind.OBSERVATION: _("Observation"),
    MemoryKind.FACT: _("Fact"),
    MemoryKind.PROCEDURE: _("Procedure"),
    MemoryKind.SUMMARY: _("Summary"),
}
STATUS_LABELS = {
    Status.ACTIVE: _("Active"),
    Status.PAUSED: _("Paused"),
    Status.ARCHIVED: _("Archived"),
    Status.SUPERSEDED: _("Superseded"),
}
ORDER_LABELS = {
    "newest": _("Newest first"),
    "oldest": _("Oldest first"),
    "changed": _("Last changed first"),
    "important": _("Most important first"),
    "recalled": _("Most recalled first"),
}
FIELD_LABELS = {
    "type": _("type"),
    "content": _("content"),
    "name": _("name"),
    "kind": _("kind"),
    "tier": _("tier"),
    "description": _("description"),
    "detail": _("details"),
    "metadata": _("metadata"),
    "tags": _("tags"),
    "source": _("source"),
    "importance": _("importance"),
    "confidence": _("confidence"),
    "pinned": _("pinned"),
    "core": _("core"),
    "visibility": _("visibility"),
    "status": _("state"),
    "due_at": _("reminder"),
    "expires_at": _("expiry"),
}
REASON_LABELS = {
    "restore": _("taken back from the trash"),
    "import": _("by an import"),
    "reinforce": _("by its use"),
    "bulk delete": _("deleted with others"),
    "bulk pause": _("paused with others"),
    "bulk resume": _("let be recalled again with others"),
    "bulk pin": _("pinned with others"),
    "bulk unpin": _("unpinned with others"),
    "bulk type": _("type changed with others"),
    "bulk tag": _("tagged with others"),
    "bulk undo": _("undone"),
}
_ANY = ("", _("any"))
_NO_TYPE = ("",)
# a day beyond, or its end in another time zone, is no time that can be compared
DAYS = [MinValueValidator(date(1900, 1, 1)), MaxValueValidator(date(2999, 12, 31))]


class BrowseForm(forms.Form):
    """What a list is narrowed to; all of it is in the address."""

    q = forms.CharField(label=_("Search memories"), required=False, max_length=500)
    type = forms.ChoiceField(
        label=_("Type"), required=False, choices=[("", _("All")), *TYPE_LABELS.items()]
    )
    agent = forms.CharField(label=_("Agent"), required=False)
    status = forms.ChoiceField(
        label=_("State"),
        required=False,
        choices=[("", _("all but the trash")), *STATUS_LABELS.items()],
    )
    kind = forms.ChoiceField(label=_("Kind"), required=False, choices=[_ANY, *KIND_LABELS.items()])
    tag = forms.CharField(label=_("Tag"), required=False)
    source = forms.CharField(label=_("Source"), required=False)
    importance = forms.ChoiceField(
        label=_("Importance"),
        required=False,
        # called for each page: a text with a number in it would keep the language of the start
        choices=lambda: [_ANY, *((f"0.{n}", gettext("0.%d or more") % n) for n in (4, 6, 8))],
    )
    after = forms.DateField(label=_("Created from"), required=False, validators=DAYS)
    before = forms.DateField(label=_("Created up to"), required=False, validators=DAYS)
    unused = forms.ChoiceField(
        label=_("Not recalled"),
        required=False,
        choices=lambda: [_ANY, *((str(n), gettext("for %d days") % n) for n in (30, 90, 365))],
    )
    sort = forms.ChoiceField(
        label=_("Order"),
        required=False,
        choices=[("", ORDER_LABELS["newest"])]
        + [(name, label) for name, label in ORDER_LABELS.items() if name != "newest"],
    )
    cursor = forms.CharField(required=False)

    MORE = ("status", "kind", "tag", "source", "importance", "after", "before", "unused")
    """The filters behind the button, in order."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("after", "before"):
            self.fields[name].widget = forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"})
        # what is not valid narrows nothing
        self.is_valid()
        self.value: dict[str, Any] = {
            name: self.cleaned_data.get(name) or "" for name in self.fields
        }
        self.typed = typed(self.value["q"])

    @property
    def text(self) -> str:
        """Return what is looked for, without the operators."""
        return self.typed.text

    def more(self) -> list[forms.BoundField]:
        """Return the filters behind the button."""
        return [self[name] for name in self.MORE]

    @property
    def narrowing(self) -> dict[str, str]:
        """Return what the list is narrowed to, as parameters of an address."""
        return {
            name: str(value)
            for name, value in self.value.items()
            if value and name != "cursor" and (name, value) != ("sort", "newest")
        }

    def to_filter(self, *, now: datetime) -> MemoryFilter:
        """Return the filter, operators and all; days are those of the time zone in force."""
        value = self.value
        chosen = MemoryFilter(
            types=(value["type"],) if value["type"] else (),
            kinds=(value["kind"],) if value["kind"] else (),
            tags=(value["tag"],) if value["tag"] else (),
            source=value["source"],
            statuses=(value["status"],) if value["status"] else (),
            created_after=_begin(value["after"]) - timedelta(microseconds=1)
            if value["after"]
            else None,
            created_before=_begin(value["before"] + timedelta(days=1)) if value["before"] else None,
            min_importance=float(value["importance"] or 0),
            unused_since=now - timedelta(days=int(value["unused"])) if value["unused"] else None,
        )
        return narrowed(chosen, self.typed)


class MemoryForm(forms.Form):
    """A memory's text; `version` is the one that was read."""

    name = forms.CharField(label=_("Name"), max_length=MAX_NAME_CHARS)
    type = forms.ChoiceField(label=_("Type"), choices=list(TYPE_LABELS.items()))
    content = forms.CharField(label=_("Content"), widget=forms.Textarea(attrs={"rows": 6}))
    description = forms.CharField(
        label=_("Description"), max_length=MAX_DESCRIPTION_CHARS, required=False
    )
    tags = forms.CharField(label=_("Tags"), required=False, help_text=_("Separated by commas."))
    importance = forms.FloatField(
        label=_("Importance"),
        min_value=0,
        max_value=1,
        widget=forms.NumberInput(attrs={"step": "any"}),
        help_text=_("From 0 to 1; it decides who comes first where memories fit alike."),
    )
    version = forms.IntegerField(widget=forms.HiddenInput)

    TEXTS = ("name", "type", "content", "description", "tags", "importance")
    """What can be changed here."""

    @classmethod
    def of(cls, memory: Memory, data: Mapping[str, Any] | None = None) -> MemoryForm:
        """Return the form of a memory, filled in with `data` where there is any."""
        state = {name: getattr(memory, name) for name in cls.TEXTS}
        return cls(data, initial={**cls.initial_of(state), "version": memory.version})

    @classmethod
    def initial_of(cls, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the fields show of a memory's state."""
        return {**{name: state[name] for name in cls.TEXTS}, "tags": ", ".join(state["tags"])}

    def clean_content(self) -> str:
        """Return the text, if it can be kept."""
        return checked_content(self.cleaned_data["content"])

    def clean_tags(self) -> list[str]:
        """Return the tags, if they can be kept."""
        return checked_tags(self.cleaned_data["tags"])

    def changes(self) -> dict[str, Any]:
        """Return the fields as a change of a memory."""
        return {name: value for name, value in self.cleaned_data.items() if name != "version"}

    def refuse(self, error: InvalidMemory) -> None:
        """Show what is wrong beside the fields."""
        for name, problem in error.fields.items():
            self.add_error(name if name in self.fields else None, problem)


def checked_content(text: str) -> str:
    """Return a text without what the browser made of its line breaks. Raises ValidationError."""
    text = text.replace("\r\n", "\n")
    if (size := len(text.encode())) > MAX_CONTENT_BYTES:
        limit = MAX_CONTENT_BYTES // 1024
        raise ValidationError(
            gettext("At most %(limit)d KiB; this has %(size)d.")
            % {"limit": limit, "size": size // 1024 + 1}
        )
    return text


def checked_tags(text: str) -> list[str]:
    """Return tags that were typed between commas, Chinese ones too. Raises ValidationError."""
    tags = [tag.strip() for tag in text.replace("，", ",").split(",")]
    tags = [tag for tag in dict.fromkeys(tags) if tag]
    if len(tags) > MAX_TAGS or any(len(tag) > MAX_TAG_CHARS for tag in tags):
        raise ValidationError(
            gettext("At most %(tags)d tags of %(chars)d characters.")
            % {"tags": MAX_TAGS, "chars": MAX_TAG_CHARS}
        )
    return tags


def typed(query: str) -> Operators:
    """Return what somebody typed into a search: operators, and the words to look for."""
    zone = timezone.get_current_timezone()
    return operators.parse(query, types=_type_names(), now=timezone.now(), zone=zone)


def narrowed(chosen: MemoryFilter, found: Operators) -> MemoryFilter:
    """Return a filter with what operators add; of types those that were typed count.

    Where one says nothing, nothing meets it: it must not let everything be changed.
    """
    after = [chosen.created_after, _just_before(found.created_from)]
    before = [chosen.created_before, found.created_until]
    return replace(
        chosen,
        types=_NO_TYPE if found.refused else found.types or chosen.types,
        tags=(*chosen.tags, *found.tags),
        created_after=max(filter(None, after), default=None),
        created_before=min(filter(None, before), default=None),
    )


def refusals(found: Operators) -> list[str]:
    """Return what to say of operators whose value says nothing."""
    types = ", ".join(map(str, TYPE_LABELS.values()))
    said = []
    for name, value in found.refused:
        if name == "type":
            text = gettext("“%(value)s” is no type; there are: %(types)s.")
            said.append(text % {"value": value, "types": types})
        else:
            text = gettext(
                '“%(value)s” is no time; write 2026-03-05, for example, or, in quotes, "last week".'
            )
            said.append(text % {"value": value})
    return said


@lru_cache(maxsize=1)
def _type_names() -> dict[str, str]:
    """Map what a type is called in every language to its name."""
    names = {value: value for value in MemoryType.values}
    for language, _name in settings.LANGUAGES:
        with override(language):
            names |= {fold(str(label)): kind.value for kind, label in TYPE_LABELS.items()}
    return names


def _just_before(moment: datetime | None) -> datetime | None:
    return moment - timedelta(microseconds=1) if moment else None


def _begin(day: Any) -> datetime:
    """Return when a day begins in the time zone in force."""
    return datetime(day.year, day.month, day.day, tzinfo=timezone.get_current_timezone())
