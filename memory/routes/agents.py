"""Addresses of operators about agents, below /agents/."""

from __future__ import annotations

from django.urls import path

from memory.views import agents

urlpatterns = [
    path("", agents.agent_list, name="agent-list"),
    path("<str:agent>/", agents.overview, name="agent-overview"),
    path("<str:agent>/activity/", agents.activity, name="agent-activity"),
    path("<str:agent>/switch/", agents.switch, name="agent-switch"),
]
