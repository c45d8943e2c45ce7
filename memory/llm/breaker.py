"""Not waiting again for what has just been silent."""

from __future__ import annotations

import threading
import time

_FIRST_SECONDS = 2.0
_LONGEST_SECONDS = 30.0


class Breaker:
    """Opens with each failure, for longer each time in a row; then lets one call through to see.

    Of one process. Called by many threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0
        self._open_until = 0.0

    def admits(self, *, seconds: float) -> bool:
        """Return whether a call may be made, which takes `seconds` at most and is then noted."""
        with self._lock:
            now = time.monotonic()
            if now < self._open_until:
                return False
            if self._failures:
                # half open: while this one looks, the others do not wait with it
                self._open_until = now + seconds
            return True

    def note(self, *, is_well: bool) -> None:
        """Note how a call ended."""
        with self._lock:
            self._failures = 0 if is_well else self._failures + 1
            pause = min(_FIRST_SECONDS * 2 ** (self._failures - 1), _LONGEST_SECONDS)
            self._open_until = 0.0 if is_well else time.monotonic() + pause
