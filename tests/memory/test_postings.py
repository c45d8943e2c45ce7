"""Words from memory: the same memories and scores as the engine's, and as the rows are."""

import random
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from memory.databases import store_alias
from memory.retrieval import evidence, lexical, postings
from memory.retrieval.candidates import SearchRequest, Wanted
from memory.retrieval.lexical import find_scope
from memory.retrieval.scope_cache import ScopeCache
from memory.retrieval.search import search
from memory.services import memories
from tests.conftest import MING, NOW

WORDS = (
    "deploy Friday tea release branch 支付 模块 周五 上线 review window coffee gen-itgc Ming "
    "competes competition 12月3日 the of a 我们 喜欢 简短 回答 c++ 3rd muller Müller 联调 "
    "错误码 budget"
).split()


def made_up(seed):
    """Return texts of a few words, some of them twice, some long."""
    choose = random.Random(seed)
    return [" ".join(choose.choices(WORDS, k=choose.choice([2, 5, 9, 40]))) for _ in range(60)]


def wanted(agent, query, **options):
    request = SearchRequest(query, **options)
    return Wanted([find_scope(agent, "ming")], request, NOW, lexical.synonyms_of([agent]))


def by_engine(asked):
    return evidence.of_engine(asked, lexical.find(asked))


def from_memory(asked):
    postings.of_scope(asked.scopes[0])  # the first time it is the engine's
    found = evidence.gather(asked)
    assert found.alive is not None or not len(found.shares.ids)
    return found


def told(found):
    return {
        pk: (pytest.approx(share, abs=1e-9), sorted(found.shares.terms_of(pk)))
        for pk, share in zip(found.shares.ids.tolist(), found.shares.shares.tolist(), strict=True)
    }


@pytest.mark.parametrize("seed", range(4))
def test_memory_and_engine_agree(agent, remember, seed, now):
    agent.memory_config.synonyms = [["tea", "coffee"], ["支付", "payment"]]
    texts = made_up(seed)
    saved = [
        remember(agent, "ming", text, name=text[:9], description=texts[-n][:20])
        for n, text in enumerate(texts)
    ]
    memories.update(agent, "ming", saved[3].pk, {"status": "paused"}, actor=MING, now=now)
    memories.trash(agent, "ming", saved[4].pk, actor=MING, now=now)
    queries = [" ".join(random.Random(n).choices(WORDS, k=1 + n % 15)) for n in range(40)]

    compared = 0
    for query in [*queries, "payment tea", "What does Ming deploy?", "the of a"]:
        for is_message in (False, True):
            asked = wanted(agent, query, is_message=is_message)
            engine, memory = by_engine(asked), from_memory(asked)
            if engine.literal:
                continue
            assert told(memory) == told(engine), query
            assert memory.shares.nats == pytest.approx(engine.shares.nats), query
            assert memory.doubt == pytest.approx(engine.doubt), query
            compared += len(engine.shares.ids)
    assert compared > 500


def test_what_is_written_is_found_by_the_next_search(agent, remember, now):
    old, gone = remember(agent, "ming", "kumquat tea"), remember(agent, "ming", "kumquat pie")
    remember(agent, "ming", "kumquat jam", expires_at=now + timedelta(hours=1))
    asked = lambda at=now: {  # noqa: E731
        hit.memory.content
        for hit in search(agent, "ming", SearchRequest("kumquat"), mode="lexical", now=at).hits
    }
    before = [asked() for _ in range(3)]

    changes = {"name": "durian", "content": "durian tea"}
    memories.update(agent, "ming", old.pk, changes, actor=MING, now=now)
    memories.trash(agent, "ming", gone.pk, actor=MING, now=now)
    new = remember(agent, "ming", "kumquat cake")
    after = asked()
    memories.update(agent, "ming", new.pk, {"status": "paused"}, actor=MING, now=now)
    paused = asked()
    memories.restore(agent, "ming", gone.pk, actor=MING, now=now)
    restored = asked()

    assert before == [{"kumquat tea", "kumquat pie", "kumquat jam"}] * 3
    assert after == {"kumquat jam", "kumquat cake"}
    assert paused == {"kumquat jam"}
    assert restored == {"kumquat jam", "kumquat pie"}
    assert asked(now + timedelta(hours=2)) == {"kumquat pie"}


def test_a_scope_that_is_asked_again_costs_two_queries(agent, remember, now):
    for number in range(30):
        remember(agent, "ming", f"kumquat {number}")
    request = SearchRequest("kumquat 7")
    for _ in range(3):
        search(agent, "ming", request, now=now)

    with CaptureQueriesContext(connections[store_alias(agent)]) as asked:
        found = search(agent, "ming", request, now=now)

    assert len(found.hits) == 10
    assert len(asked) == 2


