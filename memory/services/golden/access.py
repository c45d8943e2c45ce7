"""About whose memories an account may ask golden questions, and read what they ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agents.models import Agent, AuditEntry
from memory.models import GoldenQuestion
from memory.services import demo, trying


@dataclass(frozen=True, slots=True)
class Access:
    """Users whose memories need no reason, and those for whom one was given, with its record."""

    free: frozenset[str]
    readings: Mapping[str, AuditEntry] = field(default_factory=dict)

    def opens(self, user_id: str) -> bool:
        """Return whether questions about a user may be read and asked."""
        return user_id in self.free or user_id in self.readings

    def used_for(self, asked: Iterable[GoldenQuestion]) -> list[AuditEntry]:
        """Return the records under which questions are asked."""
        users = {question.user_id for question in asked} - self.free
        return [self.readings[user_id] for user_id in sorted(users)]


def own_of(account: Any, agent: Agent, *, now: datetime) -> Access:
    """Return the account's own identities, and what it gave a reason for; asks no store."""
    own = trying.own_users(account, agent)
    return Access(frozenset(own), trying.open_readings(account, agent, now=now))


def access_of(account: Any, agent: Agent, *, now: datetime) -> Access:
    """Return the same with the demo's people. Raises what a silent store raises."""
    own = own_of(account, agent, now=now)
    return Access(own.free.union(demo.demo_users(agent)), own.readings)
