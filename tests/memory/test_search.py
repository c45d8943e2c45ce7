"""The search contract: the same question, the same answer on both engines."""

from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from memory import fts
from memory.analyzer import encode_term, query_terms, scope_key
from memory.databases import store_alias
from memory.drafts import parse_draft
from memory.filters import MemoryFilter
from memory.fts import TermQuery
from memory.models import Memory, Scope
from memory.retrieval import bm25f, candidates
from memory.retrieval.lexical import SearchRequest, search_scopes
from memory.retrieval.search import search
from memory.services import memories
from memory.services.writing import SYSTEM
from tests.conftest import NOW
from tests.memory.corpus import MEMORIES, QUERIES
from tests.memory.rows import terms_left


def later(days):
    return NOW + timedelta(days=days)


@pytest.fixture
def both(ada, grace):
    """Both agents, for tests that compare their answers."""
    return ada, grace


def ask(agent, user_id, query, now, **request):
    return search(agent, user_id, SearchRequest(query, **request), now=now)


def outline(result):
    """Return what must be the same on both engines: names, scores and words, in order."""
    return [(hit.memory.name, hit.score, hit.matched) for hit in result.hits]


def same(results):
    """Return the one outline of two results, scores equal to the last digits."""
    ours, theirs = map(outline, results)
    assert [(name, matched) for name, _, matched in ours] == [
        (name, matched) for name, _, matched in theirs
    ]
    assert [score for _, score, _ in ours] == pytest.approx(
        [score for _, score, _ in theirs], rel=0, abs=1e-12
    )
    return ours


# --- what is found ---------------------------------------------------------------------


def test_search_finds_a_two_character_chinese_word(agent, remember, names_found):
    remember(agent, "ming", "支付模块周五上线")
    remember(agent, "ming", "Ming deploys on Fridays")

    assert names_found(agent, "ming", "支付") == ["支付模块周五上线"]


def test_the_syntax_of_full_text_engines_is_plain_text(agent, remember, names_found):
    remember(agent, "ming", "say hi to the deploy bot", name="greeting")
    found = {
        query: names_found(agent, "ming", query)
        for query in [
            'say "hi', '"', "foo AND", "NOT", "NEAR(a", "name:deploy", "*", "^", "-deploy",
            "grammar::fa", "{content} : deploy", "a OR", "$X", "#123", "a@b.example",
        ]
    }  # fmt: skip

    for query in ('say "hi', "name:deploy", "-deploy", "{content} : deploy"):
        assert found[query] == ["greeting"], query
    for query in ('"', "*", "^", "$X", "#123", "grammar::fa", "a@b.example"):
        assert found[query] == [], query


def test_operators_of_boolean_mode_are_plain_text(agent, remember, names_found):
    remember(agent, "ming", "libicuio lives under opt/icu4c@78/lib", name="lib-note")

    for query in ("opt/icu4c@78/lib", "-lib", "~icu4c", "<lib>", '"opt', "icu4c -libicuio"):
        assert names_found(agent, "ming", query) == ["lib-note"], query
    for query in ("+++++-", "!--", "@", "()", "><~*"):
        assert names_found(agent, "ming", query) == [], query


def test_identifiers_glued_to_chinese_are_found(agent, remember, names_found):
    remember(agent, "ming", "步骤2 重跑gen-itgc后50条悬空引用清零", name="m1")
    remember(agent, "ming", "端到端测试通过", name="m2")

    for query in ("itgc", "gen-itgc", "悬空", "50条"):
        assert names_found(agent, "ming", query)[0] == "m1", query
    assert names_found(agent, "ming", "端到端测试结果")[0] == "m2"


def test_words_that_engines_stop_are_found(agent, remember, names_found):
    remember(agent, "ming", "Servers are in the east region", name="m1")
    remember(agent, "ming", "Holiday in Hawaii", name="m2")

    assert names_found(agent, "ming", "east") == ["m1"]
    assert names_found(agent, "ming", "Hawaii") == ["m2"]
    assert names_found(agent, "ming", "are") == ["m1"]
    assert names_found(agent, "ming", "in the")[0] == "m1"
    assert names_found(agent, "ming", "is it") == []


def test_a_query_with_signs_is_taken_letter_by_letter(agent, remember, names_found):
    remember(agent, "ming", "discount is 100%", name="m1")
    remember(agent, "ming", "count was 1000", name="m2")
    remember(agent, "ming", "see the file_name rule", name="m3")
    remember(agent, "ming", "see the fileXname rule", name="m4")

    assert names_found(agent, "ming", "100%") == ["m1"]
    assert names_found(agent, "ming", "１００％") == ["m1"]
    assert names_found(agent, "ming", "file_name") == ["m3"]
    assert names_found(agent, "ming", "FILE_NAME") == ["m3"]
    for query in ("%", "_", "\\", "%%", "\\_"):
        assert names_found(agent, "ming", query) == [], query


