"""Search by meaning with the model that comes with Hippo, on both engines."""

from datetime import timedelta

import pytest

from memory.filters import MemoryFilter
from memory.models import MemoryVector, Scope
from memory.retrieval import embedder
from memory.retrieval.calibration import MIN_SCORE
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services import memories
from memory.services.embedding import Tally, embed_rows
from tests.conftest import MING, NOW

PET = "Ming's cat is called Pebble and sleeps on the router"
OTHERS = [
    "Ming prefers short answers, the conclusion first",
    "The payment service was rewritten in Go last spring",
    "支付模块联调排在 12 月 3 日，错误码由周宁负责",
    "Invoices are numbered by year and never reused",
    "The office in Riga closes at six on Fridays",
    "小明每天早上跑五公里",
    "Release notes go out every second Tuesday",
    "The staging database is reset each night",
    "Ming plays the cello in a small orchestra",
    "Grace keeps the passwords in a vault",
]


@pytest.fixture(autouse=True)
def _meaning(settings):
    settings.EMBEDDINGS = "embedded"


def embed(agent):
    for scope in Scope.objects.for_agent(agent):
        list(embed_rows(MemoryVector.objects.of_scope(scope), embedder.current(), Tally()))


@pytest.fixture
def known(agent, remember):
    """An agent that remembers a pet among other things, an hour and more apart."""
    for number, content in enumerate([*OTHERS[:5], PET, *OTHERS[5:]]):
        remember(agent, "ming", content, now=NOW - timedelta(hours=3 * (20 - number)))
    remember(agent, "bob", "Bob's dog is called Rex")
    embed(agent)
    return agent


def found(agent, query, *, mode="auto", user_id="ming", **request):
    return search(agent, user_id, SearchRequest(query, **request), mode=mode, now=NOW)


def contents(result):
    return [hit.memory.content for hit in result.hits]


def test_what_shares_no_word_is_found_by_its_meaning(known):
    query = "which animal lives with him?"

    by_words = found(known, query, mode="lexical")
    for _ in range(3):  # by the engine, and from memory
        by_both, by_meaning = found(known, query), found(known, query, mode="vector")

        assert PET not in contents(by_words)
        assert (contents(by_both)[0], by_both.mode) == (PET, "hybrid")
        assert (contents(by_meaning)[0], by_meaning.mode) == (PET, "vector")
        assert "Rex" not in str(contents(by_both))


def test_english_is_found_by_chinese(known):
    assert contents(found(known, "他养了什么宠物？", limit=3)).index(PET) == 0


def test_a_filter_holds_before_the_limit(known, remember):
    for number in range(30):
        remember(known, "ming", f"invoice {number} invoice invoice", type="project")
    remember(known, "ming", "Name the invoice by its number", type="feedback")
    embed(known)
    feedback = MemoryFilter(types=("feedback",))

    for mode in ("hybrid", "vector"):
        first = found(known, "invoice", mode=mode, limit=1, filter=feedback)
        none = found(known, "invoice", mode=mode, filter=MemoryFilter(types=("reference",)))
        tagged = found(known, "which animal?", mode=mode, filter=MemoryFilter(tags=("pets",)))

        assert [hit.memory.type for hit in first.hits] == ["feedback"]
        assert none.hits == tagged.hits == ()


def test_only_live_memories_are_found_by_meaning(known):
    [pet] = [each for each in memories.walk(known) if each.content == PET]

    memories.update(known, "ming", pet.pk, {"status": "paused"}, actor=MING, now=NOW)

    for _ in range(3):
        assert PET not in contents(found(known, "which animal lives with him?", limit=50))


def test_a_memory_without_a_vector_is_found_by_its_words(known, remember):
    remember(known, "ming", "kumquat jam is in the cellar")

    result = found(known, "where is the kumquat jam?")

    assert result.mode == "hybrid"
    assert contents(result)[0] == "kumquat jam is in the cellar"


def test_of_noise_there_is_nothing_but_the_nearest(known):
    silent = found(known, "what is the capital of France?", min_score=MIN_SCORE)
    asked = found(known, "what is the capital of France?")

    assert (silent.hits, silent.abstained, len(silent.nearest)) == ((), True, 3)
    assert all(hit.score < MIN_SCORE for hit in silent.nearest)
    assert len(asked.hits) == 10
    assert not asked.abstained


def test_scores_fall_along_the_hits_and_are_what_is_compared(known):
    hits = found(known, "what instrument does Ming play in the orchestra?").hits
    scores = [hit.score for hit in hits]

    assert scores == sorted(scores, reverse=True)
    for place in (0, 3, 6):
        kept = found(known, "what instrument does Ming play in the orchestra?",
                     min_score=scores[place]).hits  # fmt: skip
        assert [hit.score for hit in kept] == [each for each in scores if each >= scores[place]]


def test_what_is_far_less_relevant_than_the_best_is_cut(known):
    request = {"query": "which orchestra does Ming play the cello in?", "min_score": MIN_SCORE}

    assert "orchestra" in contents(found(known, **request, cuts=True))[0]
    assert len(found(known, **request, cuts=True).hits) < len(found(known, request["query"]).hits)


def test_what_was_saved_beside_an_answer_comes_before_what_was_not(agent, remember):
    question = "when do we ship the kumquat release?"
    remember(agent, "ming", "Ann asked when we ship the kumquat release", now=NOW)
    near = remember(agent, "ming", "That is fine with everybody", now=NOW + timedelta(minutes=2))
    for number, content in enumerate(OTHERS):
        remember(agent, "ming", content, now=NOW + timedelta(days=1 + number))
    # newer, which decides where nothing else does
    far = remember(agent, "ming", "That is fine with everybody", now=NOW + timedelta(days=99))
    embed(agent)

    order = [hit.memory.pk for hit in found(agent, question, limit=20).hits]

    assert order.index(near.pk) < order.index(far.pk)


def test_a_letter_by_letter_query_asks_no_model(known, remember, monkeypatch):
    remember(known, "ming", "the discount is 100%")

    def fail(*args, **kwargs):
        raise AssertionError("nothing is to be embedded")

    monkeypatch.setattr(embedder.current(), "embed", fail)

    assert contents(found(known, "100%")) == ["the discount is 100%"]
    assert found(known, "Peb", as_you_type=True).mode == "lexical"
    assert contents(found(known, "peb", as_you_type=True)) == [PET]
