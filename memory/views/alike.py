"""What else says what a memory says: while it is written or changed, and beside it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from agents.preferences import PageRequest
from memory.analyzer import fold
from memory.drafts import MAX_CONTENT_BYTES, derive_name
from memory.models import Scope, Status
from memory.numbers import whole_number
from memory.services import duplicates, library
from memory.services.duplicates import Duplicate
from memory.views.browse import find_entry

_SHOWN = 3
_SHELVES = 20
"""Without a place chosen, so many shelves are looked through."""


@login_required
@require_POST
def similar(request: PageRequest) -> HttpResponse:
    """Show what is remembered already that a text says, and the name it would get.

    `?memory=` is the one that the text is to be of. A POST, though it changes nothing: an address
    would be too short, and ends up in logs.
    """
    content = request.POST.get("content", "").replace("\r\n", "\n")[:MAX_CONTENT_BYTES]
    has_text = bool(fold(content))
    changed = whole_number(request.GET.get("memory", ""))
    context = {
        "found": duplicates.find_in(
            _scopes(request, changed), content, exclude=changed, by_meaning=True,
            limit=_SHOWN, now=timezone.now(),
        ),
        "suggested_name": derive_name(content) if has_text else "",
        "is_new": has_text and changed is None,
    }  # fmt: skip
    return render(request, "memory/_similar.html", context)


@login_required
@require_GET
def beside(request: PageRequest, memory_id: int) -> HttpResponse:
    """Show what else says what a memory says: a part of its page that comes afterwards."""
    entry = find_entry(request, memory_id)
    memory = entry.memory
    found: tuple[Duplicate, ...] = ()
    if memory.status != Status.TRASHED:
        found = duplicates.find(
            entry.shelf.scope, memory.content, exclude=memory_id, by_meaning=True,
            limit=_SHOWN, now=timezone.now(),
        )  # fmt: skip
    return render(request, "memory/_alike.html", {"found": found})


def _scopes(request: PageRequest, memory_id: int | None) -> list[Scope]:
    """Return where a text is to be kept; where that is not said, where it may be."""
    if memory_id is not None:
        return [find_entry(request, memory_id).shelf.scope]
    shelves, _unreachable = library.reachable_shelves(request.user)
    agent_id, _colon, user_id = request.POST.get("place", "").partition(":")
    if user_id:
        shelves = [s for s in shelves if (str(s.agent.pk), s.user_id) == (agent_id, user_id)]
    return [shelf.scope for shelf in shelves[:_SHELVES]]