def test_a_query_without_a_word_finds_nothing(agent, remember, names_found):
    for content in ("Ming deploys on Fridays", "支付模块周五上线", "Really?! ... 。。。"):
        remember(agent, "ming", content)

    for query in ("", "   ", "\n", "?!...", "。。。", "\u200b", "\x00", "\ud800", "-"):
        assert names_found(agent, "ming", query) == [], query
        assert names_found(agent, "ming", query, as_you_type=True) == [], query


def test_a_whole_sentence_finds_its_memory(agent, remember, names_found):
    remember(agent, "ming", "支付模块周五上线，上线前两小时冻结代码", name="上线")
    remember(agent, "ming", "The invoice service reconciles at two every night", name="invoices")
    remember(agent, "ming", "Ming drinks green tea", name="tea")

    assert names_found(agent, "ming", "你还记得我们支付模块是什么时候上线的吗？")[0] == "上线"
    assert names_found(agent, "ming", "so what time does that invoicing thing run at night")[0] == (
        "invoices"
    )


def test_traditional_and_simplified_find_each_other(agent, remember, names_found):
    remember(agent, "ming", "支付模块周五上线", name="simplified")
    remember(agent, "ming", "軟體開發文件", name="traditional")

    assert names_found(agent, "ming", "週五上線") == ["simplified"]
    assert names_found(agent, "ming", "软体开发") == ["traditional"]


def test_unusual_words_are_found(agent, remember, names_found):
    contents = {
        "🎉": "No emoji 🎉 in commit messages",
        "🚀🚀🚀": "Three cheers 🚀🚀🚀 for the release",
        "👨‍👩‍👧": "The family 👨‍👩‍👧 moved to Riga",
        "👍🏽": "Thumbs up 👍🏽 means yes",
        "宁": "周宁负责错误码",
        "QA": "Ask QA before a release",
        "C++": "The C++ SDK needs clang",
        "￥300": "价格是￥300",
        "결제": "결제 모듈은 금요일에 배포",
        "STRASSE": "Ming nutzt die Straße",
        "café": "Cafe\u0301 on Fridays",
        "𠮷野家": "𠮷野家 opens at nine",
        "３.14": "π is 3.14",
    }
    for query, content in contents.items():
        remember(agent, "ming", content, name=f"- {query}")

    found = {query: names_found(agent, "ming", query) for query in contents}

    assert found == {query: [f"- {query}"] for query in contents}


def test_a_tag_and_a_detail_are_searched_too(agent, remember, names_found):
    remember(agent, "ming", "Ming deploys on Fridays", tags=["发布", "kumquat"])
    detail = {"when": "a deploy fails", "steps": ["read the durian log"], "keywords": ["回滚"]}
    remember(agent, "ming", "How to roll back", kind="procedure", detail=detail)

    assert names_found(agent, "ming", "kumquat") == ["Ming deploys on Fridays"]
    assert names_found(agent, "ming", "发布") == ["Ming deploys on Fridays"]
    assert names_found(agent, "ming", "durian") == ["How to roll back"]
    assert names_found(agent, "ming", "回滚") == ["How to roll back"]


def test_the_longest_content_is_found_by_its_last_word(agent, remember, names_found):
    remember(agent, "ming", "支付模块" * 5_000 + " kumquat", name="long Chinese")
    remember(agent, "ming", "tea " * 16_000 + " durian", name="long English")
    remember(agent, "ming", "x" * 60_000 + " papaya", name="one long word")

    assert names_found(agent, "ming", "kumquat") == ["long Chinese"]
    assert names_found(agent, "ming", "durian") == ["long English"]
    assert names_found(agent, "ming", "papaya") == ["one long word"]
    assert names_found(agent, "ming", "x" * 60_000) == ["one long word"]


def test_no_query_is_too_long(agent, remember, names_found):
    remember(agent, "ming", "Ask QA to deploy file_name, 支 🎉 c++", name="everything")

    for word in ("c++", "file_name", "QA", "支", "deploy", "🎉"):
        assert names_found(agent, "ming", " ".join([word] * 1_200)) == ["everything"], word
        many = " ".join(f"{word}{number}" for number in range(1_200))
        assert names_found(agent, "ming", many) in (["everything"], []), word


def test_an_unknown_user_finds_nothing(agent, remember, names_found):
    remember(agent, "ming", "Ming deploys on Fridays")

    assert names_found(agent, "mallory", "deploy") == []


# --- ranking ---------------------------------------------------------------------------


def test_a_name_counts_more_than_a_description_and_that_more_than_a_content(
    agent, remember, names_found
):
    remember(agent, "ming", "kumquat", name="in content", description="-")
    remember(agent, "ming", "-a", name="in description", description="kumquat")
    remember(agent, "ming", "-a", name="in name: kumquat", description="-")

    assert names_found(agent, "ming", "kumquat") == [
        "in name: kumquat",
        "in description",
        "in content",
    ]


