"""One change of many memories: of those that were ticked, or of all that match."""

from __future__ import annotations

import json

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy
from django.views.decorators.http import require_GET, require_POST

from agents.preferences import PageRequest
from memory.drafts import parse_changes
from memory.errors import InvalidMemory
from memory.filters import MemoryFilter
from memory.forms import BrowseForm
from memory.models import MemoryType, Status
from memory.numbers import whole_number
from memory.services import bulk, library
from memory.services.bulk import Bulk
from memory.services.library import Shelf
from memory.views.answers import toasted, undo_address
from memory.views.listing import MAX_HITS, chosen, job_context, list_context, narrowing_of

_SAID = {
    "delete": ngettext_lazy("Moved %d memory to the trash.", "Moved %d memories to the trash."),
    "pause": ngettext_lazy("Paused %d memory.", "Paused %d memories."),
    "restore": ngettext_lazy("Restored %d memory.", "Restored %d memories."),
}
_CHANGED = ngettext_lazy("Changed %d memory.", "Changed %d memories.")


@login_required
@require_POST
def change(request: PageRequest) -> HttpResponse:
    """Change the ticked memories, or with `everything` all that match; more than 500 by a job."""
    form = BrowseForm(request.GET)
    shelves = chosen(library.shelves_of(request.user), form)
    now = timezone.now()
    action, value = _action(request)
    try:
        parse_changes({"tags": [value]} if action == "tag" else {})
    except InvalidMemory:
        return _answer(request, _("That is no tag; nothing was changed."))
    doing = Bulk(action, value, request.user.get_username(), now)
    if request.POST.get("everything") and not form.text:
        wanted = form.to_filter(now=now)
        if action == bulk.RESTORE:
            wanted = MemoryFilter(statuses=(Status.TRASHED,))
        selected = bulk.matching(shelves, wanted, doing)
        if sum(map(len, selected.values())) > bulk.AT_ONCE:
            bulk.request(request.user.pk, shelves, wanted, doing, now=now)
            return _answer(request, _("Many memories are being changed; this goes on by itself."))
    else:
        ids = _ticked(request, shelves, form)
        if len(ids) > bulk.AT_ONCE:
            text = _("At most %d can be ticked; take all that match instead. Nothing was changed.")
            return _answer(request, text % bulk.AT_ONCE)
        selected = bulk.select(shelves, ids, doing)
    changed = bulk.change(selected, doing)
    text = _SAID.get(action, _CHANGED) % changed
    return _answer(request, text, undo=undo_address(request, now) if changed else "")


@login_required
@require_POST
def undo(request: PageRequest) -> HttpResponse:
    """Put back what one change of many memories did, where nobody has changed it since."""
    at = parse_datetime(request.GET.get("at", ""))
    if at is None or at.tzinfo is None:
        raise Http404
    shelves, now = library.shelves_of(request.user), timezone.now()
    name = request.user.get_username()
    if "job" in request.GET:
        undoing = Bulk("undo", at.isoformat(), name, now)
        bulk.request(request.user.pk, shelves, MemoryFilter(), undoing, now=now)
        return _answer(request, _("It is being put back; this goes on by itself."))
    restored = bulk.undo(shelves, Bulk("", "", name, at), now=now)
    text = ngettext("Put back %d memory.", "Put back %d memories.", restored) % restored
    return _answer(request, text)


@login_required
@require_GET
def progress(request: PageRequest, job_id: int) -> HttpResponse:
    """Show how far a change of many memories is; it asks again until it has ended."""
    job = bulk.find(request.user.pk, job_id)
    if job is None:
        raise Http404
    context = job_context(request, job)
    template = "memory/_progress.html" if request.htmx else "memory/progress.html"
    response = render(request, template, context)
    if request.htmx and "has_ended" in context:
        response.headers["HX-Trigger"] = json.dumps({"relist": {}})
    return response


def _action(request: PageRequest) -> tuple[str, str]:
    """Return the action and what it needs. Raises Http404 for what no button of ours sends."""
    action, _, value = request.POST.get("action", "").partition(":")
    if action not in {*bulk.ACTIONS, bulk.RESTORE}:
        raise Http404
    if action == "type" and value not in MemoryType.values:
        raise Http404
    return action, request.POST.get("tag", "").strip() if action == "tag" else value


def _ticked(request: PageRequest, shelves: list[Shelf], form: BrowseForm) -> list[int]:
    if request.POST.get("everything"):
        now = timezone.now()
        wanted = form.to_filter(now=now)
        found = library.seek(shelves, form.text, wanted, limit=MAX_HITS, now=now)
        return [entry.memory.pk for entry in found.entries]
    given = map(whole_number, request.POST.getlist("id"))
    return [number for number in given if number is not None]


def _answer(request: PageRequest, text: str, *, undo: str = "") -> HttpResponse:
    """Show the list as it is now, or the trash, with a word on what was done."""
    if request.htmx:
        response = render(request, "memory/browse.html#list", list_context(request))
        return toasted(response, text, undo)
    messages.success(request, text, extra_tags=undo)
    if request.POST.get("action") == bulk.RESTORE:
        return redirect("memory-trash")
    return redirect(f"{reverse('home')}{narrowing_of(request)}")
