"""Golden questions of an agent: kept, asked and compared by those who may read the answers."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.models import Agent
from agents.preferences import PageRequest
from agents.roles import VIEW_CONTENT
from memory.errors import BackendUnavailable
from memory.models import GoldenQuestion
from memory.services import people, previewing, trying
from memory.services.golden import asking, comparing, questions
from memory.services.golden.asking import AT_ONCE, NothingToAsk
from memory.services.golden.questions import InvalidQuestion
from memory.services.recall import MODES
from memory.views.agents.golden_page import QuestionForm, find_access, list_context
from memory.views.agents.page import for_agent, render_tab
from memory.views.answers import toasted
from memory.views.people import ReasonForm

_FIELDS = ("user_id", "question", "expected", "unwanted")


@require_GET
@for_agent
@never_cache
def golden(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show an agent's questions, each with what came of it last."""
    context = list_context(request, agent, now=timezone.now())
    if request.htmx:
        return render_tab(request, agent, "memory/_golden.html", **context)
    return render_tab(request, agent, "memory/agent_golden.html", **context)


@require_http_methods(["GET", "POST"])
@for_agent
@never_cache
def new(request: PageRequest, agent: Agent) -> HttpResponse:
    """Write a question down; `keep` only fills the form with what was tried elsewhere."""
    if request.method == "GET" or "keep" in request.POST:
        given = {name: request.POST.get(name, "") for name in _FIELDS}
        return _form_page(request, agent, QuestionForm(initial=given))
    form = QuestionForm(request.POST)
    if form.is_valid() and (asked := _refusal(request, agent, form)) is not None:
        return _form_page(request, agent, form, why=asked, status=422)
    if form.is_valid():
        try:
            questions.add(agent, form.draft, now=timezone.now())
        except InvalidQuestion as error:
            form.add_error(error.field, str(error))
        else:
            messages.success(request, _("The question is kept."))
            return redirect("agent-golden", agent.name)
    return _form_page(request, agent, form, status=422)


@require_http_methods(["GET", "POST"])
@for_agent
@never_cache
def edit(request: PageRequest, agent: Agent, question_id: int) -> HttpResponse:
    """Change a question that may be read."""
    question = _find(agent, question_id)
    opened, _silent = find_access(request, agent, now=timezone.now())
    if not opened.opens(question.user_id):
        messages.info(request, _("It is about somebody else's memories; give a reason first."))
        return redirect("agent-golden", agent.name)
    if request.method == "GET":
        return _form_page(request, agent, QuestionForm.of(question), question=question)
    form = QuestionForm(request.POST)
    if form.is_valid() and (asked := _refusal(request, agent, form)) is not None:
        return _form_page(request, agent, form, question=question, why=asked, status=422)
    if not form.is_valid():
        return _form_page(request, agent, form, question=question, status=422)
    questions.edit(question, form.draft)
    messages.success(request, _("The question is saved."))
    return redirect("agent-golden", agent.name)


@require_POST
@for_agent
def delete(request: PageRequest, agent: Agent, question_id: int) -> HttpResponse:
    """Delete a question; that can be undone."""
    question = _find(agent, question_id)
    questions.delete(question, now=timezone.now())
    undo = reverse("agent-golden-restore", args=[agent.name, question_id])
    return _answer(request, agent, _("The question is deleted."), undo=undo)


@require_POST
@for_agent
def restore(request: PageRequest, agent: Agent, question_id: int) -> HttpResponse:
    """Put back a question that was just deleted."""
    if questions.restore(agent, question_id, now=timezone.now()):
        return _answer(request, agent, _("The question is back."))
    return _answer(request, agent, _("The time to undo that is over; write it down again."))


@require_POST
@for_agent
@never_cache
def ask(request: PageRequest, agent: Agent) -> HttpResponse:
    """Ask all questions that may be asked: at once where they are few, else by a job."""
    mode = request.POST.get("mode", "")
    if mode not in MODES:
        raise Http404
    try:
        text = _ask(request, agent, mode)
    except NothingToAsk:
        text = _("There is no question that may be asked.")
    except (DatabaseError, BackendUnavailable):
        text = _("The store does not answer; nothing was asked.")
    return _answer(request, agent, text, mode=mode)