def test_a_literal_ranks_by_its_field_too(agent, remember, names_found):
    remember(agent, "ming", "file_name", name="in content")
    remember(agent, "ming", "-a", name="in description", description="file_name")
    remember(agent, "ming", "-a", name="in name: file_name")

    assert names_found(agent, "ming", "file_name") == [
        "in name: file_name",
        "in description",
        "in content",
    ]


def test_more_of_the_querys_words_rank_higher(agent, remember, names_found):
    remember(agent, "ming", "Ming deploys on Fridays", name="both")
    remember(agent, "ming", "Ming bakes on Mondays", name="one", now=later(1))

    assert names_found(agent, "ming", "Ming Friday deploy") == ["both", "one"]


def test_a_rare_word_counts_more_than_a_common_one(agent, remember, names_found, now):
    for week in range(9):
        remember(agent, "ming", f"deploy in week {week}", now=later(week))
    remember(agent, "ming", "kumquat harvest", name="rare")

    assert names_found(agent, "ming", "deploy kumquat")[0] == "rare"


def test_ties_go_to_the_newest(agent, remember, names_found):
    for name, days in (("middle", 1), ("newest", 2), ("oldest", 0)):
        remember(agent, "ming", "Ming deploys", name=name, now=later(days))
    for name in ("file first", "file second"):
        remember(agent, "ming", "the file_name rule", name=name)
    for microseconds in (0, 500_000, 7, 500_001):
        moment = NOW + timedelta(microseconds=microseconds)
        remember(agent, "ming", "tea", name=f"{microseconds} µs", now=moment)

    assert names_found(agent, "ming", "deploys") == ["newest", "middle", "oldest"]
    assert names_found(agent, "ming", "file_name") == ["file second", "file first"]
    assert names_found(agent, "ming", "tea") == ["500001 µs", "500000 µs", "7 µs", "0 µs"]


def test_scores_are_between_0_and_1_and_descend(agent, remember, now):
    for memory in MEMORIES:
        remember(agent, "ming", **memory)

    for query in QUERIES:
        scores = [hit.score for hit in ask(agent, "ming", query, now, limit=100).hits]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores), query


def test_hits_below_the_minimum_score_are_left_out(agent, remember, now):
    remember(agent, "ming", "Ming deploys on Fridays")
    remember(agent, "ming", "Ming drinks tea")
    best = ask(agent, "ming", "Ming deploys", now).hits[0].score

    assert len(ask(agent, "ming", "Ming deploys", now).hits) == 2
    assert len(ask(agent, "ming", "Ming deploys", now, min_score=best).hits) == 1
    assert ask(agent, "ming", "Ming deploys", now, min_score=1.0).hits == ()


def test_a_hit_tells_the_words_it_matched(agent, remember, now):
    remember(agent, "ming", "支付模块 deploys on Fridays")

    (hit,) = ask(agent, "ming", "支付 deployed kumquat", now).hits

    assert {"支付", "deploy"} <= set(hit.matched)
    assert "kumquat" not in hit.matched


def test_both_engines_rank_alike(both, remember, now):
    for agent in both:
        for day, memory in enumerate(MEMORIES):
            # every third memory is as old as the one before: ties
            remember(agent, "ming", **memory, now=now + timedelta(days=day - day % 3))
        remember(agent, "bob", "Bob deploys on Mondays, 支付, invoice")

    nothing = []
    for query in QUERIES:
        for request in ({"limit": 100}, {"limit": 3}, {"limit": 100, "as_you_type": True}):
            results = [ask(agent, "ming", query, now, **request) for agent in both]
            if not same(results):
                nothing.append(query)

    assert len(MEMORIES) >= 60
    assert len(QUERIES) >= 40
    assert set(nothing) == {"kumquat", "*", "QA", "我们"}


def test_both_ways_of_counting_words_give_the_same_scores(ada, remember, now, monkeypatch):
    for day, memory in enumerate(MEMORIES):
        remember(ada, "ming", **memory, now=later(day))
    queries = [
        *QUERIES,
        "deployment of the payments dep",
        "支付模块的支付",
        "tests, the testing te",
    ]
    requests = [SearchRequest(q, limit=100, as_you_type=t) for q in queries for t in (False, True)]

    monkeypatch.setattr(bm25f, "_FEW_TERMS", 0)
    cut = [search(ada, "ming", request, now=now) for request in requests]
    monkeypatch.setattr(bm25f, "_FEW_TERMS", 1_000)
    looked_for = [search(ada, "ming", request, now=now) for request in requests]

    for results in zip(cut, looked_for, strict=True):
        same(results)


# --- narrowing -------------------------------------------------------------------------


