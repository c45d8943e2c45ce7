"""Addresses of the operators' API, below /api/v1/."""

from __future__ import annotations

from django.urls import path

from agents import api

urlpatterns = [
    path("agents/", api.AgentsView.as_view(), name="agents"),
    path("agents/<str:agent>/", api.AgentDetailView.as_view(), name="agent"),
    path("agents/<str:agent>/keys/", api.KeysView.as_view(), name="agent-keys"),
    path("agents/<str:agent>/keys/<int:key_id>/", api.KeyDetailView.as_view(), name="agent-key"),
    path(
        "agents/<str:agent>/keys/<int:key_id>/rotate/",
        api.RotateView.as_view(),
        name="agent-key-rotate",
    ),
]
