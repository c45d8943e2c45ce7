"""Addresses for operators that are neither about agents nor about people."""

from __future__ import annotations

from django.urls import path

from memory.views import playground, system, trail

urlpatterns = [
    path("audit/", trail.audit, name="audit"),
    path("audit/export.<str:kind>", trail.export, name="audit-export"),
    path("system/", system.page, name="system"),
    path("playground/", playground.playground, name="playground"),
]