def test_filters_apply_before_the_limit(agent, remember, names_found):
    narrowings = {
        "of a type": ({"type": "feedback"}, MemoryFilter(types=("feedback", "reference"))),
        "of a kind": ({"kind": "summary"}, MemoryFilter(kinds=("summary",))),
        "of a tier": ({"tier": "short_term"}, MemoryFilter(tier="short_term")),
        "with a tag": ({"tags": ["a", "账单"]}, MemoryFilter(tags=("账单",))),
        "with two tags": ({"tags": ["b", "100%"]}, MemoryFilter(tags=("100%", "b"))),
        "from a source": ({"source": "import"}, MemoryFilter(source="import")),
        "of a status": ({"status": "archived"}, MemoryFilter(statuses=("archived", "paused"))),
        "of importance": ({"importance": 0.9}, MemoryFilter(min_importance=0.9)),
    }
    for query in ("invoice", "in-voice"):  # by terms, letter by letter
        for number in range(12):
            remember(agent, "ming", f"{query} {query}", name=f"{query} {number}", tags=["b"])
        for name, (fields, _) in narrowings.items():
            content = f"one {query} among many other words"
            remember(agent, "ming", content, name=f"{query[:2]} {name}", **fields)

    for query in ("invoice", "in-voice"):
        found = {
            name: names_found(agent, "ming", query, limit=1, filter=wanted)
            for name, (_, wanted) in narrowings.items()
        }
        assert found == {name: [f"{query[:2]} {name}"] for name in narrowings}


def test_times_of_creation_are_exclusive_bounds(agent, remember, names_found):
    for days in range(3):
        remember(agent, "ming", f"invoice of day {days}", now=later(days))

    def found(**bounds):
        return names_found(agent, "ming", "invoice", filter=MemoryFilter(**bounds))

    assert found(created_after=later(1)) == ["invoice of day 2"]
    assert found(created_before=later(1)) == ["invoice of day 0"]
    assert found(created_after=later(0), created_before=later(2)) == ["invoice of day 1"]


def test_a_tag_is_asked_for_whole(agent, remember, names_found):
    remember(agent, "ming", "invoice", tags=["bills", "late", "账单"])

    def found(tag):
        return names_found(agent, "ming", "invoice", filter=MemoryFilter(tags=(tag,)))

    assert found("late") == found("账单") == ["invoice"]
    for tag in ("bill", "账", "Bills", "bills ", "%", "\n", ""):
        assert found(tag) == [], tag


def test_two_tags_are_not_one_of_two_lines(agent, remember, names_found):
    remember(agent, "ming", "invoice", tags=["bills", "late"])

    wanted = MemoryFilter(tags=("bills\nlate",))

    assert names_found(agent, "ming", "invoice", filter=wanted) == []


def test_the_best_of_one_user_do_not_push_out_anothers(agent, remember, names_found):
    from_u1 = [
        remember(agent, "u1", "invoice " * 5, type="project", name=f"invoice {number}")
        for number in range(30)
    ]
    remember(agent, "u1", "an invoice was wrong", type="feedback", name="feedback")
    remember(agent, "u2", "an invoice is due", name="of u2")
    for memory in from_u1[-2:]:
        memories.trash(agent, "u1", memory.pk, actor=SYSTEM, now=later(1))

    found = names_found(agent, "u1", "invoice", limit=20)

    assert names_found(agent, "u2", "invoice", limit=1) == ["of u2"]
    feedback = MemoryFilter(types=("feedback",))
    assert names_found(agent, "u1", "invoice", limit=1, filter=feedback) == ["feedback"]
    assert len(found) == 20
    assert not {"invoice 28", "invoice 29"} & set(found)
    assert len(names_found(agent, "u1", "invoice", limit=50)) == 29


def test_a_limit_below_one_finds_nothing(agent, remember, names_found):
    remember(agent, "ming", "Ming deploys on Fridays")

    for limit in (0, -1):
        assert names_found(agent, "ming", "deploys", limit=limit) == []


def test_what_is_not_active_is_not_recalled(agent, remember, names_found):
    for status in ("paused", "archived", "superseded", "trashed"):
        remember(agent, "ming", "QA deploys file_name 支", status=status)
    for status in ("paused", "archived", "superseded"):
        changed = remember(agent, "ming", "QA deploys file_name 支 later")
        changes = {"status": status}
        memories.update(agent, "ming", changed.pk, changes, actor=SYSTEM, now=NOW)
    changed = remember(agent, "ming", "QA deploys file_name 支 too late")
    memories.trash(agent, "ming", changed.pk, actor=SYSTEM, now=NOW)

    for query in ("deploys", "file_name", "QA", "支"):
        assert names_found(agent, "ming", query) == [], query
        assert names_found(agent, "ming", query, as_you_type=True) == [], query


