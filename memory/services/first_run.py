"""What the first run tries and makes besides the first agent: the backends and its first key."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS, transaction

from agents import keys
from agents.keys import NewKey
from agents.models import Agent, ApiKey, Backend
from memory.databases import Place
from memory.services.moves.trials import SQLITE_FILE, Trial, try_place

_KEY_NAME = "first key"


def try_backends() -> list[Trial]:
    """Write to, and read from, each backend that can be reached; nothing stays of it."""
    places = [Place(Backend.SQLITE, SQLITE_FILE), Place(Backend.MYSQL, "")]
    return [try_place(place, make=True) for place in places]


def issue_first_key(agent: Agent, *, actor: Any, now: datetime) -> str:
    """Return a key of `agent`; an earlier one of here that nobody used is revoked.

    A page that was loaded again therefore leaves one key, the one that is seen.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        unseen = ApiKey.objects.filter(agent=agent, name=_KEY_NAME, last_used_at=None)
        for key in unseen.filter(revoked_at=None).select_related("agent"):
            keys.revoke(key, actor=actor, now=now)
        return keys.create(agent, NewKey(_KEY_NAME), actor=actor, now=now)[1]
