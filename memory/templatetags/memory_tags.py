"""What the memory pages say of a memory in few words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django import template
from django.forms import BoundField
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import Agent
from memory.diffs import Change
from memory.forms import FIELD_LABELS, REASON_LABELS, STATUS_LABELS, TYPE_LABELS
from memory.models import ActorKind, Memory, MemoryType, Status

register = template.Library()
_ICONS = {
    "user": "user", "project": "briefcase", "feedback": "message-report", "reference": "bookmark",
}  # fmt: skip
_HUES = 6
_EXCERPT_CHARS = 220
_BEFORE_CHARS = 24


@register.filter
def type_icon(name: str) -> str:
    """Return the icon of a memory's type."""
    return _ICONS[name]


@register.filter
def type_label(name: str) -> str:
    """Return the name of a memory's type."""
    return str(TYPE_LABELS[MemoryType(name)])


@register.filter
def hue(agent: Agent) -> int:
    """Return which of six colours an agent has."""
    return agent.pk % _HUES + 1


@register.filter
def initial(agent: Agent) -> str:
    """Return the letter that stands for an agent."""
    return str(agent)[:1].upper()


@register.filter
def age(moment: datetime) -> str:
    """Return how long ago a moment was: in minutes, hours, or as a date."""
    past = timezone.now() - moment
    minutes = int(past.total_seconds() // 60)
    if minutes < 1:
        return _("just now")
    if minutes < 60:
        return ngettext("%d min ago", "%d min ago", minutes) % minutes
    if past < timedelta(days=1):
        return ngettext("%d h ago", "%d h ago", minutes // 60) % (minutes // 60)
    local = timezone.localtime(moment)
    is_this_year = local.year == timezone.localtime().year
    return date_format(local, "MONTH_DAY_FORMAT" if is_this_year else "DATE_FORMAT")


@register.filter
def total(counts: Mapping[str, int]) -> int:
    """Return the sum of counts."""
    return sum(counts.values())


@register.filter
def status_label(status: str) -> str:
    """Return what people call a status."""
    return str(STATUS_LABELS[Status(status)])


@register.simple_tag
def importance(memory: Memory) -> SafeString:
    """Return a memory's importance as five bars."""
    level = round(memory.importance * 5)
    bars = format_html_join("", "<i{}></i>", ((mark,) for mark in _marks(level)))
    label = _("Importance %d of 5") % level
    return format_html('<span class="imp" role="img" aria-label="{}">{}</span>', label, bars)


def _marks(level: int) -> list[SafeString]:
    return [mark_safe(' class="on"') if each < level else mark_safe("") for each in range(5)]


@register.filter
def excerpt(text: str, matched: Sequence[str]) -> str:
    """Return the part of a text that a row has room for: from before the first matched word."""
    places = [at for word in matched if (at := text.casefold().find(word)) >= 0]
    start = max(min(places, default=0) - _BEFORE_CHARS, 0)
    if start + _EXCERPT_CHARS >= len(text):
        start = max(len(text) - _EXCERPT_CHARS, 0)
    if start and (space := text.find(" ", start, start + _BEFORE_CHARS)) >= 0:
        start = space + 1  # not inside a word
    shown = text[start : start + _EXCERPT_CHARS]
    return f"{'…' if start else ''}{shown}{'…' if start + len(shown) < len(text) else ''}"


@register.filter
def json_text(value: Any) -> str:
    """Return JSON that people can read."""
    return json.dumps(value, ensure_ascii=False, indent=2)


@register.filter
def actor(change: Change) -> str:
    """Return who made a change."""
    return "Hippo" if change.actor_kind == ActorKind.SYSTEM else change.actor


@register.filter
def changed_fields(change: Change) -> str:
    """Return what a change was of."""
    names = [*(["content"] if change.text else []), *change.fields]
    return ", ".join(str(FIELD_LABELS.get(name, name)) for name in names)


@register.filter
def reason(text: str) -> str:
    """Return why a change was made: our own words in the page's language, others' as they are."""
    if found := re.fullmatch(r"revert to version (\d+)", text):
        return _("back to version %s") % found[1]
    return str(REASON_LABELS.get(text, text))


@register.filter
def words(matched: Sequence[str]) -> str:
    """Return the matched words that people read: no stems, no characters of longer words."""
    whole = [word for word in matched if not word.endswith("~")]
    longest = [w for w in whole if not any(w != other and w in other for other in whole)]
    return ", ".join(longest)


@register.simple_tag
def highlight(text: str, matched: Sequence[str]) -> SafeString:
    """Return `text` with the matched words marked, whatever their case.

    A word of letters is marked where one begins; inside of others only where none begins so.
    """
    words = sorted({word for word in matched if word}, key=len, reverse=True)
    if not words:
        return escape(text)
    anywhere = "|".join(map(re.escape, words))
    begun = re.compile(rf"(?:(?<![a-z0-9])|(?![a-z0-9]))(?:{anywhere})", re.IGNORECASE)
    pattern = begun if begun.search(text) else re.compile(anywhere, re.IGNORECASE)
    parts, end = [], 0
    for match in pattern.finditer(text):
        parts += [escape(text[end : match.start()]), "<mark>", escape(match[0]), "</mark>"]
        end = match.end()
    parts.append(escape(text[end:]))
    return mark_safe("".join(parts))  # noqa: S308  # every part is escaped


@register.simple_tag
def prompt_block(block: str) -> SafeString:
    """Return a prompt's block, character by character, with its tags and types coloured."""
    lines = []
    for line in block.split("\n"):
        if line.startswith("["):  # only an entry of ours begins so
            name, _, rest = line.partition("] ")
            lines.append(format_html('<span class="{}">{}]</span> {}', name[1:], name, rest))
        elif line.startswith("<"):
            lines.append(format_html('<span class="tg">{}</span>', line))
        elif line.endswith("</memory-context>"):
            rest = line.removesuffix("</memory-context>")
            lines.append(format_html('{}<span class="tg">&lt;/memory-context&gt;</span>', rest))
        else:
            lines.append(escape(line))
    return mark_safe("\n".join(lines))  # noqa: S308  # every line is escaped


@register.simple_tag
def narrowed(query: Mapping[str, Any], **changes: str) -> str:
    """Return the list's address with some filters changed; it begins at the first page."""
    kept = {**query, **changes, "cursor": ""}
    return f"{reverse('home')}?" + urlencode({name: text for name, text in kept.items() if text})


@register.filter
def classed(field: BoundField, size: str = "") -> SafeString:
    """Return a form field as Tabler wants it, small or not, and said to be wrong where it is."""
    kinds = {"checkbox": "form-check-input", "select": "form-select"}
    names = kinds.get(field.widget_type, "form-control")
    names = f"{names} {names}-{size}" if size else names
    attributes: dict[str, str | bool] = {"class": f"{names} is-invalid" if field.errors else names}
    if field.errors:
        attributes["aria-invalid"] = "true"
        attributes["aria-describedby"] = f"{field.id_for_label}_error"
    return field.as_widget(attrs=attributes)