def _ask(request: PageRequest, agent: Agent, mode: str) -> str:
    """Ask, and return what came of it in words. Raises what a silent store raises."""
    now = timezone.now()
    opened, _silent = find_access(request, agent, now=now)
    asked = [each for each in questions.of_agent(agent) if opened.opens(each.user_id)]
    by = {"account_id": request.user.pk, "readings": opened.used_for(asked), "now": now}
    if len(asked) > AT_ONCE:
        asking.request(agent, mode, asked, **by)
        return _("They are being asked; this goes on by itself.")
    run = asking.ask_all(agent, mode, asked, **by)
    counts = {"passed": run.passed, "asked": run.passed + run.failed}
    return _("%(passed)d of %(asked)d passed.") % counts


@require_POST
@for_agent
@never_cache
def give_reason(request: PageRequest, agent: Agent) -> HttpResponse:
    """Let a reader ask what is about somebody else's memories, by a recorded reason."""
    if not request.user.has_perm(VIEW_CONTENT):
        raise PermissionDenied
    now, form = timezone.now(), ReasonForm(request.POST)
    if not form.is_valid():
        context = {**list_context(request, agent, now=now), "reason": form}
        return render_tab(request, agent, "memory/agent_golden.html", status=422, **context)
    opened, _silent = find_access(request, agent, now=now)
    about = {question.user_id for question in questions.of_agent(agent)}
    for user_id in sorted(each for each in about if not opened.opens(each)):
        reason = form.cleaned_data["reason"]
        trying.note_trial(request.user, agent, user_id, reason=reason, now=now)
    return redirect("agent-golden", agent.name)


@require_GET
@for_agent
@never_cache
def runs(request: PageRequest, agent: Agent) -> HttpResponse:
    """Show the runs that were kept, and two of them side by side: by default the last two."""
    kept = comparing.runs_of(agent)
    by_number = {str(run.pk): run for run in kept}
    after = by_number.get(request.GET.get("new", ""), kept[0] if kept else None)
    before = by_number.get(request.GET.get("old", ""), kept[1] if len(kept) > 1 else None)
    context: dict[str, Any] = {"runs": kept, "before": before, "after": after}
    if before and after and before != after:
        opened, _silent = find_access(request, agent, now=timezone.now())
        context["differences"] = [
            (each, each.question is not None and opened.opens(each.question.user_id))
            for each in comparing.compare(agent, before, after)
        ]
    return render_tab(request, agent, "memory/agent_golden_runs.html", **context)


def _find(agent: Agent, question_id: int) -> GoldenQuestion:
    question = questions.of_agent(agent).filter(pk=question_id).first()
    if question is None:
        raise Http404
    return question


def _refusal(request: PageRequest, agent: Agent, form: QuestionForm) -> ReasonForm | None:
    """Return the form for the reason that is wanted first; other obstacles go into `form`."""
    user_id = form.draft.user_id
    try:
        if not people.is_known(agent, user_id):
            form.add_error("user_id", _("This agent knows nobody by this name."))
            return None
    except (DatabaseError, BackendUnavailable):
        form.add_error(None, _("The store does not answer; try again shortly."))
        return None
    opened, _silent = find_access(request, agent, now=timezone.now())
    if opened.opens(user_id):
        return None
    if not request.user.has_perm(VIEW_CONTENT):
        form.add_error("user_id", _("They are somebody else's; you may not read contents."))
        return None
    why = ReasonForm(request.POST if "reason" in request.POST else None)
    if not why.is_valid():
        return why
    reason = why.cleaned_data["reason"]
    trying.note_trial(request.user, agent, user_id, reason=reason, now=timezone.now())
    return None


def _form_page(
    request: PageRequest, agent: Agent, form: QuestionForm, *, status: int = 200, **context: Any
) -> HttpResponse:
    try:
        subjects = previewing.find_subjects(request.user, agent, now=timezone.now())
    except (DatabaseError, BackendUnavailable):
        subjects = []
    if subjects and not form.is_bound and not form.initial["user_id"]:
        form.initial["user_id"] = subjects[0].user_id
    context |= {"form": form, "subjects": subjects}
    return render_tab(request, agent, "memory/agent_golden_form.html", status=status, **context)


def _answer(
    request: PageRequest, agent: Agent, text: str, *, undo: str = "", mode: str = ""
) -> HttpResponse:
    """Show the list as it is now, with a word on what was done."""
    if request.htmx:
        context = list_context(request, agent, mode=mode, now=timezone.now())
        return toasted(render_tab(request, agent, "memory/_golden.html", **context), text, undo)
    messages.success(request, text, extra_tags=undo)
    return redirect("agent-golden", agent.name)
