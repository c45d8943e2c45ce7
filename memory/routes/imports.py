"""Addresses of imports, below /import/."""

from __future__ import annotations

from django.urls import path

from memory.views import imports

urlpatterns = [
    path("", imports.upload, name="import"),
    path("<int:job_id>/", imports.check, name="import-check"),
    path("<int:job_id>/start/", imports.start, name="import-start"),
]
