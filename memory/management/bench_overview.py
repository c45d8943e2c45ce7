"""The parts of bench_overview: an installation with many agents, few memories or many."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from agents.models import Agent, ApiKey
from memory.databases import store_alias
from memory.management import bench, bench_pages, bench_server
from memory.management.bench_pages import Visitor
from memory.models import FIGURES, SAVED, TOOK, AgentDay, MemoryType, Scope, ScopeDay
from memory.services.figures import counting

OPERATOR, PERSON = "operator", "person"
DAYS = 90
PAGES = {
    "overview, 30 days": (OPERATOR, "/"),
    "overview, 90 days": (OPERATOR, "/?days=90"),
    "overview of one agent": (OPERATOR, "/?agent=agent-0"),
    "list of agents": (OPERATOR, "/agents/?sort=recalls"),
    "one agent": (OPERATOR, "/agents/agent-0/"),
    "one's own overview": (PERSON, "/"),
}


@dataclass(frozen=True, slots=True)
class Size:
    """How much is in an installation, and how many memories a user has of an agent."""

    memories: int
    agents: int
    per_user: int


@contextmanager
def visited(backend: str, size: Size) -> Iterator[dict[str, Visitor]]:
    """Yield an operator and a person who look at an installation of a size."""
    with bench_server.installed(backend) as environment:
        code = f"from memory.management import bench_overview as b; b.fill('{backend}', {size})"
        code = code.replace("Size(", "b.Size(")
        sessions = json.loads(bench_server.manage(environment, "shell", "-c", code)[-1])
        application = "bench_pages_wsgi:application"
        with bench_server.served(environment, application, threads=1) as port:
            visitors = {name: Visitor(port, session) for name, session in sessions.items()}
            yield visitors
            for visitor in visitors.values():
                visitor.close()


def fill(backend: str, size: Size) -> None:
    """Fill this installation and print its people's sessions; for a process of its own."""
    now = timezone.now()
    draw = random.Random(13)  # noqa: S311
    agents = [
        Agent.objects.create_agent(f"agent-{number}", backend=backend)
        for number in range(size.agents)
    ]
    ApiKey.objects.bulk_create(
        ApiKey(agent=agent, prefix=agent.name[:12], hashed_key=f"{agent.pk:064}", last_used_at=now)
        for agent in agents
    )
    alias = store_alias(agents[0])
    _count(alias, agents, draw, now=now)
    texts = bench.make_corpus(now).texts
    with bench.bulk_load(alias):
        for number, agent in enumerate(agents):
            own = size.memories // size.agents + (number < size.memories % size.agents)
            for user, start in enumerate(range(0, max(own, 1), size.per_user)):
                name = f"user-{user}" if user else PERSON
                scope = Scope.objects.using(alias).create(agent_id=agent.pk, user_id=name)
                rows = bench.copies(
                    scope, draw.choices(texts, k=min(size.per_user, own - start)), now=now
                )
                for memory, _ in rows:
                    memory.type = draw.choice(MemoryType.values)
                bench.keep(scope, rows)
                if name == PERSON:
                    days = (ScopeDay(scope=scope, **each) for each in _days(draw, now=now))
                    ScopeDay.objects.using(alias).bulk_create(days, batch_size=200)
    account = bench_pages.log_in(PERSON)
    operator = get_user_model().objects.create_user(OPERATOR, is_staff=True)
    sessions = {PERSON: account, OPERATOR: bench_pages.session_of(operator)}
    print(json.dumps(sessions))  # noqa: T201


def _count(alias: str, agents: Sequence[Agent], draw: random.Random, *, now: datetime) -> None:
    """Write what would have been counted of the agents, as the upkeep leaves it."""
    today = counting.day_of(now)
    shards = counting.SHARDS if alias == "mysql" else 1
    for agent in agents:
        rows = []
        for day in _days(draw, now=now):
            late = day["day"] > today - timedelta(days=2)
            rows += [
                AgentDay(agent_id=agent.pk, shard=shard, **day)
                for shard in range(shards if late else 1)
            ]
        AgentDay.objects.using(alias).bulk_create(rows, batch_size=200)


def _days(draw: random.Random, *, now: datetime) -> Iterator[dict[str, Any]]:
    today = counting.day_of(now)
    for age in range(DAYS + 10):
        figures = dict.fromkeys(FIGURES, 0)
        figures |= {name: draw.randrange(20) for name in (*SAVED, "changed", "deleted")}
        figures |= {name: draw.randrange(40) for name in TOOK[4:14]}
        figures["recalls"] = draw.randrange(400, 800)
        figures["answered"] = draw.randrange(300)
        yield {"day": today - timedelta(days=age), **figures}