def test_what_has_expired_is_not_recalled(agent, remember, names_found):
    remember(agent, "ming", "QA deploys today, file_name", expires_at=later(1), name="today's")
    remember(agent, "ming", "QA deploys always, file_name", name="for ever")

    for query in ("deploys", "file_name", "QA"):
        assert set(names_found(agent, "ming", query)) == {"today's", "for ever"}
        assert names_found(agent, "ming", query, now=later(1)) == ["for ever"]


# --- as you type -----------------------------------------------------------------------


def test_a_word_being_typed_is_found_by_its_beginning(agent, remember, names_found):
    for name, content in {
        "kumquats": "She buys kumquats",
        "gen-itgc": "rerun gen-itgc",
        "quince": "a quince tree",
        "café": "the café closes",
        "50条": "还有50条",
        "支付": "支付模块",
    }.items():
        remember(agent, "ming", content, name=name)
    expected = {
        "kumq": "kumquats", "kumquats": "kumquats", "fresh KUM": "kumquats", "itg": "gen-itgc",
        "gen-it": "gen-itgc", "q": "quince", "qui": "quince", "caf": "café", "5": "50条",
        "支付模": "支付", "付": "支付", "支": "支付",
    }  # fmt: skip

    found = {typed: names_found(agent, "ming", typed, as_you_type=True) for typed in expected}

    assert found == {typed: [name] for typed, name in expected.items()}
    assert names_found(agent, "ming", "umquat", as_you_type=True) == []


def test_agents_match_whole_words_only(agent, remember, names_found):
    remember(agent, "ming", "She buys kumquats")

    assert names_found(agent, "ming", "kumq") == []


def test_a_finished_word_is_not_a_beginning(agent, remember, names_found):
    remember(agent, "ming", "She buys kumquats")

    assert names_found(agent, "ming", "kumq ", as_you_type=True) == []


# --- typing into very many -------------------------------------------------------------


@pytest.fixture
def large(monkeypatch):
    """Let every scope count as one of very many memories."""
    monkeypatch.setattr(candidates, "LARGE", 0)
    monkeypatch.setattr(candidates, "WALKED", 8)
    monkeypatch.setattr(candidates, "SAMPLED", 4)
    monkeypatch.setattr(candidates, "OFTEN", 2)


@pytest.mark.parametrize(
    "query", ["kum", "kumquat", "kumquat with", "榴", "榴莲", "depl", "3", "w"]
)
def test_typing_finds_the_same_among_very_many(both, remember, now, monkeypatch, query):
    for agent in both:
        fill(agent, remember, now)
    usual = ask(both[0], "ming", query, now, limit=50, as_you_type=True)
    monkeypatch.setattr(candidates, "LARGE", 0)

    results = [ask(agent, "ming", query, now, limit=50, as_you_type=True) for agent in both]

    assert same(results) == same([usual, results[0]])


def test_a_common_beginning_is_sought_among_the_newest(both, large, remember, now):
    for agent in both:
        fill(agent, remember, now)

    results = [ask(agent, "ming", "dep", now, limit=50, as_you_type=True) for agent in both]

    weeks = {int(name.split()[3]) for name, _, _ in same(results)}
    assert weeks == set(range(12, 20))
    assert all(result.truncated for result in results)


def test_beside_a_common_word_a_rare_one_is_found_however_old(both, large, cap, remember, now):
    for agent in both:
        fill(agent, remember, now)

    for query in ("deploy kumquat", "deploy kumq"):
        results = [ask(agent, "ming", query, now, limit=50, as_you_type=True) for agent in both]
        names = [name for name, _, _ in same(results)]
        assert all("kumquat" in name for name in names[:2])
        assert len(names) > 2


def test_a_common_word_that_only_the_old_hold_is_found(both, large, cap, remember, now):
    for agent in both:
        for week in range(20):
            remember(agent, "ming", "tea" if week > 9 else "plum jam", now=later(week))

    results = [ask(agent, "ming", "plum ", now, limit=50, as_you_type=True) for agent in both]

    assert all(len(result.hits) >= 5 for result in results)


# --- too many candidates ---------------------------------------------------------------


@pytest.fixture
def cap(monkeypatch):
    """Let a search rank no more than five memories."""
    monkeypatch.setattr(candidates, "MAX_CANDIDATES", 5)
    return 5


def fill(agent, remember, now):
    for week in range(20):
        kumquat = " with a kumquat" if week in {3, 4} else ""
        durian = " 榴莲" if week in {1, 2, 3, 7, 9} else ""
        remember(agent, "ming", f"deploy of week {week}{kumquat}{durian}", now=later(week))
    remember(agent, "bob", "a kumquat 榴莲 deploy")


