"""Where an agent keeps its memories: the stores tried, the change to another, the old copies."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib import messages
from django.db import DEFAULT_DB_ALIAS, DatabaseError, transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import audit
from agents.models import Agent, AuditAction, Backend
from agents.preferences import PageRequest
from memory.databases import Place, mysql_obstacle
from memory.errors import (
    BackendUnavailable,
    HippoError,
    InvalidMemory,
    MoveRefused,
    StoreNotOpen,
    WouldStrandMemories,
)
from memory.models import StoreState
from memory.services import jobs
from memory.services.moves import moving, placing, planning, trials
from memory.views.agents.page import for_agent
from memory.views.agents.settings_page import show
from memory.views.agents.store_section import move_context, place_of, section

logger = logging.getLogger(__name__)


@require_GET
@for_agent
def test(request: PageRequest, agent: Agent) -> HttpResponse:
    """Try the store of a backend now, and show how it did."""
    backend = request.GET.get("backend", "")
    if backend not in Backend.values:
        raise Http404
    trial = trials.try_place(place_of(agent, backend))
    if request.htmx:
        return render(request, "memory/_trial.html", {"agent": agent, "trial": trial})
    return redirect(f"{reverse('agent-settings', args=[agent.name])}?test=1#store")


@require_http_methods(["GET", "POST"])
@for_agent
def store(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show the stores, or change to another: by `how`, with the memories or without them.

    An agent without memories just changes; of one that has some the choices are shown.
    """
    if request.method == "GET":
        return _answer(request, agent)
    backend = request.POST.get("backend", "")
    if backend not in Backend.values:
        raise Http404
    path = request.POST.get("sqlite_path") or agent.memory_config.sqlite_path
    try:
        target = placing.parse_place(backend, path)
    except InvalidMemory as error:
        context = {"typed_path": path, "path_error": error.fields["sqlite_path"]}
        return _answer(request, agent, status=422, **context)
    try:
        _change(request, agent, target)
    except (HippoError, DatabaseError) as error:
        return _refuse(request, agent, target, error)
    changed = Agent.objects.named(agent.name)
    is_saved = Place.of(changed.memory_config) != Place.of(agent.memory_config)
    return _answer(request, changed, is_saved=is_saved)


@require_http_methods(["GET", "POST"])
@for_agent
def move(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show how far a move is, or cancel it; the whole section once it has ended."""
    job = placing.move_at_work(agent)
    if request.method == "POST" and job:
        with transaction.atomic(using=DEFAULT_DB_ALIAS):
            jobs.cancel(job.pk, now=timezone.now())
            note = f"{job.kind} {job.pk}"
            action = AuditAction.JOB_CANCELLED
            audit.note(request.user, action, agent=agent, detail=note, now=timezone.now())
        job = placing.move_at_work(agent)
    if not request.htmx or job is None:
        response = _answer(request, agent)
        if request.htmx:
            response.headers["HX-Retarget"] = "#store"
            response.headers["HX-Reswap"] = "outerHTML"
        return response
    return render(request, "memory/_move.html", {"agent": agent, "store": move_context(job)})


@require_POST
@for_agent
def erase_copies(request: PageRequest, agent: Agent) -> HttpResponse:
    """Erase what former stores hold of an agent, if its name was typed."""
    if request.POST.get("confirm", "") != agent.name:
        refused = _("That is not the agent's name; nothing was erased.")
        return _answer(request, agent, status=422, erase_refused=refused)
    try:
        erased = moving.confirm(agent, actor=request.user, now=timezone.now())
    except (HippoError, DatabaseError) as error:
        logger.warning("agent %s: old copies not erased: %s", agent.pk, error)
        refused = _("Not everything was erased: a move is at work or a store does not answer.")
        return _answer(request, agent, status=409, erase_refused=refused)
    return _answer(request, agent, erased=erased)


def _change(request: PageRequest, agent: Agent, target: Place) -> None:
    how, now = request.POST.get("how", ""), timezone.now()
    if target.backend == Backend.MYSQL and (obstacle := mysql_obstacle(_)):
        raise BackendUnavailable(obstacle)
    names = {"backend": target.backend, "sqlite_path": target.sqlite_path}
    if how == "move":
        moving.enqueue(agent, **names, account_id=request.user.pk, now=now)
    else:
        moving.change_store(agent, **names, leave=how == "fresh", actor=request.user, now=now)


def _refuse(
    request: PageRequest, agent: Agent, target: Place, error: HippoError | DatabaseError
) -> HttpResponse:
    """Show the choices there are, with the reason why it was not just done."""
    if isinstance(error, BackendUnavailable | DatabaseError):
        words = _("%(place)s cannot be used: %(error)s") % {"place": target, "error": error}
        return _answer(request, agent, status=422, refusal=words, wanted=target)
    try:
        plan = planning.plan(agent, target)
    except (DatabaseError, BackendUnavailable) as silent:
        words = _("%(place)s cannot be used: %(error)s") % {"place": target, "error": silent}
        return _answer(request, agent, status=422, refusal=words, wanted=target)
    refusal = "" if isinstance(error, WouldStrandMemories) else _in_words(error, agent, plan)
    return _answer(request, agent, status=409, plan=plan, refusal=refusal, wanted=target)


def _in_words(error: HippoError, agent: Agent, plan: planning.Plan) -> str:
    """Return a refusal in the page's language: why, and what can be done."""
    place = {"place": plan.target, "count": plan.there}
    if isinstance(error, StoreNotOpen):
        return _("The memories take no changes at this moment; try again shortly.")
    if not isinstance(error, MoveRefused):
        return str(error)
    if placing.move_at_work(agent):
        return _("A move is at work; wait for its end, or cancel it first.")
    if plan.is_same:
        return _("The agent keeps its memories in %(place)s already.") % place
    if plan.state == StoreState.ERASED:
        return _("What %(place)s held is being erased; finish that below first.") % place
    if not plan.can_enter:
        return _("%(place)s holds an old copy; moving there brings it up to date.") % place
    return (
        _(
            "%(place)s holds %(count)d other memories of this agent, which a copy would overwrite. "
            "Go on with those, or erase them first."
        )
        % place
    )


def _answer(
    request: PageRequest, agent: Agent, *, status: int = 200, **context: Any
) -> HttpResponse:
    """Render the section alone for htmx, else the whole tab, or lead there after a success."""
    if not request.htmx and status == 200 and request.method == "POST":
        if "erased" in context:
            messages.success(request, _("Erased %d memories in former stores.") % context["erased"])
        return redirect("agent-settings", agent.name)
    shown = section(request, agent, **context)
    if request.htmx:
        return render(
            request, "memory/_store.html", {"agent": agent, "store": shown}, status=status
        )
    return show(request, agent, store=shown, status=status)
