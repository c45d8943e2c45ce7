"""Beat's scheduler, which leaves a sign of life."""

from __future__ import annotations

import time
from typing import Any

from celery.beat import PersistentScheduler

from memory.services.health import pulses


class Scheduler(PersistentScheduler):
    """Celery's own; each round of it is noted, so that a dead one is told from a dead worker."""

    _noted = 0.0

    def tick(self, *args: Any, **options: Any) -> float:
        """Send what is due; return the seconds until something is due again."""
        seconds: float = super().tick(*args, **options)
        if time.monotonic() - self._noted >= pulses.EVERY_SECONDS:
            pulses.note(pulses.BEAT)
            self._noted = time.monotonic()
        return seconds
