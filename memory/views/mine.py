"""What agents have of me, all of it: pause them, take it along, erase it."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import DEFAULT_DB_ALIAS, transaction
from django.http import FileResponse, Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents import audit
from agents.models import Agent, AuditAction, Identity, Pause
from agents.preferences import PageRequest
from memory.services import jobs, library, receipts
from memory.services.library import Shelf
from memory.services.transfers import exporting, takeout

AT_ONCE = 2_000
"""So many memories are written to a ZIP while the reader waits, about two seconds."""
_SPOOLED_BYTES = 8 * 1024 * 1024


@login_required
@require_GET
def mine(request: PageRequest) -> HttpResponse:
    """Show which agents remember how much of the account, and what can be done about it."""
    return render(request, "memory/mine.html", _context(request))


@login_required
@require_POST
def pause(request: PageRequest, agent: str) -> HttpResponse:
    """Let an agent neither recall nor save for the account for now, or let it again."""
    found = Agent.objects.filter(name=agent).first()
    users = _users_of(request, found) if found else set()
    if found is None or not users:
        raise Http404
    if request.POST.get("paused") == "true":
        for user_id in users:
            Pause.objects.get_or_create(agent=found, user_id=user_id)
        text = _("%s neither recalls nor saves for you now.") % found
    else:
        Pause.objects.filter(agent=found, user_id__in=users).delete()
        text = _("%s remembers for you again.") % found
    messages.success(request, text)
    return redirect("mine")


@login_required
@require_GET
def download(request: PageRequest) -> FileResponse | HttpResponse:
    """Send everything as a ZIP: JSON lines with all history, and Markdown to read.

    Of much a job writes it: a request would take as long, and keep others waiting.
    """
    shelves = library.shelves_of(request.user)
    if sum(shelf.scope.memory_count for shelf in shelves) > AT_ONCE:
        job = exporting.request_everything(request.user, shelves, now=timezone.now())
        return redirect("job-detail", job.pk)
    file = tempfile.SpooledTemporaryFile(max_size=_SPOOLED_BYTES)  # noqa: SIM115  # the answer closes it
    takeout.write_zip(file, shelves)
    file.seek(0)
    name = f"hippo-{timezone.localdate():%Y-%m-%d}.zip"
    return FileResponse(file, as_attachment=True, filename=name, content_type="application/zip")


@login_required
@require_POST
def erase(request: PageRequest) -> HttpResponse:
    """Erase everything, if the user name was typed; a job does it, and shows the receipt."""
    if request.POST.get("confirm", "") != request.user.get_username():
        context = {**_context(request), "refused": True}
        return render(request, "memory/mine.html", context, status=422)
    shelves = library.shelves_of(request.user)
    if shelves:
        now, count = timezone.now(), sum(shelf.scope.memory_count for shelf in shelves)
        with transaction.atomic(using=DEFAULT_DB_ALIAS):
            job = receipts.request_erasure(request.user.pk, shelves, now=now)
            audit.note(
                request.user,
                AuditAction.USER_ERASED,
                subject=request.user,
                detail=f"receipt: {job.pk}",
                count=count,
                now=now,
            )
        messages.success(request, _("Everything is being erased; the receipt is below."))
    return redirect("mine")


def _context(request: PageRequest) -> dict[str, Any]:
    shelves: dict[Agent, list[Shelf]] = defaultdict(list)
    for shelf in library.shelves_of(request.user):
        shelves[shelf.agent].append(shelf)
    users = {identity.user_id for identity in Identity.objects.filter(account=request.user)}
    paused = set(Pause.objects.filter(user_id__in=users).values_list("agent_id", flat=True))
    agents: list[dict[str, Any]] = [
        {
            "agent": agent,
            "count": sum(shelf.scope.memory_count for shelf in own),
            "is_paused": agent.pk in paused,
        }
        for agent, own in sorted(shelves.items(), key=lambda each: each[0].name)
    ]
    found = receipts.receipts_of(request.user.pk)
    return {
        "agents": agents,
        "total": sum(each["count"] for each in agents),
        "reads": audit.reads_about(request.user, shelves.keys()),
        "deeds": audit.deeds_about(request.user, shelves.keys()),
        "receipts": found,
        "is_erasing": any(not jobs.has_ended(job) for job in found),
    }


def _users_of(request: PageRequest, agent: Agent) -> set[str]:
    identities = Identity.objects.filter(account=request.user)
    return {each.user_id for each in identities if each.agent_id in {None, agent.pk}}
