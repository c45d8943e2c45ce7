"""Memory ids: 53-bit, time-ordered, made by the application.

40 bits of milliseconds since 2026, 7 bits of node, 6 bits of sequence: room to 2060, 128
processes that write at once, 64,000 ids a second each. They fit a JSON number exactly.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta

from django.db import DEFAULT_DB_ALIAS, DatabaseError, IntegrityError, transaction

from memory.errors import ClockWrong
from memory.models import NodeLease

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_NODE_BITS, _SEQUENCE_BITS = 7, 6
NODES = 1 << _NODE_BITS
MAX_ID = (1 << 53) - 1
_LEASE = timedelta(minutes=2)


class IdGenerator:
    """Makes ids for one process; lends itself a node number and renews it as needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._node = -1
        self._holder = ""
        self._expires_at = EPOCH
        self._last = 0

    def next_ids(self, count: int, *, now: datetime) -> list[int]:
        """Return `count` new ids in ascending order, greater than all made here before.

        Call it before opening a transaction: a lease taken inside is lost by a rollback.
        Raises DatabaseError where all node numbers are taken, ClockWrong before 2026.
        """
        if now < EPOCH:
            raise ClockWrong(f"The clock says {now:%Y-%m-%d}; set it right to save memories.")
        with self._lock:
            if self._pid != os.getpid() or now >= self._expires_at - _LEASE / 2:
                self._lease(now)
            ids = []
            for _ in range(count):
                milliseconds = int((time.time() - EPOCH.timestamp()) * 1000)
                # the clock may stand still or go back; ids do not
                tick = max(milliseconds << _SEQUENCE_BITS, self._last + 1)
                self._last = tick
                milliseconds, sequence = divmod(tick, 1 << _SEQUENCE_BITS)
                ids.append((milliseconds << _NODE_BITS | self._node) << _SEQUENCE_BITS | sequence)
            return ids

    def _lease(self, now: datetime) -> None:
        """Renew this process's node number, or take a free or lapsed one."""
        if self._pid != os.getpid():
            self._pid, self._node, self._holder = os.getpid(), -1, str(uuid.uuid4())
            atexit.register(self._give_back)
        expires_at = now + _LEASE
        mine = NodeLease.objects.filter(node=self._node, holder=self._holder)
        if not mine.update(expires_at=expires_at):
            self._node = self._take(now, expires_at)
        self._expires_at = expires_at

    def _give_back(self) -> None:
        # a lease that cannot be given back lapses by itself
        with contextlib.suppress(DatabaseError):
            NodeLease.objects.filter(node=self._node, holder=self._holder).delete()

    def _take(self, now: datetime, expires_at: datetime) -> int:
        for node in NodeLease.objects.filter(expires_at__lt=now).values_list("node", flat=True):
            lapsed = NodeLease.objects.filter(node=node, expires_at__lt=now)
            if lapsed.update(holder=self._holder, expires_at=expires_at):
                return node
        taken = set(NodeLease.objects.values_list("node", flat=True))
        for node in sorted(set(range(NODES)) - taken):
            try:
                with transaction.atomic(using=DEFAULT_DB_ALIAS):
                    NodeLease.objects.create(node=node, holder=self._holder, expires_at=expires_at)
            except IntegrityError:
                continue  # another process was quicker
            return node
        raise DatabaseError(
            f"All {NODES} node numbers are in use; a stopped process gives its own back "
            f"after {_LEASE.seconds} seconds."
        )


_generator = IdGenerator()
next_ids = _generator.next_ids
