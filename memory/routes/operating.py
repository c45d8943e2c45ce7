"""Addresses for operators that are neither about agents nor about people."""

from __future__ import annotations

from django.urls import path

from memory.views import models, playground, system, trail

urlpatterns = [
    path("audit/", trail.audit, name="audit"),
    path("audit/export.<str:kind>", trail.export, name="audit-export"),
    path("system/", system.page, name="system"),
    path("settings/", models.models, name="models"),
    path("settings/<str:purpose>/", models.save, name="model-save"),
    path("settings/<str:purpose>/test/", models.test, name="model-test"),
    path("playground/", playground.playground, name="playground"),
]
