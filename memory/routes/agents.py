"""Addresses of operators about agents, below /agents/."""

from __future__ import annotations

from django.urls import path

from memory.views.agents import (
    connect,
    golden,
    new,
    preview,
    roster,
    settings,
    store,
    synonyms,
)

urlpatterns = [
    path("", roster.agent_list, name="agent-list"),
    # no agent can be called so
    path("+new/", new.new, name="agent-new"),
    path("<str:agent>/", roster.overview, name="agent-overview"),
    path("<str:agent>/activity/", roster.activity, name="agent-activity"),
    path("<str:agent>/switch/", roster.switch, name="agent-switch"),
    path("<str:agent>/settings/", settings.settings, name="agent-settings"),
    path("<str:agent>/settings/delete/", settings.delete, name="agent-delete"),
    path("<str:agent>/settings/preview/", preview.preview, name="agent-preview"),
    path("<str:agent>/settings/reason/", preview.give_reason, name="agent-preview-reason"),
    path("<str:agent>/settings/store/", store.store, name="agent-store"),
    path("<str:agent>/settings/store/test/", store.test, name="agent-store-test"),
    path("<str:agent>/settings/store/move/", store.move, name="agent-store-move"),
    path("<str:agent>/settings/store/copies/", store.erase_copies, name="agent-store-erase"),
    path("<str:agent>/synonyms/", synonyms.table, name="agent-synonyms"),
    path("<str:agent>/synonyms/restore/", synonyms.restore, name="agent-synonyms-restore"),
    path("<str:agent>/golden/", golden.golden, name="agent-golden"),
    path("<str:agent>/golden/new/", golden.new, name="agent-golden-new"),
    path("<str:agent>/golden/ask/", golden.ask, name="agent-golden-ask"),
    path("<str:agent>/golden/reason/", golden.give_reason, name="agent-golden-reason"),
    path("<str:agent>/golden/runs/", golden.runs, name="agent-golden-runs"),
    path("<str:agent>/golden/<int:question_id>/", golden.edit, name="agent-golden-edit"),
    path("<str:agent>/golden/<int:question_id>/delete/", golden.delete, name="agent-golden-delete"),
    path(
        "<str:agent>/golden/<int:question_id>/restore/",
        golden.restore,
        name="agent-golden-restore",
    ),
    path("<str:agent>/connect/", connect.connect, name="agent-connect"),
]