def test_past_the_cap_the_rarest_words_are_admitted_first(both, remember, cap, now):
    for agent in both:
        fill(agent, remember, now)

    results = [ask(agent, "ming", "deploy kumquat 榴莲", now, limit=50) for agent in both]
    names = [name for name, _, _ in same(results)]

    assert all(result.truncated for result in results)
    weeks = {int(name.split()[3]) for name in names}
    assert weeks == {3, 4, 9, 7, 2}  # both kumquats, then the newest of the 榴莲
    assert names[0].startswith("deploy of week 3")


def test_past_the_cap_both_engines_admit_the_same(both, remember, cap, now):
    for agent in both:
        fill(agent, remember, now)

    truncated = set()
    for query in ("deploy", "de", "week 榴", "deploy kumq", "week kumquat deploy 榴莲", "kumquat"):
        for as_you_type in (False, True):
            request = {"limit": 50, "as_you_type": as_you_type}
            results = [ask(agent, "ming", query, now, **request) for agent in both]
            hits = same(results)
            assert results[0].truncated == results[1].truncated
            assert all(0 < score <= 1 for _, score, _ in hits)
            if results[0].truncated:
                assert len(hits) == cap
                truncated.add((query, as_you_type))
    assert {("deploy", False), ("deploy", True), ("de", True)} <= truncated
    assert ("kumquat", True) not in truncated


@pytest.mark.parametrize("typed", ["d", "dur", "支", "a"])
def test_past_the_cap_a_beginning_alone_is_enough(agent, remember, cap, now, typed):
    for week in range(9):
        remember(agent, "ming", f"dur 支 a {week}", now=later(week))

    result = ask(agent, "ming", typed, now, limit=50, as_you_type=True)

    assert [hit.memory.name[-1] for hit in result.hits] == ["8", "7", "6", "5", "4"]
    assert result.truncated


def test_past_the_cap_of_one_word_the_newest_are_admitted(agent, remember, cap, names_found, now):
    fill(agent, remember, now)

    found = names_found(agent, "ming", "deploy", limit=50)

    assert [int(name.split()[3]) for name in found] == [19, 18, 17, 16, 15]


def test_past_the_cap_filters_still_apply_first(agent, remember, cap, now):
    fill(agent, remember, now)
    remember(agent, "ming", "a deploy that failed", type="feedback", now=now - timedelta(days=9))

    result = ask(agent, "ming", "deploy", now, filter=MemoryFilter(types=("feedback",)))

    assert [hit.memory.name for hit in result.hits] == ["a deploy that failed"]
    assert not result.truncated


def test_past_the_cap_what_is_not_active_takes_no_place(both, remember, cap, now):
    for agent in both:
        fill(agent, remember, now)
        for page in range(9):
            remember(agent, "ming", f"kumquat {page}", status="archived", now=later(30 + page))

    results = [ask(agent, "ming", "kumquat deploy", now, limit=50) for agent in both]

    names = [name for name, _, _ in same(results)]
    assert len(names) == cap
    assert all(name.startswith("deploy of week") for name in names)


def test_at_the_cap_nothing_is_left_out(agent, remember, cap, now):
    for week in range(cap):
        remember(agent, "ming", f"deploy of week {week}")

    result = ask(agent, "ming", "deploy", now)

    assert (len(result.hits), result.truncated) == (cap, False)


def test_too_many_literals_say_so_too(agent, remember, cap, now):
    for week in range(cap + 1):
        remember(agent, "ming", f"file_name of week {week}", now=later(week))

    result = ask(agent, "ming", "file_name", now, limit=50)

    assert (len(result.hits), result.truncated) == (cap, True)
    assert "file_name of week 0" not in [hit.memory.name for hit in result.hits]


def test_counts_of_documents_are_exact_after_changes(both, remember, now):
    counts = []
    for agent in both:
        kept = [remember(agent, "ming", f"deploy kumquat {n}", now=now) for n in range(9)]
        for memory in kept[:3]:
            memories.trash(agent, "ming", memory.pk, actor=SYSTEM, now=now)
        for memory in kept[3:5]:
            memories.purge(agent, "ming", memory.pk)
        changes = {"content": "durian deploy", "name": "durian"}
        memories.update(agent, "ming", kept[5].pk, changes, actor=SYSTEM, now=now)
        memories.restore(agent, "ming", kept[0].pk, actor=SYSTEM, now=now)
        scope = Scope.objects.of_user(agent, "ming").get()
        terms = ["deploy", "kumquat", "durian", "papaya"]
        encoded = [encode_term(term, scope_key(scope.pk)) for term in terms]
        found = fts.document_counts(encoded, store_alias(agent))
        counts.append(dict(zip(terms, found.values(), strict=True)))

    assert counts[0] == counts[1] == {"deploy": 5, "kumquat": 4, "durian": 1, "papaya": 0}


# --- the index follows -----------------------------------------------------------------


