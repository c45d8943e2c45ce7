"""Recall: a search whose results count as used; and the memories that are due."""

from datetime import timedelta

import pytest

from agents.models import Agent, MemoryConfig
from memory.errors import MemoryOff
from memory.filters import MemoryFilter
from memory.retrieval.lexical import SearchRequest
from memory.services import memories
from memory.services.recall import MAX_REMINDERS, due_reminders, recall
from tests.conftest import NOW
from tests.memory.rows import rows_of


def recalled(agent, query, *, user_id="ming", mode="auto", **request):
    return recall(agent, user_id, SearchRequest(query, **request), mode=mode, now=NOW)


def test_what_is_recalled_counts_as_used_once(agent, remember):
    remember(agent, "ming", "kumquat tea", name="a")
    remember(agent, "ming", "kumquat jam", name="b", type="project")
    remember(agent, "bob", "kumquat pie", name="c")

    found = recalled(agent, "kumquat", filter=MemoryFilter(types=("user",)))

    assert [hit.memory.name for hit in found.hits] == ["a"]
    uses = {m.name: (m.access_count, m.last_accessed_at, m.version) for m in memories.walk(agent)}
    assert uses == {"a": (1, NOW, 1), "b": (0, None, 1), "c": (0, None, 1)}


@pytest.mark.parametrize(
    ("mode", "degraded"),
    [("auto", ()), ("lexical", ()), ("vector", ("no_vectors",)), ("hybrid", ("no_vectors",))],
)
def test_a_recall_says_how_it_was_done(ada, remember, mode, degraded):
    remember(ada, "ming", "kumquat tea")

    found = recalled(ada, "kumquat", mode=mode)

    assert (found.mode, found.degraded, len(found.hits)) == ("lexical", degraded, 1)
    assert recalled(ada, "zebra", mode=mode).degraded == degraded


def test_with_memory_off_nothing_is_recalled_or_touched(ada, remember):
    memory = remember(ada, "ming", "kumquat tea")
    before = rows_of(ada, memory)
    MemoryConfig.objects.update(enabled=False)

    with pytest.raises(MemoryOff, match="ada"):
        recalled(Agent.objects.named("ada"), "kumquat")
    assert rows_of(ada, memory) == before


def test_due_memories_are_the_live_ones_of_that_user_the_longest_due_first(agent, remember):
    for days in (3, 1, 2):
        remember(agent, "ming", f"{days}", due_at=NOW - timedelta(days=days))
    remember(agent, "ming", "now", due_at=NOW)
    remember(agent, "ming", "later", due_at=NOW + timedelta(microseconds=1))
    remember(agent, "ming", "never")
    for status in ("paused", "archived", "trashed", "superseded"):
        remember(agent, "ming", status, due_at=NOW, status=status)
    remember(agent, "ming", "expired", due_at=NOW, expires_at=NOW)
    remember(agent, "bob", "bob's", due_at=NOW)

    due = due_reminders(agent, "ming", now=NOW)

    assert [memory.name for memory in due] == ["3", "2", "1", "now"]
    for number in range(9):
        remember(agent, "ming", f"more {number}", due_at=NOW)
    assert len(due_reminders(agent, "ming", now=NOW)) == MAX_REMINDERS
    assert due_reminders(agent, "nobody", now=NOW) == []
