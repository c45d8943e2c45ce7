"""What this process keeps of the scopes that were asked last, within a number of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from django.conf import settings


class Sized(Protocol):
    """What can be kept."""

    @property
    def nbytes(self) -> int:
        """Return about how much memory it takes."""


Kept = TypeVar("Kept", bound=Sized)


class ScopeCache(Generic[Kept]):
    """Least recently used out first; used by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Kept, int]] = OrderedDict()
        self._size = 0

    @property
    def nbytes(self) -> int:
        """Return how much memory all of it took when it was kept."""
        return self._size

    def get(self, key: Hashable) -> Kept | None:
        """Return what is kept under a key, and keep it longer."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: Hashable, value: Kept) -> None:
        """Keep what is new or has grown, and let go of what was not asked for longest.

        What alone is larger than the bound is not kept.
        """
        size = value.nbytes
        with self._lock:
            self._drop(key)
            if size > bound_bytes():
                return
            self._kept[key] = value, size
            self._size += size
            while self._size > bound_bytes():
                self._drop(next(iter(self._kept)))

    def drop(self, key: Hashable) -> None:
        """Forget one."""
        with self._lock:
            self._drop(key)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._kept.clear()
            self._size = 0

    def _drop(self, key: Hashable) -> None:
        if key in self._kept:
            self._size -= self._kept.pop(key)[1]


def bound_bytes() -> int:
    """Return how much a cache may hold: there are two, of words and of vectors."""
    return int(settings.SEARCH_CACHE_MB * 2**20 // 2)
