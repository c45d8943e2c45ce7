"""Looking through the audit: filters, pages by key, and all of it for an export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth import get_user_model
from django.core import signing
from django.db.models import Q, QuerySet

from agents.models import Agent, AuditEntry

_CHUNK = 500


class NoCursor(ValueError):
    """A cursor that no page of the audit gave."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries are asked for: names exactly, times from `since` until before `until`."""

    action: str = ""
    actor: str = ""
    about: str = ""
    """A user name or a user_id."""
    agent: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def entries(self) -> QuerySet[AuditEntry]:
        """Return the entries, newest first. Names are looked up first: the keys are indexed."""
        found = AuditEntry.objects.order_by("-created_at", "-id")
        if self.action:
            found = found.filter(action=self.action)
        if self.actor:
            found = found.filter(_of_account("actor", self.actor))
        if self.about:
            found = found.filter(Q(user_id=self.about) | _of_account("subject", self.about))
        if self.agent:
            named = Q(name=self.agent) | Q(display_name=self.agent)
            keys = list(Agent.objects.filter(named).values_list("pk", flat=True))
            found = found.filter(Q(agent__in=keys) | Q(agent=None, agent_name=self.agent))
        if self.since:
            found = found.filter(created_at__gte=self.since)
        if self.until:
            found = found.filter(created_at__lt=self.until)
        return found


def page(wanted: Wanted, cursor: str, *, limit: int) -> tuple[list[AuditEntry], str]:
    """Return entries and the cursor of the following page, or ''. Raises NoCursor."""
    rows = list(_after(wanted.entries(), cursor)[: limit + 1])
    shown = rows[:limit]
    return shown, _cursor_at(shown[-1]) if len(rows) > limit else ""


def walk(wanted: Wanted) -> Iterator[AuditEntry]:
    """Yield every entry, newest first; reads in chunks and holds no statement open between."""
    found = wanted.entries()
    chunk = list(found[:_CHUNK])
    while chunk:
        yield from chunk
        chunk = list(_behind(found, chunk[-1].created_at, chunk[-1].pk)[:_CHUNK])


def _of_account(field: str, name: str) -> Q:
    """Return what finds entries of an account by its name, of one that is gone by its text."""
    account = get_user_model().objects.filter(username=name).first()
    gone = Q(**{field: None, f"{field}_name": name})
    return gone if account is None else gone | Q(**{field: account.pk})


def _after(found: QuerySet[AuditEntry], cursor: str) -> QuerySet[AuditEntry]:
    if not cursor:
        return found
    try:
        text, entry_id = json.loads(signing.b64_decode(cursor.encode()))
        created_at = datetime.fromisoformat(text)
        if not isinstance(entry_id, int) or created_at.tzinfo is None:
            raise ValueError
    except (ValueError, TypeError) as error:
        raise NoCursor(cursor) from error
    return _behind(found, created_at, entry_id)


def _behind(found: QuerySet[AuditEntry], at: datetime, entry_id: int) -> QuerySet[AuditEntry]:
    # the first condition alone says where an index is entered
    return found.filter(Q(created_at__lt=at) | Q(id__lt=entry_id), created_at__lte=at)


def _cursor_at(entry: AuditEntry) -> str:
    packed = json.dumps([entry.created_at.isoformat(), entry.pk]).encode()
    return signing.b64_encode(packed).decode()
