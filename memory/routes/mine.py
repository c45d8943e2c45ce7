"""Addresses about all that agents have of the account, below /me/memory/."""

from __future__ import annotations

from django.urls import path

from memory.views import mine

urlpatterns = [
    path("", mine.mine, name="mine"),
    path("pause/<str:agent>/", mine.pause, name="pause"),
    path("download/", mine.download, name="download"),
    path("erase/", mine.erase, name="erase-everything"),
]
