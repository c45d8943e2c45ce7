"""One account as operators see and change it: role, password, identities; never contents."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import administration, authority
from agents.authority import Refused, Role, role_of
from agents.forms import AccountForm, IdentityForm, RoleForm
from agents.models import Identity
from agents.preferences import PageRequest
from agents.roles import VIEW_CONTENT, for_operators
from memory.services import people, receipts
from memory.services.library import Shelf


def on_account(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Let operators in and hand the view the account of the address; no copy is kept of it."""

    @for_operators
    @never_cache
    @wraps(view)
    def found(request: PageRequest, account_id: int, *args: Any, **kwargs: Any) -> HttpResponse:
        account = get_object_or_404(User, pk=account_id)
        return view(request, account, *args, **kwargs)

    return found


@for_operators
@never_cache
@require_http_methods(["GET", "POST"])
def new(request: PageRequest) -> HttpResponse:
    """Make an account; a password that was generated is on the page that answers, once."""
    form = AccountForm(request.POST or None, initial={"language": get_language()})
    if request.method == "POST" and form.is_valid():
        value = form.cleaned_data
        password = value["password"] or administration.generate_password()
        try:
            account, is_known = administration.create_account(
                request.user,
                value["username"],
                password,
                language=value["language"],
                now=timezone.now(),
            )
        except IntegrityError:  # another operator was quicker
            form.add_error("username", _("There is an account of this name."))
        else:
            shown = "" if value["password"] else password
            return show(request, account, password=shown, is_new=True, is_unlinked=not is_known)
    status = 422 if form.errors else 200
    return render(request, "memory/user_new.html", {"form": form}, status=status)


@require_GET
@on_account
def page(request: PageRequest, account: User) -> HttpResponse:
    """Show the account, and what the operator may do with it."""
    return show(request, account)


@require_POST
@on_account
def role(request: PageRequest, account: User) -> HttpResponse:
    """Make it a user, an operator or a superuser."""
    form = RoleForm(request.POST)
    if not form.is_valid():
        return show(request, account, status=422)
    chosen = Role(form.cleaned_data["role"])
    administration.change_role(request.user, account.pk, chosen, now=timezone.now())
    return _done(request, account, _("The role is: %s.") % chosen.label)


@require_POST
@on_account
def active(request: PageRequest, account: User) -> HttpResponse:
    """Let it log in again, or no more."""
    is_active = request.POST.get("active") == "true"
    administration.set_active(request.user, account.pk, is_active, now=timezone.now())
    text = _("The account can log in again.") if is_active else _("The account is shut out.")
    return _done(request, account, text)


@require_POST
@on_account
def reading(request: PageRequest, account: User) -> HttpResponse:
    """Let an operator read contents for a reason, or no more."""
    may_read = request.POST.get("may_read") == "true"
    administration.set_reading(request.user, account.pk, may_read, now=timezone.now())
    return _done(request, account, _("Saved."))


@require_POST
@on_account
def password(request: PageRequest, account: User) -> HttpResponse:
    """Give it a new password, which is on the page that answers and nowhere else."""
    made = administration.reset_password(request.user, account.pk, now=timezone.now())
    return show(request, account, password=made)


@require_POST
@on_account
def factor(request: PageRequest, account: User) -> HttpResponse:
    """Take its second factor away."""
    administration.remove_second_factor(request.user, account.pk, now=timezone.now())
    return _done(request, account, _("The password alone is enough now."))


@require_POST
@on_account
def sessions(request: PageRequest, account: User) -> HttpResponse:
    """Log it out everywhere."""
    ended = administration.end_sessions(request.user, account.pk, now=timezone.now())
    text = ngettext("%d session ended.", "%d sessions ended.", ended) % ended
    return _done(request, account, text)


@require_http_methods(["GET", "POST"])
@on_account
def link(request: PageRequest, account: User) -> HttpResponse:
    """Say what an identity gives access to; link it when that is confirmed."""
    data = request.POST if request.method == "POST" else request.GET
    form = IdentityForm(data, instance=Identity(account=account))
    if not form.is_valid():
        return show(request, account, form=form, status=422)
    user_id, agent = form.cleaned_data["user_id"], form.cleaned_data["agent"]
    if reason := authority.why_not_link(request.user, account, user_id, agent):
        form.add_error("user_id", reason)
        return show(request, account, form=form, status=422)
    if request.method == "POST":
        try:
            administration.link(request.user, account.pk, user_id, agent, now=timezone.now())
        except Refused as error:  # another operator was quicker, here and below
            form.add_error("user_id", str(error))
            return show(request, account, form=form, status=422)
        except ValidationError as error:
            form.add_error("user_id", error.messages)
            return show(request, account, form=form, status=422)
        return _done(request, account, _("Linked; the account sees these memories now."))
    known = people.known_as(user_id, agent)
    context = {
        "account": account,
        "form": form,
        "user_id": user_id,
        "agent": agent,
        "known": known,
        "total": total_of(known.shelves),
        "others": authority.owners_of(user_id, agent).exclude(account=account),
    }
    return render(request, "memory/user_link.html", context)


@require_POST
@on_account
def unlink(request: PageRequest, account: User, identity_id: int) -> HttpResponse:
    """Take an identity away; the memories stay."""
    try:
        administration.unlink(request.user, account.pk, identity_id, now=timezone.now())
    except Identity.DoesNotExist as error:
        raise Http404 from error
    return _done(request, account, _("No longer linked; the memories stay."))


def show(
    request: PageRequest,
    account: User,
    *,
    form: IdentityForm | None = None,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """Render the page of an account, as it is by now."""
    account = get_user_model().objects.prefetch_related("identities__agent").get(pk=account.pk)
    shelves, silent = people.known_of([account])
    actor = request.user
    context |= {
        "account": account,
        "role": role_of(account),
        "roles": Role.choices,
        "identities": _counted(account, shelves[account.pk]),
        "silent": silent,
        "has_factor": administration.has_second_factor(account),
        "reads": account.has_perm(VIEW_CONTENT),
        "may_manage": authority.may_manage(actor, account),
        "may_promote": authority.may_promote(actor, account),
        "may_link": authority.may_link(actor, account),
        "form": form or IdentityForm(),
        "receipts": receipts.receipts_of(account.pk),
    }
    return render(request, "memory/user.html", context, status=status)


def total_of(shelves: list[Shelf]) -> int:
    """Return how many memories there are on shelves."""
    return sum(shelf.scope.memory_count for shelf in shelves)


def _counted(account: Any, shelves: list[Shelf]) -> list[tuple[Identity, list[Shelf]]]:
    """Return the identities with what each gives access to."""
    return [
        (
            identity,
            [
                shelf
                for shelf in shelves
                if shelf.user_id == identity.user_id and identity.agent_id in {None, shelf.agent.pk}
            ],
        )
        for identity in account.identities.all()
    ]


def _done(request: PageRequest, account: User, text: str) -> HttpResponse:
    messages.success(request, text)
    return redirect("user", account.pk)
