"""The first run in four steps: the operator, the backend, the first agent, its key.

Each step says by itself whether it is open, so that a reload, a lost session or a second
browser ends at the right one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth import login
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from agents.accounts import AlreadySetUp, create_operator
from agents.first_run import has_accounts
from agents.forms import BackendForm, FirstAgentForm, OperatorForm
from agents.models import Agent, ApiKey, Backend
from agents.preferences import PageRequest, remember_in_cookies
from memory.errors import BackendUnavailable
from memory.services import configuring, first_run
from memory.views.agents.snippets import Caller, curl_save

View = Callable[[PageRequest], HttpResponse]

STEPS = ("setup", "setup-backend", "setup-agent", "setup-key")


def open_steps() -> tuple[str, ...]:
    """Return the steps that can be taken now, the next one first; none after the setup."""
    if not has_accounts():
        return STEPS[:1]
    agents = Agent.objects.values_list("pk", flat=True)[:2]
    if not agents:
        return STEPS[1:3]
    is_new = len(agents) == 1 and not ApiKey.objects.exclude(last_used_at=None).exists()
    return STEPS[3:] if is_new else ()


def step(name: str) -> Callable[[View], View]:
    """Show a step while it is open: the first to anybody, the others to superusers."""

    def decorate(view: View) -> View:
        @never_cache
        @require_http_methods(["GET", "POST"])
        @wraps(view)
        def answer(request: PageRequest) -> HttpResponse:
            steps = open_steps()
            if not steps and request.user.is_authenticated:
                return redirect("overview")  # who went back in the browser
            if not steps:
                raise Http404
            if steps != STEPS[:1] and not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if steps != STEPS[:1] and not request.user.is_superuser:
                raise Http404
            return view(request) if name in steps else redirect(steps[0])

        return answer

    return decorate


@step("setup")
def operator(request: PageRequest) -> HttpResponse:
    """Make the first account and log it in."""
    initial = OperatorForm.guess(language=get_language())
    form = OperatorForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            account = create_operator(**form.account())
        except AlreadySetUp:  # another browser was quicker
            return redirect("setup")
        language = form.cleaned_data["language"]
        is_other_language = language != get_language()
        login(request, account, backend="django.contrib.auth.backends.ModelBackend")
        response = _go_on(request, "setup-backend", whole_page=is_other_language)
        remember_in_cookies(response, language=language)
        return response
    return _show(request, "setup", form)


@step("setup-backend")
def backend(request: PageRequest) -> HttpResponse:
    """Try the backends and let one be chosen."""
    trials = first_run.try_backends()
    obstacles = {each.backend.value: each.obstacle for each in trials}
    form = BackendForm(request.POST or None, initial={"backend": Backend.SQLITE})
    if request.method == "POST" and form.is_valid():
        chosen = form.cleaned_data["backend"]
        if not obstacles[chosen]:
            return _go_on(request, "setup-agent", f"?backend={chosen}")
        form.add_error("backend", _("This one does not work; choose the other, or test again."))
    return _show(request, "setup-backend", form, trials=trials)


@step("setup-agent")
def agent(request: PageRequest) -> HttpResponse:
    """Make the first agent."""
    initial = {"backend": request.GET.get("backend", Backend.SQLITE), "language": get_language()}
    form = FirstAgentForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            configuring.create(**form.cleaned_data, actor=request.user, now=timezone.now())
        except BackendUnavailable as error:
            form.add_error("backend", str(error))
        except ValidationError as error:
            form.add_error("name", error.messages)
        else:
            return _go_on(request, "setup-key")
    return _show(request, "setup-agent", form)


@step("setup-key")
def key(request: PageRequest) -> HttpResponse:
    """Issue the first agent's key and show it, this once, with a call that is ready to run."""
    found = Agent.objects.get()
    context: dict[str, Any] = {"agent": found}
    if request.method == "POST":
        issued = first_run.issue_first_key(found, actor=request.user, now=timezone.now())
        # the operator, who then finds what was saved
        caller = Caller(request, found, request.user.get_username(), issued)
        context |= {"key": issued, "snippet": curl_save(caller)}
    return _show(request, "setup-key", **context)


def _show(request: PageRequest, name: str, form: Any = None, **context: Any) -> HttpResponse:
    template = "memory/setup.html#step" if request.htmx else "memory/setup.html"
    context |= {"form": form, "step": name, "number": STEPS.index(name) + 1}
    status = 422 if form is not None and form.errors else 200
    return render(request, template, context, status=status)


def _go_on(
    request: PageRequest, name: str, query: str = "", *, whole_page: bool = False
) -> HttpResponse:
    """Lead to another step, which htmx puts in place of this one unless the page changes."""
    address = resolve_url(name) + query
    if request.htmx and whole_page:
        return HttpResponseClientRedirect(address)
    return redirect(address)
