"""Counts of recalls, kept for a second by each process and written together.

A recall only adds to a number here: written at once, one that found nothing would wait for the
disk, and for whatever else writes to its store, ten times as long as it takes. A process that is
killed loses the recalls of its last second; one that ends writes them.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import date, datetime

from django.db import DatabaseError, IntegrityError, OperationalError, connections, transaction

from agents.models import Agent, is_user_id
from memory import latency
from memory.databases import store_alias
from memory.models import Scope, Store, StoreState
from memory.services.figures import counting

WAIT_SECONDS = 1.0
_ATTEMPTS = 5
_Key = tuple[int, str, date]
"""An agent, its user, the day."""
_Figures = Mapping[_Key, Counter[str]]

logger = logging.getLogger(__name__)
_lock = threading.Lock()
_pending: dict[str, dict[_Key, Counter[str]]] = {}
"""By store."""


def add(
    agent: Agent, user_id: str, *, found: bool, took_ms: float | None = None, now: datetime
) -> None:
    """Count a recall that `found` something or nothing; `took_ms` for a prefetch.

    It is in the store within `WAIT_SECONDS`; not at all where that takes no writes just then.
    """
    if not is_user_id(user_id):
        return
    figures = Counter(recalls=1, answered=int(found))
    if took_ms is not None:
        figures[f"took_{latency.bucket_of(took_ms)}"] = 1
    key = (agent.pk, user_id, counting.day_of(now))
    with _lock:
        is_first = not _pending
        of_store = _pending.setdefault(store_alias(agent), defaultdict(Counter))
        of_store[key].update(figures)
    if is_first:
        timer = threading.Timer(WAIT_SECONDS, _flush_and_close)
        timer.daemon = True
        timer.start()


def flush() -> None:
    """Write what was added; what a store does not take is dropped, and the log says so."""
    with _lock:
        pending = dict(_pending)
        _pending.clear()
    for alias, figures in pending.items():
        for part in _parts(alias, figures):
            try:
                _write_patiently(alias, part)
            except DatabaseError as error:
                lost = sum(each["recalls"] for each in part.values())
                logger.warning("store %s: %d recalls were not counted: %s", alias, lost, error)


def _flush_and_close() -> None:
    try:
        flush()
    finally:
        connections.close_all()  # those of this thread, which ends


def _parts(alias: str, figures: _Figures) -> list[_Figures]:
    """Return what is written in one transaction: SQLite waits for the disk once.

    On MySQL each user's alone: one who is being written to for long would keep the others' rows.
    """
    if connections[alias].vendor == "sqlite":
        return [figures]
    return [{key: own} for key, own in sorted(figures.items())]


def _write_patiently(alias: str, figures: _Figures) -> None:
    for attempt in range(1, _ATTEMPTS):
        try:
            return _write(alias, figures)
        # a deadlock, a store that is busy for long; or a user erased just now
        except (OperationalError, IntegrityError):
            time.sleep(0.1 * attempt)
    return _write(alias, figures)


def _write(alias: str, figures: _Figures) -> None:
    agents = {agent_id for agent_id, _, _ in figures}
    users = {user_id for _, user_id, _ in figures}
    stores = Store.objects.using(alias).filter(agent_id__in=agents)
    scopes = Scope.objects.using(alias).filter(kind="user", agent_id__in=agents, user_id__in=users)
    with transaction.atomic(using=alias):
        shut = set(stores.exclude(state=StoreState.OPEN).values_list("agent_id", flat=True))
        rows = scopes.values_list("agent_id", "user_id", "pk")
        found = {(agent_id, user_id): pk for agent_id, user_id, pk in rows}
        for (agent_id, user_id, day), own in figures.items():
            if agent_id in shut:
                continue
            if scope_id := found.get((agent_id, user_id)):
                counting.add_to_scope(alias, scope_id, day, own)
            counting.add_to_agent(alias, agent_id, user_id, day, own)


atexit.register(flush)
