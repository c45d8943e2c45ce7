"""From a key to its agent. Keys are random, so one SHA-256 hides them well enough."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from uuid import UUID

from agents.models import Agent, ApiKey, validate_user_id

KEY_PREFIX = "hippo_"


def issue_key(
    agent: Agent,
    *,
    name: str = "",
    user_id: str = "",
    expires_at: datetime | None = None,
    ticket: UUID | None = None,
) -> tuple[ApiKey, str]:
    """Create a key of `agent`; return its row and the key, which cannot be shown again.

    With `user_id` the key reaches that user's memories only. It leaves no record: people's
    keys are made by `agents.keys`. Raises ValidationError for a malformed `user_id`.
    """
    if user_id:
        validate_user_id(user_id)
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    row = ApiKey.objects.create(
        agent=agent,
        name=name,
        user_id=user_id,
        expires_at=expires_at,
        ticket=ticket,
        prefix=key[:12],
        hashed_key=_hash(key),
    )
    return row, key


def find_key(key: str, *, now: datetime) -> ApiKey | None:
    """Return the live key equal to `key` with its agent loaded, and note its use.

    None where the key is unknown, expired or revoked or its agent inactive. The note is made
    at most once a minute, so that a busy agent does not write at every call.
    """
    found = (
        ApiKey.objects.live(now)
        .select_related("agent__memory_config")
        .filter(hashed_key=_hash(key), agent__is_active=True)
        .first()
    )
    if found and (not found.last_used_at or (now - found.last_used_at).total_seconds() > 60):
        ApiKey.objects.filter(pk=found.pk).update(last_used_at=now)
        found.last_used_at = now
    return found


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
