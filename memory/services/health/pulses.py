"""Signs of life of what runs beside the web server, kept where every process can see them."""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime, timedelta

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.utils import timezone

from memory.models import Pulse

BEAT = "beat"
"""The scheduler went round."""
WORKER = "worker"
"""Some worker runs, though it may have nothing to do."""
ROUND = "round"
"""A worker did what beat had sent: beat, broker and worker all work."""
EVERY_SECONDS = 20
SILENCE = timedelta(minutes=2)
"""After this long without a sign of life something counts as dead."""

logger = logging.getLogger(__name__)


def note(name: str) -> None:
    """Note a sign of life; where the control database fails, the next one may come through."""
    now = timezone.now()
    try:
        if not Pulse.objects.filter(pk=name).update(at=now):
            Pulse.objects.bulk_create([Pulse(name=name, at=now)], ignore_conflicts=True)
    except Error as error:
        logger.warning("no sign of life of %s: %s", name, error)
        connections[DEFAULT_DB_ALIAS].close()


def keep_noting(name: str) -> None:
    """Note signs of life from now on, as long as the process lives."""

    def go_on() -> None:
        while True:
            note(name)
            connections[DEFAULT_DB_ALIAS].close()
            time.sleep(EVERY_SECONDS)

    threading.Thread(target=go_on, name=f"pulse of {name}", daemon=True).start()


def latest() -> dict[str, datetime]:
    """Return the last sign of life of each that ever gave one; one query."""
    return dict(Pulse.objects.values_list("name", "at"))
