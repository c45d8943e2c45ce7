"""Operators erase what agents remember of somebody, without seeing it; a receipt is left."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import DEFAULT_DB_ALIAS, transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from agents import audit, authority
from agents.authority import Role, role_of
from agents.models import AuditAction, Identity, is_user_id
from agents.preferences import PageRequest
from agents.roles import for_operators
from memory.errors import BackendUnavailable
from memory.models import Job
from memory.services import jobs, library, people, receipts
from memory.services.library import Shelf
from memory.views.account import on_account, total_of

_MOST_AGENTS = 10_000


@require_http_methods(["GET", "POST"])
@on_account
def erase_account(request: PageRequest, account: User) -> HttpResponse:
    """Erase all that an account owns, and the account too where that is asked for."""
    shelves = library.shelves_of(account)
    sharers = _sharers(account, shelves)
    if not _may_erase(request.user, account, sharers):
        raise PermissionDenied
    context = {"account": account, "sharers": sharers, "role": role_of(account)}
    word = account.get_username()
    if request.method == "GET" or request.POST.get("confirm", "") != word:
        return _ask(request, shelves, word, context)
    deletes = request.POST.get("deletes_account") == "true" and role_of(account) == Role.USER
    now = timezone.now()
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        job = receipts.request_erasure(
            account.pk, shelves, asked_by=request.user.pk, deletes_account=deletes, now=now
        )
        _note(request, job, shelves, subject=account, also="account: deleted" if deletes else "")
    return redirect("erased", job.pk)


@for_operators
@never_cache
@require_http_methods(["GET", "POST"])
def erase_unclaimed(request: PageRequest) -> HttpResponse:
    """Erase what agents remember of a user_id that no account has."""
    user_id = request.GET.get("user_id", "")
    known = people.unclaimed(user_id, limit=_MOST_AGENTS) if is_user_id(user_id) else None
    if known is None or not (known.shelves or known.silent):
        raise Http404
    if known.silent:
        raise BackendUnavailable(f"{', '.join(known.silent)}: silent, so nothing is erased.")
    word = " ".join(user_id.split()) or "erase"  # what a keyboard can write of it
    if request.method == "GET" or " ".join(request.POST.get("confirm", "").split()) != word:
        return _ask(request, known.shelves, word, {"user_id": user_id})
    now = timezone.now()
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        job = receipts.request_erasure_of(user_id, known.shelves, asked_by=request.user.pk, now=now)
        _note(request, job, known.shelves, user_id=user_id)
    return redirect("erased", job.pk)


@for_operators
@require_GET
def erased(request: PageRequest, job_id: int) -> HttpResponse:
    """Show a receipt: pending until every store was looked through again."""
    job = receipts.find_receipt(job_id)
    if job is None:
        raise Http404
    context = {"receipts": [job], "is_erasing": not jobs.has_ended(job)}
    return render(request, "memory/erased.html", context)


def _ask(
    request: PageRequest, shelves: list[Shelf], word: str, context: dict[str, Any]
) -> HttpResponse:
    """Show what would be lost and ask for the word; again where it was another."""
    is_refused = request.method == "POST"
    context |= {
        "shelves": shelves,
        "total": total_of(shelves),
        "word": word,
        "is_refused": is_refused,
    }
    return render(request, "memory/user_erase.html", context, status=422 if is_refused else 200)


def _note(
    request: PageRequest,
    job: Job,
    shelves: list[Shelf],
    *,
    subject: User | None = None,
    user_id: str = "",
    also: str = "",
) -> None:
    detail = "; ".join(filter(None, [f"receipt: {job.pk}", also]))
    audit.note(
        request.user,
        AuditAction.USER_ERASED,
        subject=subject,
        user_id=user_id,
        detail=detail,
        count=total_of(shelves),
        now=timezone.now(),
    )


def _sharers(account: User, shelves: list[Shelf]) -> list[User]:
    """Return the other accounts whose memories these are as well."""
    places = {(shelf.user_id, shelf.agent.pk) for shelf in shelves}
    names = {shelf.user_id for shelf in shelves}
    others = Identity.objects.filter(user_id__in=names).exclude(account=account)
    found = {
        each.account
        for each in others.select_related("account").order_by("account_id")
        if (each.user_id, each.agent_id) in places or each.agent_id is None
    }
    return sorted(found, key=lambda each: each.pk)


def _may_erase(actor: User, account: User, sharers: list[User]) -> bool:
    """Return whether `actor` may erase what `account` and those who share it have."""
    shared = all(authority.may_manage(actor, each) for each in sharers)
    return authority.may_manage(actor, account) and (actor.is_superuser or shared)
