"""The figures of each day go with the agent: with a move, back again, and with a fresh start."""

from collections import Counter
from datetime import timedelta

import pytest

from agents.models import Agent
from memory.databases import store_alias
from memory.models import FIGURES, AgentDay, ScopeDay
from memory.retrieval.lexical import SearchRequest
from memory.services import job_kinds, memories
from memory.services.figures import recall_counts
from memory.services.moves import moving, placing
from memory.services.recall import recall
from tests.conftest import MING, NOW

EARLIER = NOW - timedelta(days=40)
TARGETS = {"sqlite": ("mysql", ""), "mysql": ("sqlite", "memory.db")}


@pytest.fixture
def target(agent):
    backend, path = TARGETS[agent.memory_config.backend]
    return {"backend": backend, "sqlite_path": path}


def moved(agent, place):
    job = moving.enqueue(agent, **place, now=NOW)
    job_kinds.perform(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")
    return Agent.objects.named(agent.name)


def place_of(agent):
    config = agent.memory_config
    path = config.sqlite_path if config.backend == "sqlite" else ""
    return {"backend": config.backend, "sqlite_path": path}


def counted(agent):
    """The agent's figures by day, and those of its users by user and day."""
    alias = store_alias(agent)
    days, users = {}, {}
    for row in AgentDay.objects.using(alias).filter(agent_id=agent.pk):
        days[row.day] = days.get(row.day, Counter()) + figures_of(row)
    for row in ScopeDay.objects.using(alias).filter(scope__agent_id=agent.pk):
        users[row.scope_id and row.scope.user_id, row.day] = figures_of(row)
    return days, users


def figures_of(row):
    return Counter({name: getattr(row, name) for name in FIGURES})


def work(agent, remember, *, now=NOW):
    for user_id in ("ming", "bob", "U1", "u1"):
        memory = remember(agent, user_id, "Ming deploys on Fridays", now=now)
        recall(agent, user_id, SearchRequest("deploys"), now=now)
        memories.trash(agent, user_id, memory.pk, actor=MING, now=now)
    recall_counts.flush()


def test_a_move_takes_the_figures_along_and_back(agent, target, remember):
    work(agent, remember, now=EARLIER)
    work(agent, remember)
    origin, before = place_of(agent), counted(agent)

    there = moved(agent, target)
    arrived = counted(there)
    remember(there, "ming", "Ming likes tea")
    remember(there, "carol", "Carol likes tea")
    grown = counted(there)
    back = moved(there, origin)

    assert arrived == before
    assert len(before[0]) == 2
    assert len(before[1]) == 8
    assert counted(back) == grown != before


def test_a_fresh_start_keeps_the_agents_sums_and_leaves_the_users(agent, target, remember):
    work(agent, remember, now=EARLIER)
    work(agent, remember)
    days, users = counted(agent)
    origin = place_of(agent)

    placing.change_store(agent, **target, leave=True, now=NOW)
    there = Agent.objects.named(agent.name)
    at_first = counted(there)
    remember(there, "ming", "Ming likes tea")
    placing.change_store(there, **origin, leave=True, now=NOW)
    back = Agent.objects.named(agent.name)

    assert at_first == (days, {})
    days[NOW.date()] += Counter(saved_user=1)
    assert counted(back) == (days, users)


def test_what_is_done_while_a_move_copies_is_counted_once(agent, target, remember, monkeypatch):
    work(agent, remember, now=EARLIER)
    copy = moving.copying.sync

    def sync(copying, **options):
        if options["thorough"]:
            found = copy(copying, **options)
            remember(agent, "ming", "Ming likes tea")
            return found
        return copy(copying, **options)

    monkeypatch.setattr(moving.copying, "sync", sync)

    there = moved(agent, target)

    days, users = counted(there)
    assert days[NOW.date()] == users["ming", NOW.date()] == Counter(saved_user=1)
    assert days[EARLIER.date()]["saved_user"] == 4