def test_a_restored_memory_is_found_at_once(agent, remember, names_found):
    memory = remember(agent, "ming", "kumquat")
    memories.trash(agent, "ming", memory.pk, actor=SYSTEM, now=later(1))
    assert names_found(agent, "ming", "kumquat") == []
    assert terms_left(agent, "kumquat") == 0

    memories.restore(agent, "ming", memory.pk, actor=SYSTEM, now=later(2))

    assert names_found(agent, "ming", "kumquat") == ["kumquat"]


def test_a_name_from_the_trash_can_be_used_again(agent, remember, names_found):
    first = remember(agent, "ming", "durian", name="fruit")
    memories.trash(agent, "ming", first.pk, actor=SYSTEM, now=later(1))

    remember(agent, "ming", "durian", name="fruit")

    assert names_found(agent, "ming", "durian") == ["fruit"]
    assert len(memories.list_page(agent, "ming").memories) == 1


def test_a_deleted_agent_leaves_no_terms(agent, remember, names_found):
    backend = agent.memory_config.backend
    other = Agent.objects.create_agent("barbara", backend=backend)
    remember(other, "ming", "rambutan")
    remember(agent, "ming", "Ming deploys on Fridays")

    other.delete()

    assert terms_left(agent, "rambutan") == 0
    assert names_found(agent, "ming", "rambutan") == []
    assert names_found(agent, "ming", "deploys") == ["Ming deploys on Fridays"]
    assert fts.index_fault(connections[store_alias(agent)]) is None


def test_what_is_deleted_in_bulk_leaves_no_terms(agent, remember, names_found):
    for fruit in ("lychee", "longan", "榴莲"):
        remember(agent, "ming", fruit, tags=["fruit"])
    remember(agent, "ming", "Ming deploys on Fridays")

    fruit = MemoryFilter(tags=("fruit",))
    assert memories.trash_matching(agent, "ming", fruit, actor=SYSTEM, now=later(1)) == 3

    for query in ("lychee", "longan", "榴莲"):
        assert names_found(agent, "ming", query) == []
    assert terms_left(agent, "lychee", "longan", "榴莲") == 0
    assert names_found(agent, "ming", "deploys") == ["Ming deploys on Fridays"]


def test_a_changed_memory_is_found_by_its_new_words_only(agent, remember, names_found):
    office = remember(agent, "ming", "The office is in Riga", name="office")

    changes = {"content": "The office is in Tartu"}
    memories.update(agent, "ming", office.pk, changes, actor=SYSTEM, now=later(1))

    assert names_found(agent, "ming", "Tartu") == ["office"]
    assert names_found(agent, "ming", "Riga") == []
    assert terms_left(agent, "riga") == 0


def test_what_the_engine_does_not_find_yet_is_found(both, remember, names_found):
    """InnoDB finds nothing before the commit, and now and then not at once after it."""
    for agent in both:
        old = remember(agent, "ming", "Ming pays by card", name="Card")
        remember(agent, "bob", "Bob pays in cash", name="Bob's")
        alias = store_alias(agent)
        with transaction.atomic(using=alias):
            remember(agent, "ming", "Ming pays in coins 支付", name="Coins", tags=["money"])
            binned = remember(agent, "ming", "Ming pays in shells", name="Shells")
            cheque = {"content": "Ming pays by cheque"}
            memories.update(agent, "ming", old.pk, cheque, actor=SYSTEM, now=NOW)
            memories.trash(agent, "ming", binned.pk, actor=SYSTEM, now=NOW)

            found = {
                query: sorted(names_found(agent, "ming", query, **request))
                for query, request in {
                    "coins": {},
                    "pays": {},
                    "支付": {},
                    "cheque": {},
                    "shells": {},
                    "card": {},
                    "coi": {"as_you_type": True},
                    "pays in": {"filter": MemoryFilter(tags=("money",))},
                    "kumquat": {},
                }.items()
            }
        assert found == {
            "coins": ["Coins"], "pays": ["Card", "Coins"], "支付": ["Coins"], "cheque": ["Card"],
            "shells": [], "card": ["Card"], "coi": ["Coins"], "pays in": ["Coins"], "kumquat": [],
        }, agent  # fmt: skip


def test_beside_what_it_finds_and_that_is_as_good(both, remember, now):
    for agent in both:
        remember(agent, "ming", "oolong", name="Tea 1")
        with transaction.atomic(using=store_alias(agent)):
            remember(agent, "ming", "oolong", name="Tea 2", now=later(1))
            remember(agent, "ming", "oolong", name="Tea 3", now=later(-1))
            scope = Scope.objects.of_user(agent, "ming").get()

            found = search_scopes([scope], SearchRequest("oolong"), now=later(2))

        assert [hit.memory.name for hit in found.hits] == ["Tea 2", "Tea 1", "Tea 3"]


