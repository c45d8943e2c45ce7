"""Addresses of operators about agents, below /agents/."""

from __future__ import annotations

from django.urls import path

from memory.views import agent_new, agent_preview, agent_settings, agent_store, agents, connect

urlpatterns = [
    path("", agents.agent_list, name="agent-list"),
    # no agent can be called so
    path("+new/", agent_new.new, name="agent-new"),
    path("<str:agent>/", agents.overview, name="agent-overview"),
    path("<str:agent>/activity/", agents.activity, name="agent-activity"),
    path("<str:agent>/switch/", agents.switch, name="agent-switch"),
    path("<str:agent>/settings/", agent_settings.settings, name="agent-settings"),
    path("<str:agent>/settings/delete/", agent_settings.delete, name="agent-delete"),
    path("<str:agent>/settings/preview/", agent_preview.preview, name="agent-preview"),
    path("<str:agent>/settings/reason/", agent_preview.give_reason, name="agent-preview-reason"),
    path("<str:agent>/settings/store/", agent_store.store, name="agent-store"),
    path("<str:agent>/settings/store/test/", agent_store.test, name="agent-store-test"),
    path("<str:agent>/settings/store/move/", agent_store.move, name="agent-store-move"),
    path("<str:agent>/settings/store/copies/", agent_store.erase_copies, name="agent-store-erase"),
    path("<str:agent>/connect/", connect.connect, name="agent-connect"),
]