def test_where_candidates_would_be_cut_the_engine_is_asked(agent, remember, monkeypatch):
    for number in range(5):
        remember(agent, "ming", f"kumquat {number}")
    scope = find_scope(agent, "ming")
    monkeypatch.setattr(postings, "MAX_CANDIDATES", 4)

    assert [postings.of_scope(scope) for _ in range(3)] == [None, None, None]


def test_places_that_are_left_are_not_kept_for_ever(agent, remember, now):
    saved = remember(agent, "ming", "kumquat")
    remember(agent, "ming", "durian")
    postings.of_scope(find_scope(agent, "ming"))
    sizes = []
    for number in range(40):
        changes = {"content": f"kumquat {number}"}
        memories.update(agent, "ming", saved.pk, changes, actor=MING, now=now)
        kept = postings.of_scope(find_scope(agent, "ming"))
        sizes.append(kept.nbytes)

    assert len(kept) == 2
    assert max(sizes) < 3 * min(sizes)


def test_one_users_words_are_not_anothers(agent, remember, now):
    remember(agent, "ming", "kumquat tea")
    remember(agent, "bob", "kumquat pie")

    for _ in range(3):
        for user_id, content in (("ming", "kumquat tea"), ("bob", "kumquat pie")):
            hits = search(agent, user_id, SearchRequest("kumquat"), now=now).hits
            assert [hit.memory.content for hit in hits] == [content]


def test_pages_of_a_search_meet_every_match_once(agent, remember, now):
    for number in range(57):
        remember(agent, "ming", f"kumquat {number % 3}", pinned=number % 10 == 0)
    request = SearchRequest("kumquat", limit=10)
    search(agent, "ming", request, now=now)

    met, offset, has_more = [], 0, True
    while has_more:
        found = search(agent, "ming", replace(request, offset=offset), now=now)
        met += [hit.memory.pk for hit in found.hits]
        offset, has_more = offset + 10, found.has_more

    assert len(met) == len(set(met)) == 57


def test_an_empty_scope_finds_nothing(agent, remember, now):
    saved = remember(agent, "ming", "kumquat")
    memories.trash(agent, "ming", saved.pk, actor=MING, now=now)

    results = [search(agent, "ming", SearchRequest("kumquat"), now=now) for _ in range(3)]

    assert all(not result.hits and not result.abstained for result in results)
    assert np.array_equal(postings.NOTHING.ids, [])


def test_who_read_the_scope_before_a_save_asks_the_engine(agent, remember):
    remember(agent, "ming", "kumquat tea")
    before = find_scope(agent, "ming")
    postings.of_scope(before)
    remember(agent, "ming", "kumquat pie")
    known = postings.of_scope(find_scope(agent, "ming"))

    behind = postings.of_scope(before)
    again = postings.of_scope(find_scope(agent, "ming"))

    assert (len(known), behind) == (2, None)
    assert again is known


def test_a_save_between_the_scope_and_its_words_makes_nothing_anew(agent, remember):
    remember(agent, "ming", "kumquat tea")
    postings.of_scope(find_scope(agent, "ming"))
    known = postings.of_scope(find_scope(agent, "ming"))
    remember(agent, "ming", "kumquat pie")
    scope = find_scope(agent, "ming")
    remember(agent, "ming", "kumquat jam")

    behind = postings.of_scope(scope)

    assert (behind, len(known)) == (None, 3)
    assert postings.of_scope(find_scope(agent, "ming")) is known


def test_the_words_of_many_scopes_stay_within_the_bound(agent, remember, settings):
    users = [f"u{number}" for number in range(30)]
    for user_id in users:
        for number in range(3):
            content = " ".join(f"w{user_id}x{n}" for n in range(60))
            remember(agent, user_id, content, name=f"{number}")
    kept, most = ScopeCache(), 0
    settings.SEARCH_CACHE_MB = 1

    for _ in range(2):
        for user_id in users:
            postings.of_scope(find_scope(agent, user_id), kept)
            most = max(most, kept.nbytes)

    keys = [(store_alias(agent), find_scope(agent, user_id).pk) for user_id in users]
    assert 2**18 < most <= 2**19
    assert 0 < sum(kept.get(key) is not None for key in keys) < 30


def test_a_scope_too_large_for_the_cache_is_the_engines(agent, remember, settings):
    remember(agent, "ming", " ".join(f"word{n}" for n in range(6_500)))
    settings.SEARCH_CACHE_MB = 1

    assert [postings.of_scope(find_scope(agent, "ming")) for _ in range(3)] == [None] * 3
    assert search(agent, "ming", SearchRequest("word5555"), now=NOW).hits
