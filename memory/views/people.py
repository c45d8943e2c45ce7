"""Operators see whom agents remember; contents only for a reason, which leaves a record."""

from __future__ import annotations

import logging
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db import DatabaseError
from django.db.models import Prefetch, Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from agents import audit
from agents.authority import ACCOUNTS_OF, Role
from agents.models import Agent, AuditEntry, Identity
from agents.preferences import PageRequest
from agents.roles import VIEW_CONTENT, View, for_operators
from memory.analyzer import fold
from memory.errors import BackendUnavailable, InvalidMemory
from memory.services import memories, people
from memory.services.people import Known

ACCOUNTS = 50
UNCLAIMED = 200
MEMORIES = 30
_REASON_CHARS = 10
logger = logging.getLogger(__name__)


def validate_reason(reason: str) -> None:
    """Raise ValidationError unless there is something to read in a reason."""
    if len(fold(reason)) < _REASON_CHARS:
        raise ValidationError(_("At least ten characters that can be read."))


class ReasonForm(forms.Form):
    """Why somebody reads what is not theirs."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        min_length=_REASON_CHARS,
        max_length=500,
        validators=[validate_reason],
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("At least ten characters. Whoever the memories are about sees it."),
    )


def for_readers(view: View) -> View:
    """Let in operators who may read contents; keep no copy; tell when a store is silent."""

    @for_operators
    @never_cache
    @wraps(view)
    def guarded(request: PageRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.has_perm(VIEW_CONTENT):
            raise PermissionDenied
        try:
            return view(request, *args, **kwargs)
        except (DatabaseError, BackendUnavailable) as error:
            logger.warning("a reading failed: %s", type(error).__name__, exc_info=error)
            return render(request, "memory/read.html", {"is_silent": True}, status=503)

    return guarded


@for_operators
@require_GET
def users(request: PageRequest) -> HttpResponse:
    """Show all accounts and whom else agents know, with counts and without contents."""
    query, role = request.GET.get("q", ""), request.GET.get("role", "")
    identities = Identity.objects.select_related("agent").order_by("user_id", "pk")
    accounts = get_user_model().objects.order_by("username")
    accounts = accounts.prefetch_related(Prefetch("identities", identities))
    if query:
        named = Q(username=query) | Q(identities__user_id=query)
        accounts = accounts.filter(named).distinct()
    if role in Role.values:
        accounts = accounts.filter(ACCOUNTS_OF[Role(role)])
    page = Paginator(accounts, ACCOUNTS).get_page(request.GET.get("page"))
    shown = list(page)
    shelves, silent = people.known_of(shown)
    strangers = Known() if role else people.unclaimed(query, limit=UNCLAIMED + 1)
    context = {
        "query": query,
        "role": role,
        "roles": Role.choices,
        "page": page,
        "people": [(account, shelves[account.pk]) for account in shown],
        "strangers": strangers.shelves[:UNCLAIMED],
        "are_more_strangers": len(strangers.shelves) > UNCLAIMED,
        "silent": sorted({*silent, *strangers.silent}),
        "may_read": request.user.has_perm(VIEW_CONTENT),
    }
    return render(request, "memory/people.html", context)


@for_readers
@require_http_methods(["GET", "POST"])
def give_reason(request: PageRequest) -> HttpResponse:
    """Ask why somebody else's memories are read; what is one's own needs no reason."""
    user_id = request.GET.get("user_id", "")
    agent = Agent.objects.filter(name=request.GET.get("agent", ""), memory_config__isnull=False)
    found = agent.select_related("memory_config").first()
    if found is None or not people.is_known(found, user_id):
        raise Http404
    if audit.owns(request.user, found, user_id):
        return redirect("home")
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        # committed before anything is read: no reading without a record
        entry = audit.note_content_read(
            request.user, found, user_id, reason=form.cleaned_data["reason"], now=timezone.now()
        )
        return redirect("read", entry.pk)
    context = {"form": form, "agent": found, "user_id": user_id}
    status = 422 if form.errors else 200
    return render(request, "memory/read_reason.html", context, status=status)


@for_readers
@require_GET
def read(request: PageRequest, entry_id: int) -> HttpResponse:
    """Show the memories that a reason was given for, for a while, to who gave it."""
    try:
        entry = audit.find_reading(request.user, entry_id)
    except AuditEntry.DoesNotExist as error:
        raise Http404 from error
    if entry.agent is None:
        raise Http404
    if not audit.is_open(entry, now=timezone.now()):
        messages.info(request, _("The time to read is over; give a reason again."))
        whose = {"agent": entry.agent.name, "user_id": entry.user_id}
        return redirect(f"{reverse('read-reason')}?{urlencode(whose)}")
    cursor = request.GET.get("cursor", "")
    try:
        page = memories.list_page(entry.agent, entry.user_id, cursor=cursor, limit=MEMORIES)
    except InvalidMemory as error:  # a cursor that somebody made up
        raise Http404 from error
    audit.note_shown(entry, len(page.memories))
    context = {
        "entry": entry,
        "closes_at": entry.created_at + audit.READING_TIME,
        "memories": page.memories,
        "next": f"?{urlencode({'cursor': page.next})}" if page.next else "",
    }
    return render(request, "memory/read.html", context)