def test_in_several_scopes_too(both, remember, now):
    for agent in both:
        remember(agent, "ming", "tea at four", name="Tea")
        remember(agent, "bob", "tea at five", name="Bob's")
        with transaction.atomic(using=store_alias(agent)):
            for user_id in ("ming", "bob", "grace"):
                remember(agent, user_id, f"{user_id} likes coffee", name=user_id)
            scopes = list(Scope.objects.for_agent(agent).exclude(user_id="grace"))

            found = search_scopes(scopes, SearchRequest("coffee tea"), now=now)

        assert {hit.memory.name for hit in found.hits} == {"Tea", "Bob's", "ming", "bob"}


def test_the_last_written_are_read_by_an_index(grace, remember, now):
    for number in range(40):
        remember(grace, "ming", f"Ming pays bill {number}")
    remember(grace, "bob", "Bob pays")
    scopes = list(Scope.objects.for_agent(grace))

    with CaptureQueriesContext(connections["mysql"]) as captured:
        search_scopes(scopes, SearchRequest("pays"), now=now)
    [last] = [each["sql"] for each in captured if "UNION ALL" in each["sql"]]
    with connections["mysql"].cursor() as cursor:
        cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL {last}")
        names = [column[0] for column in cursor.description]
        seen = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    assert [(row["key"], row["Extra"] or "") for row in seen if row["type"] == "ref"] == [
        ("vector_by_stamp", "Backward index scan; Using index")
    ] * 2
    assert {row["type"] for row in seen if row["type"] != "ref"} <= {"eq_ref", "ALL"}


# --- cost ------------------------------------------------------------------------------


def test_a_search_costs_a_fixed_number_of_queries(agent, remember, now):
    for number in range(30):
        remember(agent, "ming", f"QA: Ming deploys 支付模块, file_name {number}, 100%")
    expected = {
        "when does Ming deploy": 4,
        # asked again, the scope is read into memory, and then it is not asked for candidates
        "支付模块": 3,
        "file_name": 4,  # letter by letter at once
        "100%": 4,
        "QA": 2,
        "kumquat": 2,  # the engine is asked, too, and nothing is there to fetch
        "?": 1,  # nothing to look for
    }
    if agent.memory_config.backend == "mysql":  # what was written last is looked through
        expected |= {"when does Ming deploy": 5, "kumquat": 3}

    cost = {}
    for query in expected:
        with ExitStack() as stack:
            captured = [
                stack.enter_context(CaptureQueriesContext(connection))
                for connection in connections.all(initialized_only=True)
            ]
            ask(agent, "ming", query, now, limit=25)
        cost[query] = sum(map(len, captured))

    assert cost == expected


@pytest.fixture
def crowd(agent, now):
    """Give a store thousands of other users' memories, and ming a few dozen."""
    for user in range(10):
        drafts = [
            parse_draft({"type": "user", "content": f"deploy 支付 module {number} on Friday"})
            for number in range(250)
        ]
        memories.save_batch(agent, f"user {user}", drafts, now=now)
    drafts = [
        parse_draft({"type": "user", "content": f"Ming deploys 支付模块 {number}"})
        for number in range(40)
    ]
    memories.save_batch(agent, "ming", drafts, now=now)
    return agent


def test_the_full_text_index_finds_the_candidates(crowd, now):
    plans = []
    for user_id in ("ming", "user 7"):
        scope = Scope.objects.of_user(crowd, user_id).get()
        key = scope_key(scope.pk)
        for query in ("deploy", "支付 deploy Friday", "kumquat"):
            terms = tuple(encode_term(term, key) for term in query_terms(query))
            for condition in (TermQuery(terms), TermQuery(terms, (encode_term("dep", key),))):
                for wanted in (
                    MemoryFilter(),
                    MemoryFilter(types=("user",), tags=("bills",), min_importance=0.1),
                    MemoryFilter(created_after=now - timedelta(days=1), statuses=("active",)),
                ):
                    found = wanted.recalled(Memory.objects.matching([scope], condition), now)
                    columns = found.values_list("id", "created_at", "indexed__terms")
                    ids = found.order_by("-id").values_list("id", flat=True)
                    plans += [fts.explain(columns[:2_001]), fts.explain(ids[:2_000])]

    for plan in plans:
        assert_by_index(plan)


def assert_by_index(plan):
    """Assert that full text drives the plan and that all else is looked up by id."""
    steps = plan.splitlines()
    if "VIRTUAL TABLE" in plan:  # SQLite
        assert sum("SCAN" in step for step in steps) == 1, plan
        assert "SCAN memory_terms_fts VIRTUAL TABLE" in plan
        searches = [step for step in steps if "SEARCH" in step]
        assert all("USING INTEGER PRIMARY KEY (rowid=?)" in step for step in searches), plan
    else:
        assert " fulltext " in steps[0], plan
        assert "memory_terms_fulltext" in steps[0], plan
        assert all(" eq_ref PRIMARY" in step for step in steps[1:]), plan
