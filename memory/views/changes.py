"""What people do with a memory: write, correct, pin, pause, delete, restore, revert."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.preferences import PageRequest
from memory.diffs import compare
from memory.drafts import DRAFT_FIELDS
from memory.errors import InvalidMemory, UnknownMemory, VersionConflict
from memory.forms import FIELD_LABELS, MemoryForm
from memory.models import ActorKind, Memory, Status
from memory.services import memories
from memory.services.library import Entry
from memory.services.writing import Actor
from memory.views.answers import toasted, undo_address
from memory.views.browse import detail_context, find_entry, trash_page
from memory.views.listing import list_context, narrowing_of


@login_required
@require_http_methods(["GET", "POST"])
def edit(request: PageRequest, memory_id: int) -> HttpResponse:
    """Change a memory in place; who was second sees both texts, and overwrites nothing unseen."""
    entry = find_entry(request, memory_id)
    if entry.memory.status == Status.TRASHED:
        return _gone(request, entry)
    if request.method == "GET":
        return _edit(request, entry, MemoryForm.of(entry.memory))
    form = MemoryForm.of(entry.memory, request.POST)
    if not form.is_valid():
        return _edit(request, entry, form, status=422)
    now = timezone.now()
    try:
        _change(request, entry, form.changes(), now, version=form.cleaned_data["version"])
    except InvalidMemory as error:
        form.refuse(error)
        return _edit(request, entry, form, status=422)
    except VersionConflict:
        return _edit_again(request, find_entry(request, memory_id), form)
    return _shown(request, memory_id, _("Saved."), undo_address(request, now))


@login_required
@require_POST
def mark(request: PageRequest, memory_id: int) -> HttpResponse:
    """Pin or pause a memory, or take that back."""
    entry, now = find_entry(request, memory_id), timezone.now()
    what, memory = request.POST.get("mark"), entry.memory
    if memory.status == Status.TRASHED:
        return _gone(request, entry)
    if what == "pin":
        changes: dict[str, Any] = {"pinned": not memory.pinned}
        text = _("No longer pinned.") if memory.pinned else _("Pinned.")
    elif what == "pause":
        is_paused = memory.status == Status.PAUSED
        changes = {"status": Status.ACTIVE if is_paused else Status.PAUSED}
        text = _("Recalled again.") if is_paused else _("Paused: it is not recalled.")
    else:
        raise Http404
    _change(request, entry, changes, now)
    return _shown(request, memory_id, text, undo_address(request, now))


@login_required
@require_POST
def revert(request: PageRequest, memory_id: int, version: int) -> HttpResponse:
    """Make an earlier state the newest version."""
    entry, now = find_entry(request, memory_id), timezone.now()
    if entry.memory.status == Status.TRASHED:
        return _gone(request, entry)
    revision = entry.memory.revisions.filter(version=version).first()
    if revision is None:
        raise Http404
    kept = {"status"}  # an old state must not take a memory out of the trash, or into it
    state = {name: revision.state[name] for name in DRAFT_FIELDS if name not in kept}
    _change(request, entry, state, now, reason=f"revert to version {version}")
    return _shown(
        request, memory_id, _("Version %d is back.") % version, undo_address(request, now)
    )


@login_required
@require_POST
def delete(request: PageRequest, memory_id: int) -> HttpResponse:
    """Move a memory to the trash, at once; the answer offers to undo it."""
    entry = find_entry(request, memory_id)
    shelf, memory = entry.shelf, entry.memory
    now = timezone.now()
    if memory.status != Status.TRASHED:
        memories.trash(shelf.agent, shelf.user_id, memory_id, actor=_actor(request), now=now)
    text = _("Moved “%s” to the trash.") % memory.name
    undo = undo_address(request, now)
    if request.htmx:
        response = render(request, "memory/browse.html#list", list_context(request))
        return toasted(response, text, undo)
    messages.success(request, text, extra_tags=undo)
    return redirect(f"{reverse('home')}{narrowing_of(request)}")


@login_required
@require_POST
def restore(request: PageRequest, memory_id: int) -> HttpResponse:
    """Take a memory out of the trash, with the status it had."""
    entry = find_entry(request, memory_id)
    shelf = entry.shelf
    memories.restore(
        shelf.agent, shelf.user_id, memory_id, actor=_actor(request), now=timezone.now()
    )
    if request.htmx.target == "trash":
        return toasted(trash_page(request), _("Restored."))
    return _shown(request, memory_id, _("Restored."), relist=True)


@login_required
@require_POST
def erase(request: PageRequest, memory_id: int) -> HttpResponse:
    """Erase a memory that is in the trash, with its history."""
    entry = find_entry(request, memory_id)
    if entry.memory.status != Status.TRASHED:
        raise Http404
    memories.purge(entry.shelf.agent, entry.shelf.user_id, memory_id)
    messages.success(request, _("Erased, with its history."))
    return redirect("memory-trash")


def _change(
    request: PageRequest,
    entry: Entry,
    changes: dict[str, Any],
    now: datetime,
    *,
    version: int | None = None,
    reason: str = "",
) -> Memory:
    try:
        return memories.update(
            entry.shelf.agent,
            entry.shelf.user_id,
            entry.memory.pk,
            changes,
            actor=_actor(request),
            now=now,
            reason=reason,
            expected_version=version,
        )
    except UnknownMemory as error:
        raise Http404 from error


def _actor(request: PageRequest) -> Actor:
    return Actor(ActorKind.USER, request.user.get_username())


def _edit(
    request: PageRequest, entry: Entry, form: MemoryForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    context = {**detail_context(request, entry, form), **more}
    if request.htmx:
        return render(request, "memory/_detail.html", context, status=status)
    return render(
        request, "memory/browse.html", {**list_context(request), **context}, status=status
    )


def _edit_again(request: PageRequest, entry: Entry, form: MemoryForm) -> HttpResponse:
    """Show the second editor what the first one did; the next save is against what is shown.

    What the second left alone becomes as the first has it; where both changed the same, the
    second's stays in the form, beside the first's.
    """
    memory = entry.memory
    base = memory.revisions.filter(version=form.cleaned_data["version"]).first()
    theirs = MemoryForm.of(memory).initial
    # without the state that was read, say after an import, nothing is known to be untouched
    read = MemoryForm.initial_of(base.state) if base else {}
    data: dict[str, Any] = {"version": memory.version}
    fields = []
    for name in MemoryForm.TEXTS:
        typed = form.data.get(name, "").replace("\r\n", "\n")
        is_untouched = name in read and str(read[name]) == typed
        data[name] = theirs[name] if is_untouched else typed
        if str(theirs[name]) != str(read.get(name, theirs[name])) and name != "content":
            fields.append((FIELD_LABELS[name], theirs[name]))
    theirs_differ = data["content"] != memory.content
    context = {
        "is_conflict": True,
        "theirs": compare(data["content"], memory.content) if theirs_differ else (),
        "their_fields": fields,
    }
    return _edit(request, entry, MemoryForm.of(memory, data), status=409, **context)


def _gone(request: PageRequest, entry: Entry) -> HttpResponse:
    """Answer a change of what somebody has moved to the trash meanwhile."""
    text = _("It is in the trash by now; nothing was changed.")
    return _shown(request, entry.memory.pk, text, relist=True)


def _shown(
    request: PageRequest, memory_id: int, text: str, undo: str = "", *, relist: bool = False
) -> HttpResponse:
    """Show the memory as it is now, with a word on what was done."""
    if not request.htmx:
        messages.success(request, text, extra_tags=undo)
        return redirect(f"{reverse('memory-detail', args=[memory_id])}{narrowing_of(request)}")
    entry = find_entry(request, memory_id)
    response = render(request, "memory/_detail.html", detail_context(request, entry))
    return toasted(response, text, undo, changed=None if relist else memory_id, relist=relist)
