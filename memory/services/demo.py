"""Demo data: three agents, their people, and what the agents remember of them."""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from django.contrib.auth import get_user_model
from django.db import transaction

from agents.models import Agent, Backend, Identity
from memory.models import Memory, Status
from memory.services.context import prefetch
from memory.services.figures import recall_counts
from memory.services.transfers.transfer import import_lines

DEMO_FILE = Path(__file__).resolve().parent.parent / "demo" / "demo.json"
_REHEARSED_DAYS = 14


@dataclass(frozen=True, slots=True)
class Login:
    """A demo account; the password is known only while it is being made."""

    username: str
    password: str
    role: str


def load_demo(*, now: datetime) -> list[Login]:
    """Create the demo's agents, accounts and memories; return the accounts made by this call.

    Safe to repeat: what is there stays as it is, and only what is missing is added.
    """
    demo = _read()
    for each in demo["agents"]:
        is_new = not Agent.objects.filter(name=each["name"]).exists()
        if is_new:
            Agent.objects.create_agent(**each, backend=Backend.SQLITE)
        _remember(each["name"], demo["memories"], now=now)
        if is_new:
            _rehearse(each["name"], now=now)
    return [login for each in demo["users"] if (login := _create_account(each))]


def demo_users(agent: Agent) -> list[str]:
    """Return whom the demo made up for `agent` to remember, those with most memories first.

    A query for each person that the demo has for an agent of this name.
    """
    shipped = sorted(_shipped(agent.name).items(), key=lambda each: -len(each[1]))
    return [user_id for user_id, _ in shipped if is_demo(agent, user_id)]


def is_demo(agent: Agent, user_id: str) -> bool:
    """Return whether all that `agent` remembers of `user_id` is as the demo brought it.

    One memory of another origin, and it may be a real person of the same name; one that was
    changed may say what somebody wrote who is no demo.
    """
    shipped = _shipped(agent.name).get(user_id)
    if not shipped:
        return False
    memories = Memory.objects.in_scope(agent, user_id).exclude(status=Status.TRASHED)
    found = list(memories.values_list("external_id", "version")[: len(shipped) + 1])
    return bool(found) and all(origin in shipped and version == 1 for origin, version in found)


@cache
def _read() -> Any:
    return json.loads(DEMO_FILE.read_text(encoding="utf-8"))


@cache
def _shipped(agent_name: str) -> dict[str, set[str]]:
    """Return the external ids of an agent's demo memories by user."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in _read()["memories"]:
        if each["agent"] == agent_name:
            found[each["user_id"]].add(f"demo-{each['id']}")
    return dict(found)


def _remember(agent_name: str, memories: list[dict[str, Any]], *, now: datetime) -> None:
    """Import one agent's memories; sources are mapped from the file's ids to the real ones."""
    agent = Agent.objects.named(agent_name)
    there = set(Memory.objects.for_agent(agent).values_list("external_id", flat=True))
    own = [
        {name: value for name, value in each.items() if name != "agent"}
        for each in memories
        if each["agent"] == agent_name and f"demo-{each['id']}" not in there
    ]
    by_order: dict[bool, list[dict[str, Any]]] = defaultdict(list)
    for each in own:
        by_order["source_ids" in each["detail"]].append(each)
    for needs_sources in (False, True):  # summaries come after what they sum up
        batch = by_order[needs_sources]
        if needs_sources:
            ids = dict(Memory.objects.for_agent(agent).values_list("external_id", "pk"))
            for each in batch:
                sources = each["detail"]["source_ids"]
                each["detail"] = {"source_ids": [ids[f"demo-{source}"] for source in sources]}
        lines = [
            json.dumps({**each, "id": f"demo-{each['id']}"}, ensure_ascii=False).encode()
            for each in batch
        ]
        report = import_lines(agent, lines, now=now)
        if report.errors:
            raise ValueError(f"{DEMO_FILE.name}: {report.errors[0][1]}")


def _rehearse(agent_name: str, *, now: datetime) -> None:
    """Let the agent's people talk to it for two weeks, so that there is something to look at."""
    agent = Agent.objects.named(agent_name)
    messages = [each for each in _read()["messages"] if each["agent"] == agent_name]
    for days_ago in range(_REHEARSED_DAYS, 0, -1):  # a recall log is written day by day
        day = now - timedelta(days=days_ago)
        for number, each in enumerate(messages):
            for _ in range(crc32(f"{agent_name} {days_ago} {number}".encode()) % 3):
                prefetch(agent, each["user_id"], each["message"], now=day)
    recall_counts.flush()


def _create_account(person: dict[str, Any]) -> Login | None:
    accounts = get_user_model().objects
    if accounts.filter(username=person["username"]).exists():
        return None
    password = secrets.token_urlsafe(9)
    with transaction.atomic(using="default"):
        create = accounts.create_superuser if person["is_operator"] else accounts.create_user
        account = create(person["username"], password=password, first_name=person["display_name"])
        Identity.objects.create(account=account, user_id=person["user_id"])
    # not only an operator: who looks at the demo sees all there is
    return Login(person["username"], password, "superuser" if person["is_operator"] else "user")
