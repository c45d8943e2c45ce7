"""Addresses of the memory pages, below /memories/."""

from __future__ import annotations

from django.urls import path

from memory.views import alike, browse, bulk, changes, create

urlpatterns = [
    path("", browse.memory_list, name="home"),
    path("new/", create.new, name="memory-new"),
    path("similar/", alike.similar, name="memory-similar"),
    path("counts/", browse.counts, name="memory-counts"),
    path("bulk/", bulk.change, name="memory-bulk"),
    path("bulk/<int:job_id>/", bulk.progress, name="memory-bulk-progress"),
    path("undo/", bulk.undo, name="memory-undo"),
    path("trash/", browse.trash, name="memory-trash"),
    path("<int:memory_id>/", browse.memory_detail, name="memory-detail"),
    path("<int:memory_id>/alike/", alike.beside, name="memory-alike"),
    path("<int:memory_id>/edit/", changes.edit, name="memory-edit"),
    path("<int:memory_id>/mark/", changes.mark, name="memory-mark"),
    path("<int:memory_id>/revert/<int:version>/", changes.revert, name="memory-revert"),
    path("<int:memory_id>/delete/", changes.delete, name="memory-delete"),
    path("<int:memory_id>/restore/", changes.restore, name="memory-restore"),
    path("<int:memory_id>/erase/", changes.erase, name="memory-erase"),
]
