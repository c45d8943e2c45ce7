"""Addresses for operators about people, below /users/."""

from __future__ import annotations

from django.urls import path

from memory.views import people

urlpatterns = [
    path("", people.users, name="users"),
    path("read/", people.give_reason, name="read-reason"),
    path("read/<int:entry_id>/", people.read, name="read"),
]
