"""Background work; beat's schedule is in the settings."""

from __future__ import annotations

from celery import shared_task

from memory.databases import known_aliases, migrate_store
from memory.services import maintenance


@shared_task
def optimize_indexes() -> None:
    """Merge the full-text index of every store."""
    for alias in known_aliases():
        migrate_store(alias)
        maintenance.optimize(alias)
