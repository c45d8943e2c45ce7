"""Why a memory has its score: what is explained adds up to what is shown, on both engines."""

import math

import pytest

from memory.models import MemoryVector, Scope
from memory.retrieval import candidates, embedder, explanations
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services.embedding import Tally, embed_rows
from tests.conftest import NOW

QUERIES = [
    "when does Ming deploy on Fridays?", "支付模块什么时候上线", "deploy deploy deploy",
    "competition", "gen-itgc", "the", "payment 支付 Friday branch release tea morning cat window "
    "coffee friday deploys code review standup",
]  # fmt: skip


@pytest.fixture
def known(agent, remember):
    remember(agent, "u1", "Ming deploys on Fridays, deploys again, and deploys the branch")
    remember(agent, "u1", "支付模块周五上线", name="支付模块", tags=["上线"])
    remember(agent, "u1", "Release of gen-itgc in the morning", description="deploy the release")
    remember(agent, "u1", "competes in c++ competitions at 100%", name="c++ contests")
    for number in range(20):
        remember(agent, "u1", f"Drinks tea number {number} by the window" + " and so on" * number)
    remember(agent, "u2", "Bob deploys deploys deploys")
    return agent


def explained(agent, query, **options):
    request = SearchRequest(query, **options)
    hits = search(agent, "u1", request, now=NOW).hits
    scores = {hit.memory.pk: hit.score for hit in hits}
    return hits, *explanations.explain(agent, "u1", request, scores, now=NOW)


def assert_adds_up(why, hit):
    """What is shown of a hit leads to its score, step by step."""
    words = sum(share.adds for share in why.shares)
    if why.relevance is None:  # letter by letter
        assert words == pytest.approx(why.before, abs=1e-9)
        return
    assert words + why.meaning + why.beside == pytest.approx(why.relevance, abs=1e-6)
    before = 1 / (1 + math.exp(-13.2 * (why.relevance - why.doubt - 0.229)))
    assert why.before == pytest.approx(before, abs=1e-6)
    odds = math.log(before / (1 - before)) + sum(why.priors.values())
    reached = 1 / (1 + math.exp(-odds))
    assert why.score == hit.score
    assert (hit.score < reached - 1e-6) if why.is_capped else (abs(hit.score - reached) < 1e-6)


@pytest.mark.parametrize("options", [{}, {"as_you_type": True}, {"is_message": True}])
def test_shares_add_up_to_the_score_that_is_shown(known, options):
    found = 0
    for query in QUERIES:
        hits, _reading, why = explained(known, query, **options)
        for hit in hits:
            found += 1
            shares = why[hit.memory.pk].shares
            assert_adds_up(why[hit.memory.pk], hit)
            assert not why[hit.memory.pk].is_capped
            assert sorted(share.word for share in shares) == sorted(hit.matched)
            for share in shares:
                occurrences = sum(each.times * each.weight for each in share.fields)
                assert share.nats == pytest.approx(share.gain * occurrences / (1 + occurrences))
    assert found > 15


def test_meaning_and_neighbours_add_up_too(known, settings):
    settings.EMBEDDINGS = "embedded"
    model = embedder.current()
    for scope in Scope.objects.for_agent(known):
        list(embed_rows(MemoryVector.objects.of_scope(scope), model, Tally()))

    found = []
    for query in [
        "when does Ming deploy on Fridays?",
        "what does she drink?",
        "支付模块什么时候上线",
    ]:
        hits, _reading, why = explained(known, query)
        for hit in hits:
            assert_adds_up(why[hit.memory.pk], hit)
            found.append(why[hit.memory.pk])

    assert len(found) == 30
    assert all(each.cosine is not None for each in found)
    assert any(each.is_capped for each in found)
    assert any(each.beside > 0.05 for each in found)


@pytest.mark.parametrize("query", ["c++", "100%", "gen-itgc"])
def test_what_is_matched_letter_by_letter_adds_up_too(known, query):
    [hit], reading, why = explained(known, query)

    explanation = why[hit.memory.pk]
    assert explanation.relevance is None
    assert (reading.way, reading.literals) == ("signs", (query,))
    total = sum(share.adds for share in explanation.shares)
    assert total == pytest.approx(explanation.before, abs=1e-9)
    assert explanation.score == pytest.approx(hit.score, abs=1e-9)
    assert explanation.shares[0].fields[0].name == ("content" if query == "100%" else "name")


def test_a_word_is_explained_by_where_it_stands_and_how_rare_it_is(known):
    hits, reading, why = explained(known, "deploy the 支付")

    by_word = {s.word: s for s in why[hits[0].memory.pk].shares}
    assert reading.stop_words == ("the",)
    assert (reading.way, reading.scope_size, reading.truncated) == ("words", 24, False)
    assert reading.candidates == len(hits)
    assert "支付" in by_word
    ming = next(h for h in hits if "Fridays" in h.memory.content)
    [deploy] = [s for s in why[ming.memory.pk].shares if s.word == "deploy"]
    assert {each.name: each.times for each in deploy.fields}["content"] == 3
    assert deploy.frequency == 2  # bob's is another scope's


def test_past_the_limit_of_candidates_it_adds_up_as_well(known, monkeypatch):
    monkeypatch.setattr(candidates, "MAX_CANDIDATES", 5)
    hits, reading, why = explained(known, "tea window deploy")

    assert reading.truncated
    for hit in hits:
        assert_adds_up(why[hit.memory.pk], hit)


def test_nothing_is_explained_where_nothing_is_found(known):
    assert explained(known, "xyzzy")[1].way == "nothing"
    request = SearchRequest("tea")
    assert explanations.explain(known, "nobody", request, {1: 0.5}, now=NOW)[1] == {}
