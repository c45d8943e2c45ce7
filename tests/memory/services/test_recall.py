"""Recall: a search whose results count as used; and the memories that are due."""

from datetime import timedelta

import pytest

from agents.models import Agent, MemoryConfig
from memory.errors import MemoryOff
from memory.filters import MemoryFilter
from memory.retrieval.calibration import MIN_SCORE
from memory.retrieval.lexical import SearchRequest
from memory.services import memories
from memory.services.context import prefetch
from memory.services.recall import MAX_REMINDERS, due_reminders, least_score, look, recall
from tests.conftest import NOW
from tests.memory.model_server import ModelServer, failing
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


@pytest.fixture
def chat(settings):
    """A server that talks, whose pick is the third, then the first."""
    with ModelServer() as server:
        settings.CHAT_PROVIDER, settings.CHAT_URL, settings.CHAT_MODEL = "openai", server.url, "m"
        settings.MODEL_PRIVATE_ADDRESSES = True
        server.chat_says = '{"picked": [3, 1]}'
        yield server


def remember_teas(agent, remember, **config):
    MemoryConfig.objects.filter(agent=agent).update(**config)
    for number in range(6):
        remember(agent, "ming", "kumquat tea " * (6 - number), name=f"tea {number}")
    return Agent.objects.named(agent.name)


def test_a_model_picks_for_an_agent_that_wants_it(agent, remember, chat):
    agent = remember_teas(agent, remember, reranks=True)
    before = look(agent, "ming", SearchRequest("kumquat tea"), now=NOW)
    asked = len(chat.asked)

    found = recalled(agent, "kumquat tea", limit=3)
    block = prefetch(agent, "ming", "kumquat tea?", now=NOW)

    names = [hit.memory.name for hit in before.hits]
    assert (before.reranked, asked) == (None, 0)  # who only tries waits for no model
    assert (found.reranked, found.degraded, found.has_more) == (True, (), True)
    assert [hit.memory.name for hit in found.hits] == [names[2], names[0], names[1]]
    assert [hit.memory.name for hit in block.hits][:2] == [names[2], names[0]]
    assert len(chat.asked) == 2


def test_a_model_that_fails_changes_nothing_but_what_is_said(agent, remember, chat):
    agent = remember_teas(agent, remember, reranks=True)
    before = look(agent, "ming", SearchRequest("kumquat tea", limit=3), now=NOW)
    chat.fault = failing(500)

    found = recalled(agent, "kumquat tea", limit=3)

    assert (found.reranked, found.degraded) == (False, ("not_reranked",))
    assert [hit.memory.pk for hit in found.hits] == [hit.memory.pk for hit in before.hits]
    assert recalled(agent, "zebra").reranked is None


def test_no_model_is_asked_for_an_agent_that_does_not_want_it(agent, remember, chat):
    agent = remember_teas(agent, remember)

    assert recalled(agent, "kumquat tea").reranked is None
    assert chat.asked == []


def test_an_agents_own_threshold_decides_what_is_noise_to_it(agent, remember):
    agent = remember_teas(agent, remember, min_score=0.999)
    strict = prefetch(agent, "ming", "kumquat tea?", now=NOW)
    agent = remember_teas(agent, remember, min_score=0.0)
    lax = prefetch(agent, "ming", "kumquat tea?", now=NOW)
    agent = remember_teas(agent, remember, min_score=None)

    assert (strict.block, strict.hits, strict.abstained) == ("", (), True)
    assert lax.hits
    assert (least_score(agent), recalled(agent, "zebra").abstained) == (MIN_SCORE, False)


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
