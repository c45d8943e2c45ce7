"""Addresses of an agent's memories, below /api/v1/agents/{agent}/."""

from __future__ import annotations

from django.urls import path

from memory.api import configs, memories, recall, tools

urlpatterns = [
    path("memory-config/", configs.MemoryConfigView.as_view(), name="memory-config"),
    path("memories/", memories.MemoriesView.as_view(), name="memories"),
    path("memories/batch/", memories.BatchView.as_view(), name="memories-batch"),
    path("memories/<int:memory_id>/", memories.MemoryView.as_view(), name="memory"),
    path("memories/<int:memory_id>/touch/", memories.TouchView.as_view(), name="memory-touch"),
    path(
        "memories/<int:memory_id>/reinforce/",
        memories.ReinforceView.as_view(),
        name="memory-reinforce",
    ),
    path(
        "memories/<int:memory_id>/restore/", memories.RestoreView.as_view(), name="memory-restore"
    ),
    path(
        "memories/<int:memory_id>/history/", memories.HistoryView.as_view(), name="memory-history"
    ),
    path("search/", recall.SearchView.as_view(), name="search"),
    path("prefetch/", recall.PrefetchView.as_view(), name="prefetch"),
    path("tools/", tools.ToolsView.as_view(), name="tools"),
    path("tools/<str:tool>/", tools.ToolView.as_view(), name="tool"),
]
