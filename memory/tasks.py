"""Background work; beat's schedule is in the settings."""

from __future__ import annotations

import logging

from celery import shared_task
from django.db import DatabaseError

from memory.databases import known_aliases, migrate_store
from memory.errors import HippoError
from memory.services import maintenance

logger = logging.getLogger(__name__)


@shared_task
def optimize_indexes() -> None:
    """Merge the full-text index of every store."""
    for alias in known_aliases():
        try:
            migrate_store(alias)
            maintenance.optimize(alias)
        except (DatabaseError, HippoError):
            logger.exception("%s: the index is not optimised", alias)
