"""Addresses of the first run, below /setup/."""

from __future__ import annotations

from django.urls import path

from memory.views import setup

urlpatterns = [
    path("", setup.operator, name="setup"),
    path("backend/", setup.backend, name="setup-backend"),
    path("agent/", setup.agent, name="setup-agent"),
    path("key/", setup.key, name="setup-key"),
]
