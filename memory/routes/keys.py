"""Addresses of operators about the keys of all agents, below /keys/."""

from __future__ import annotations

from django.urls import path

from memory.views import keys

urlpatterns = [
    path("", keys.key_list, name="keys"),
    path("<int:key_id>/rotate/", keys.rotate, name="key-rotate"),
    path("<int:key_id>/revoke/", keys.revoke, name="key-revoke"),
    path("<int:key_id>/restore/", keys.restore, name="key-restore"),
    path("<int:key_id>/first-call/", keys.first_call, name="key-first-call"),
]
