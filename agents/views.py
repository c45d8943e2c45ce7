"""Pages about oneself: how the pages look, and who one is."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.forms import ProfileForm
from agents.models import Theme
from agents.preferences import profile_of, remember_in_cookies


@require_POST
def look(request: HttpRequest) -> HttpResponse:
    """Change language or theme, for the account or, before login, for the browser."""
    language = request.POST.get("language", "")
    theme = request.POST.get("theme", "")
    language = language if language in dict(settings.LANGUAGES) else ""
    theme = theme if theme in Theme.values else ""
    if request.user.is_authenticated:
        profile = profile_of(request)
        profile.language = language or profile.language
        profile.theme = theme or profile.theme
        profile.save()
    response = redirect(safe_next(request))
    remember_in_cookies(response, language=language, theme=theme)
    return response


@login_required
@require_http_methods(["GET", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    """Show and keep how the account wants to see the pages."""
    form = ProfileForm(request.POST or None, instance=profile_of(request))
    if request.method == "POST" and form.is_valid():
        profile = form.save()
        with translation.override(profile.language or translation.get_language()):
            messages.success(request, _("Saved."))
        response = redirect("preferences")
        remember_in_cookies(response, language=profile.language, theme=profile.theme)
        return response
    status = 422 if form.errors else 200
    return render(request, "agents/preferences.html", {"form": form}, status=status)


def safe_next(request: HttpRequest, otherwise: str = "/") -> str:
    """Return where the form was, if that is here."""
    target = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        return target
    return otherwise
