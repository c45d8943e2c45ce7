"""What the pages say of an entry of the audit, and of a score."""

from __future__ import annotations

from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.authority import Role
from agents.models import Agent, MemoryConfig

register = template.Library()

_NAMES: dict[str, str | Promise] = {
    "password": _("password"),
    "role": _("role"),
    "active": _("may log in"),
    "view_content": _("may read contents"),
    "second_factor": _("second factor"),
    "sessions": _("sessions"),
    "receipt": _("receipt"),
    "account": _("account"),
    "fields": _("fields"),
    "first": _("the first account"),
    "every user": _("of every user"),
    "embeddings": _("embeddings"),
    "chat": _("chat"),
    "key": _("key"),
}
_VALUES: dict[str, str | Promise] = {
    "True": _("yes"),
    "False": _("no"),
    "given": _("given by somebody else"),
    "reset": _("set anew by somebody else"),
    "changed": _("chosen by oneself"),
    "removed": _("taken away"),
    "ended": _("ended"),
    "deleted": _("deleted"),
    **{role.value: role.label for role in Role},
}
FIELD_NAMES = {"name": _("name"), "description": _("description"), "content": _("content")}
WAYS = {
    "words": _("by words"),
    "signs": _("letter by letter, since every word holds a sign"),
    "short": _("letter by letter as parts of words, since no such word is there; half the score"),
    "nothing": _("nothing of it is in these memories"),
}
MODES = {
    "auto": _("automatic"),
    "lexical": _("words"),
    "vector": _("meaning"),
    "hybrid": _("words and meaning"),
}
REDUCED = {
    "no_vectors": _("There are no vectors yet, so it found by words only."),
    "embedding_failed": _("The model that embeds failed, so it found by words only."),
    "truncated": _("More memories matched than were ranked."),
}
PRIORS = {
    "recency": _("recency"),
    "importance": _("importance"),
    "pinned": _("pinned"),
    "use": _("use"),
    "type": _("type"),
    "time": _("time asked for"),
}


@register.filter
def detail_words(detail: str) -> str:
    """Return what was changed in the page's language, where it is one of our own words.

    A detail is `name: value` or `name: before → after`, several of them with `; ` between.
    """
    return "; ".join(map(_part_in_words, detail.split("; ")))


@register.simple_tag
def detail_link(detail: str) -> SafeString | str:
    """Return a link to the receipt that a detail names, or ''."""
    name, _colon, number = detail.partition("; ")[0].partition(": ")
    if name != "receipt":
        return ""
    try:
        address = reverse("erased", args=[number])
    except NoReverseMatch:
        return ""
    return format_html('<a class="h-link" href="{}">{} {}</a>', address, _("receipt"), number)


@register.filter
def field_name(name: str) -> str:
    """Return what people call a field that is searched."""
    return str(FIELD_NAMES[name])


@register.filter
def term_words(term: str) -> str:
    """Return a term as people read it; one that stands for all with its beginning has dots."""
    return f"{term[:-1]}…" if term.endswith("~") else term


@register.filter
def way_words(way: str) -> str:
    """Return how a query was taken."""
    return str(WAYS[way])


@register.filter
def mode_name(mode: str) -> str:
    """Return what people call a way to search; a new one by its own name."""
    return str(MODES.get(mode, mode))


@register.filter
def prior_name(name: str) -> str:
    """Return what people call a term that does not depend on the query."""
    return str(PRIORS[name])


@register.filter
def signed(value: float) -> str:
    """Return a number with its sign and two places."""
    return f"{value:+.2f}".replace("-", "−")


@register.filter
def reduced_words(code: str) -> str:
    """Return what could not be done as asked."""
    return str(REDUCED.get(code, code))


def _part_in_words(part: str) -> str:
    name, colon, value = part.partition(": ")
    if not colon:
        return str(_NAMES.get(part, part))
    values = (str(_VALUES.get(each, each)) for each in value.split(" → "))
    return f"{_label(name)}: {' → '.join(values)}"


def _label(name: str) -> str:
    """Return the name of a field of accounts, agents or their configuration."""
    if known := _NAMES.get(name):
        return str(known)
    models: tuple[Any, ...] = (MemoryConfig, Agent)
    labels = {each.name: each.verbose_name for model in models for each in model._meta.fields}
    return str(labels.get(name, name))
