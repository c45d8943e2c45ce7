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
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Return how much memory all of it takes."""
        with self._lock:
            return sum(each.nbytes for each in self._kept.values())

    def get(self, key: Hashable) -> Kept | None:
        """Return what is kept under a key, and keep it longer."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: Hashable, value: Kept) -> None:
        """Keep a value, and let go of what was not asked for longest, past the bound."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            size = sum(each.nbytes for each in self._kept.values())
            while size > bound_bytes() and len(self._kept) > 1:
                size -= self._kept.popitem(last=False)[1].nbytes

    def drop(self, key: Hashable) -> None:
        """Forget one."""
        with self._lock:
            self._kept.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._kept.clear()


def bound_bytes() -> int:
    """Return how much a cache may hold: there are two, of words and of vectors."""
    return int(settings.SEARCH_CACHE_MB * 2**20 // 2)
