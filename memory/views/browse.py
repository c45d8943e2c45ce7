"""The list of memories, one of them beside it, and the trash."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from agents.preferences import PageRequest
from memory.charts import recall_bars
from memory.diffs import differences
from memory.errors import BackendUnavailable, InvalidMemory, UnknownMemory
from memory.filters import MemoryFilter
from memory.forms import KIND_LABELS, STATUS_LABELS, MemoryForm
from memory.models import MemoryKind, Status
from memory.ordering import ORDERS
from memory.services import library, memories
from memory.services.library import Entry
from memory.views.listing import PAGE, list_context, narrowing_of, type_counts

TABS = ("history", "recalls", "similar", "metadata")
_SIMILAR = 6
_QUERY_CHARS = 1_000


@login_required
@require_GET
def memory_list(request: PageRequest) -> HttpResponse:
    """Show memories by filter and search; a fragment where htmx asks for one."""
    context = list_context(request)
    if request.htmx.target == "list":
        return render(request, "memory/browse.html#list", context)
    if request.GET.get("cursor") and request.htmx:
        return render(request, "memory/browse.html#rows", context)
    return render(request, "memory/browse.html", context)


@login_required
@require_GET
def counts(request: PageRequest) -> HttpResponse:
    """Show the counts beside the types, which take a moment where there are many memories."""
    return render(request, "memory/browse.html#chips", type_counts(request))


@login_required
@require_GET
def memory_detail(request: PageRequest, memory_id: int) -> HttpResponse:
    """Show one memory; beside the list, unless only the detail or one of its tabs is asked for."""
    entry = find_entry(request, memory_id)
    if request.htmx.target == f"row-{memory_id}":
        row = {"entry": entry, "address": narrowing_of(request)}
        return render(request, "memory/_row.html", row)
    context = detail_context(request, entry)
    if request.htmx.target == "tab":
        return render(request, "memory/_tab.html", context)
    if request.htmx.target == "detail":
        return render(request, "memory/_detail.html", context)
    return render(request, "memory/browse.html", {**list_context(request), **context})


@login_required
@require_GET
def trash(request: PageRequest) -> HttpResponse:
    """Show what was deleted and can be restored."""
    return trash_page(request)


def trash_page(request: PageRequest) -> HttpResponse:
    """Return the page of the trash as it is now."""
    shelves, unreachable = library.reachable_shelves(request.user)
    wanted = MemoryFilter(statuses=(Status.TRASHED,))
    order, cursor = ORDERS["changed"], request.GET.get("cursor", "")
    try:
        page = library.browse(shelves, wanted, order=order, cursor=cursor, limit=PAGE)
    except InvalidMemory as error:  # a cursor that somebody made up
        raise Http404 from error
    following = f"?{urlencode({'cursor': page.next})}" if page.next else ""
    context = {
        "entries": page.entries,
        "next": following,
        "unreachable": unreachable,
        "trash_days": settings.TRASH_DAYS,
    }
    return render(request, "memory/trash.html", context)


def find_entry(request: PageRequest, memory_id: int) -> Entry:
    """Return one of the account's memories.

    Raises Http404, and BackendUnavailable where it may be in a store that does not answer.
    """
    shelves, unreachable = library.reachable_shelves(request.user)
    try:
        return library.find(shelves, memory_id)
    except UnknownMemory as error:
        if unreachable:
            names = ", ".join(agent.name for agent in unreachable)
            raise BackendUnavailable(f"The store of {names} does not answer.") from error
        raise Http404 from error


def detail_context(
    request: PageRequest, entry: Entry, form: MemoryForm | None = None
) -> dict[str, Any]:
    """Return what the detail of a memory shows."""
    memory = entry.memory
    tab = request.GET.get("tab", TABS[0])
    return {
        "address": narrowing_of(request),
        "entry": entry,
        "memory": memory,
        "shelf": entry.shelf,
        "is_trashed": memory.status == Status.TRASHED,
        "status_label": STATUS_LABELS.get(Status(memory.status), ""),
        "kind_label": KIND_LABELS[MemoryKind(memory.kind)],
        "form": form,
        "tabs": TABS,
        "tab": tab if tab in TABS else TABS[0],
        **_tab_context(entry, tab),
    }


def _tab_context(entry: Entry, tab: str) -> dict[str, Any]:
    """Return what one tab of the detail shows; the others cost nothing."""
    memory, shelf = entry.memory, entry.shelf
    if tab == "recalls":
        return {"bars": recall_bars(memory, today=timezone.localdate())}
    if tab == "similar":
        query = f"{memory.name}\n{memory.content}"[:_QUERY_CHARS]
        found = library.seek([shelf], query, MemoryFilter(), limit=_SIMILAR + 1, now=timezone.now())
        return {"similar": [each for each in found.entries if each.memory.pk != memory.pk]}
    if tab == "metadata":
        return {}
    revisions = memories.history(shelf.agent, shelf.user_id, memory.pk, limit=50)
    return {"history": differences(memory, revisions)}
