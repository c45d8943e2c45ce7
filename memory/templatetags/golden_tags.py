"""What the pages say of a golden question's result."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

register = template.Library()

TURNS = {
    "broken": gettext_lazy("fails now"),
    "mended": gettext_lazy("passes again"),
    "moved": gettext_lazy("at another place"),
    "changed": gettext_lazy("asks something else"),
    "added": gettext_lazy("not asked before"),
    "left_out": gettext_lazy("not asked any more"),
    "same": gettext_lazy("as before"),
}
_CLASSES = {"broken": "bad", "mended": "ok", "moved": "warn"}


@register.filter
def turn_words(turn: str) -> str:
    """Return what became of a question between two runs."""
    return str(TURNS[turn])


@register.filter
def turn_class(turn: str) -> str:
    """Return the colour of it."""
    return _CLASSES.get(turn, "")


@register.filter
def result_words(result: dict[str, Any] | None) -> str:
    """Return a result in a few words: whether it passed, and the ranks of what was expected."""
    if result is None:
        return "–"
    said = _("passed") if result["passed"] else _("failed")
    ranks = ", ".join("–" if rank is None else str(rank) for rank in result["expected"])
    if not ranks:
        return said if result["came"] else " · ".join([said, _("nothing came back")])
    unwanted = [str(rank) for rank in result["unwanted"] if rank is not None]
    parts = [said, _("found at %s") % ranks if any(result["expected"]) else _("not found")]
    if unwanted:
        parts.append(_("unwanted at %s") % ", ".join(unwanted))
    return " · ".join(parts)
