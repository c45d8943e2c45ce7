"""How somebody wants to see the pages: language, time zone, theme.

The account decides, then the cookie, then what the browser asks for.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django_htmx.middleware import HtmxDetails

from agents.models import Profile, Theme


class PageRequest(HttpRequest):
    """A request for a page, as it has come through the middleware."""

    htmx: HtmxDetails
    user: Any


THEME_COOKIE = "theme"
_YEAR_SECONDS = 365 * 24 * 60 * 60


class PreferencesMiddleware:
    """Sets language and time zone of a page for the account that sees it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer in the account's language and time zone; programs have neither."""
        if request.path.startswith("/api/") or not request.user.is_authenticated:
            return self._get_response(request)
        profile = profile_of(request)
        if profile.language:
            translation.activate(profile.language)
            request.LANGUAGE_CODE = profile.language
        zone = profile.time_zone if profile.time_zone in _time_zones() else ""
        with timezone.override(zone or settings.TIME_ZONE):
            return self._get_response(request)


@cache
def _time_zones() -> set[str]:
    """Return the names of all time zones; to look for them opens 600 files."""
    return zoneinfo.available_timezones()


def profile_of(request: Any) -> Profile:
    """Return the profile of the account, unsaved where it never chose anything; one query."""
    if not hasattr(request, "profile"):
        found = Profile.objects.filter(account=request.user).first()
        request.profile = found or Profile(account=request.user)
    profile: Profile = request.profile
    return profile


def appearance(request: Any) -> dict[str, Any]:
    """Give templates the theme, whether single keys are shortcuts and sign-up is open."""
    return {**_appearance(request), "is_signup_open": settings.SIGNUP_OPEN}


def _appearance(request: Any) -> dict[str, Any]:
    if getattr(request, "user", None) and request.user.is_authenticated:
        profile = profile_of(request)
        return {"theme": profile.theme, "has_shortcuts": profile.has_shortcuts}
    return {"theme": theme_in_cookie(request), "has_shortcuts": True}


def theme_in_cookie(request: HttpRequest) -> str:
    """Return the theme that the browser keeps, whoever uses it."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in Theme.values else Theme.AUTO


def remember_in_cookies(response: HttpResponse, *, language: str = "", theme: str = "") -> None:
    """Keep a choice for whoever is not logged in, and for the login page."""
    chosen = {settings.LANGUAGE_COOKIE_NAME: language, THEME_COOKIE: theme}
    for name, value in chosen.items():
        if value:
            response.set_cookie(name, value, max_age=_YEAR_SECONDS, samesite="Lax")
