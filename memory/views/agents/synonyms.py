"""The table of an agent's synonyms: each row is saved on its own, and says so."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import reswap, retarget

from agents.models import Agent
from agents.preferences import PageRequest
from memory.numbers import whole_number
from memory.services import synonyms
from memory.understanding.synonyms import MAX_GROUPS
from memory.views.agents.page import for_agent, render_tab
from memory.views.answers import toasted


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it is shown; `before` is what is kept, `text` what was typed instead."""

    number: str
    before: str
    text: str
    error: str = ""
    is_saved: bool = False


@require_http_methods(["GET", "POST"])
@for_agent
def table(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show the rows; add one, save one or delete one."""
    if request.method == "GET":
        return _show(request, agent)
    act = {"add": _add, "save": _save, "delete": _delete}.get(request.POST.get("action", ""))
    if act is None:
        raise Http404
    return act(request, agent)


@require_POST
@for_agent
def restore(request: PageRequest, agent: Agent) -> HttpResponse:
    """Put back a row that was just deleted, where it was."""
    place = whole_number(request.GET.get("place", "")) or 0
    try:
        group = synonyms.parse(request.GET.get("words", ""))
        synonyms.add(agent, group, place=place, actor=request.user, now=timezone.now())
    except ValidationError as error:
        return _done(request, agent, " ".join(error.messages))
    return _done(request, agent, _("The row is back."))


def _add(request: PageRequest, agent: Agent) -> HttpResponse:
    text = request.POST.get("words", "")
    try:
        group = synonyms.parse(text)
        synonyms.add(agent, group, actor=request.user, now=timezone.now())
    except ValidationError as error:
        new = Row("new", "", text, " ".join(error.messages))
        if not request.htmx:
            return _show(request, agent, new=new, status=422)
        # what is being typed into other rows stays
        context = {"new": new, "address": reverse("agent-synonyms", args=[agent.name])}
        answer = render(request, "memory/agent_synonyms.html#new", context, status=422)
        return reswap(retarget(answer, "#new"), "outerHTML")
    return _done(request, agent, _("Added: %s") % synonyms.in_words(group))


def _save(request: PageRequest, agent: Agent) -> HttpResponse:
    number, text = request.POST.get("row", ""), request.POST.get("words", "")
    before = _kept(request, agent)
    try:
        group = synonyms.parse(text)
        synonyms.change(agent, before, group, actor=request.user, now=timezone.now())
    except ValidationError as error:
        row = Row(number, synonyms.in_words(before), text, " ".join(error.messages))
        return _said(request, agent, row, status=422)
    kept = synonyms.in_words(group)
    if request.htmx:
        return _said(request, agent, Row(number, kept, kept, is_saved=True))
    return _done(request, agent, _("Saved: %s") % kept)


def _delete(request: PageRequest, agent: Agent) -> HttpResponse:
    group = _kept(request, agent)
    words = synonyms.in_words(group)
    try:
        place = synonyms.remove(agent, group, actor=request.user, now=timezone.now())
    except ValidationError as error:
        return _done(request, agent, " ".join(error.messages))
    undo = urlencode({"place": place, "words": words})
    address = f"{reverse('agent-synonyms-restore', args=[agent.name])}?{undo}"
    return _done(request, agent, _("Deleted: %s") % words, undo=address)


def _kept(request: PageRequest, agent: Agent) -> list[str]:
    """Return the row that a form is about, as it is kept."""
    before = request.POST.get("before", "")
    kept = (group for group in agent.memory_config.synonyms if synonyms.in_words(group) == before)
    return next(kept, [before])


def _said(request: PageRequest, agent: Agent, row: Row, *, status: int = 200) -> HttpResponse:
    """Say beside a row what became of it."""
    if not request.htmx:
        return _show(request, agent, changed=row, status=status)
    context = {"row": row}
    return render(request, "memory/agent_synonyms.html#said", context, status=status)


def _done(request: PageRequest, agent: Agent, text: str, *, undo: str = "") -> HttpResponse:
    """Show the rows as they are now, with a word on what was done."""
    if request.htmx:
        return toasted(_show(request, agent), text, undo)
    messages.success(request, text, extra_tags=undo)
    return redirect("agent-synonyms", agent.name)


def _show(
    request: PageRequest,
    agent: Agent,
    *,
    new: Row | None = None,
    changed: Row | None = None,
    status: int = 200,
) -> HttpResponse:
    kept = [synonyms.in_words(group) for group in agent.memory_config.synonyms]
    rows = [Row(str(number), text, text) for number, text in enumerate(kept, 1)]
    if changed:
        rows = [changed if row.number == changed.number else row for row in rows]
    context = {"rows": rows, "new": new or Row("new", "", ""), "most": MAX_GROUPS}
    template = "memory/agent_synonyms.html" + ("#list" if request.htmx else "")
    return render_tab(request, agent, template, status=status, **context)
