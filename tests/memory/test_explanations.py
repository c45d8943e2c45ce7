"""Why a memory has its score: what is explained adds up to what is shown, on both engines."""

import pytest

from memory.retrieval import candidates, explanations
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
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
    ids = {hit.memory.pk for hit in hits}
    return hits, *explanations.explain(agent, "u1", request, ids, now=NOW)


@pytest.mark.parametrize("options", [{}, {"as_you_type": True}, {"is_message": True}])
def test_shares_add_up_to_the_score_that_is_shown(known, options):
    found = 0
    for query in QUERIES:
        hits, _reading, why = explained(known, query, **options)
        for hit in hits:
            found += 1
            shares = why[hit.memory.pk].shares
            before = why[hit.memory.pk].before
            assert sum(share.adds for share in shares) == pytest.approx(before, abs=1e-9)
            assert why[hit.memory.pk].score == pytest.approx(hit.score, abs=1e-9)
            assert sorted(share.word for share in shares) == sorted(hit.matched)
            for share in shares:
                occurrences = sum(each.times * each.weight for each in share.fields)
                assert share.nats == pytest.approx(share.gain * occurrences / (1 + occurrences))
    assert found > 15


@pytest.mark.parametrize("query", ["c++", "100%", "gen-itgc"])
def test_what_is_matched_letter_by_letter_adds_up_too(known, query):
    [hit], reading, why = explained(known, query)

    explanation = why[hit.memory.pk]
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
        total = sum(share.adds for share in why[hit.memory.pk].shares)
        assert total == pytest.approx(why[hit.memory.pk].before, abs=1e-9)


def test_nothing_is_explained_where_nothing_is_found(known):
    assert explained(known, "xyzzy")[1].way == "nothing"
    request = SearchRequest("tea")
    assert explanations.explain(known, "nobody", request, [1], now=NOW)[1] == {}
