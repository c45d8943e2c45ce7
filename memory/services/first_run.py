"""What the first run tries and makes besides the first agent: the backends and its first key."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, transaction
from django.utils import timezone

from agents.auth import issue_key
from agents.models import Agent, ApiKey, Backend
from memory.databases import Place
from memory.services.trials import SQLITE_FILE, Trial, try_place

_KEY_NAME = "first key"


def try_backends() -> list[Trial]:
    """Write to, and read from, each backend that can be reached; nothing stays of it."""
    places = [Place(Backend.SQLITE, SQLITE_FILE), Place(Backend.MYSQL, "")]
    return [try_place(place, make=True) for place in places]


def issue_first_key(agent: Agent) -> str:
    """Return a key of `agent`; an earlier one of here that nobody used is revoked.

    A page that was loaded again therefore leaves one key, the one that is seen.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        unseen = ApiKey.objects.filter(agent=agent, name=_KEY_NAME, last_used_at=None)
        unseen.filter(revoked_at=None).update(revoked_at=timezone.now())
        return issue_key(agent, name=_KEY_NAME)[1]
