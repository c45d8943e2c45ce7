"""Addresses of operators about agents, below /agents/."""

from __future__ import annotations

from django.urls import path

from memory.views import agents, connect

urlpatterns = [
    path("", agents.agent_list, name="agent-list"),
    path("<str:agent>/", agents.overview, name="agent-overview"),
    path("<str:agent>/switch/", agents.switch, name="agent-switch"),
    path("<str:agent>/connect/", connect.connect, name="agent-connect"),
]
