"""What speaks for a memory besides what is asked: it orders likes, and never makes a hit."""

from datetime import timedelta

import pytest

from memory.retrieval import priors
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services import memories
from tests.conftest import NOW

OLD = NOW - timedelta(days=200)


def first(agent, query, **options):
    for _ in range(3):  # by the engine, and from memory
        hits = search(agent, "ming", SearchRequest(query, **options), now=NOW).hits
    return hits[0].memory.name, [hit.score for hit in hits]


@pytest.mark.parametrize(
    "better",
    [{"pinned": True}, {"importance": 0.9}, {"type": "feedback"}, {"type": "user"}, {"now": NOW}],
)
def test_of_likes_the_one_comes_first_that_more_speaks_for(agent, remember, better):
    common = {"type": "project", "now": OLD}
    remember(agent, "ming", "kumquat tea", name="better", **{**common, **better})
    # newer, which decides where nothing else does
    remember(agent, "ming", "kumquat tea", name="plain", **{**common, "now": OLD + timedelta(1)})
    remember(agent, "ming", "kumquat tea", name="unimportant", importance=0.1, **common)

    name, scores = first(agent, "kumquat tea")

    assert name == "better"
    assert scores[0] > scores[1] > scores[2]


def test_of_likes_the_one_comes_first_that_is_used(agent, remember):
    used = remember(agent, "ming", "kumquat tea", name="used", now=OLD)
    remember(agent, "ming", "kumquat tea", name="unused", now=OLD + timedelta(1))
    for _ in range(9):
        memories.touch(agent, "ming", [used.pk], now=NOW)

    assert first(agent, "kumquat tea")[0] == "used"


def test_a_time_in_the_query_prefers_what_is_of_it(agent, remember):
    ages = {"a": 5, "b": 0, "c": 62, "other": 25}
    for name, age in ages.items():
        remember(agent, "ming", "kumquat tea was drunk", name=name, now=NOW - timedelta(age))
    due = NOW + timedelta(1)
    remember(agent, "ming", "kumquat tea was drunk", name="due", due_at=due, now=OLD)

    asked = {"last week": "a", "今天": "b", "two months ago": "c", "tomorrow": "due", "上周": "a"}
    for time, wanted in asked.items():
        name, scores = first(agent, f"kumquat tea {time}")

        assert name == wanted
        assert len(scores) == 5  # a preference, no condition


def test_nothing_speaks_so_much_for_a_memory_that_it_would_beat_a_better_match(agent, remember):
    remember(agent, "ming", "kumquat jam", name="loved", pinned=True, importance=1.0,
             type="feedback")  # fmt: skip
    remember(agent, "ming", "kumquat tea at noon", name="asked for", importance=0.0, now=OLD)
    remember(agent, "ming", "something else")

    assert first(agent, "kumquat tea at noon")[0] == "asked for"


def test_no_memory_has_more_or_less_than_is_reckoned_with(agent, remember):
    loved = remember(agent, "ming", "tea", pinned=True, importance=1.0, type="feedback")
    least = remember(agent, "ming", "jam", importance=0.0, type="reference", now=OLD)

    most = sum(priors.priors(loved, (), now=NOW).values()) + priors.use(10**6)

    assert most == pytest.approx(priors.most(()))
    assert sum(priors.priors(least, (), now=NOW).values()) >= priors.LEAST
