"""What a query says beside its words, on both engines: quotes, synonyms, pages, long messages."""

import pytest

from memory.filters import MemoryFilter
from memory.models import MemoryVector, Scope
from memory.retrieval import embedder
from memory.retrieval.calibration import MIN_SCORE
from memory.retrieval.explanations import explain
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services.embedding import Tally, embed_rows
from tests.conftest import NOW
from tests.memory.understanding.test_telling import log_of


def give_synonyms(agent, *groups):
    agent.memory_config.synonyms = [list(group) for group in groups]
    agent.memory_config.save()


def hits(agent, query, **request):
    found = search(agent, "ming", SearchRequest(query, **request), now=NOW).hits
    return {hit.memory.name: hit for hit in found}


# --- quotes ----------------------------------------------------------------------------


def test_what_is_in_quotes_must_occur(agent, remember, names_found):
    remember(agent, "ming", "the deploy bot runs on Fridays", name="bot")
    remember(agent, "ming", "the bot that Ming can deploy", name="other")
    remember(agent, "ming", "支付模块周五上线", name="上线")
    remember(agent, "ming", "上线支付模块", name="反")

    assert set(names_found(agent, "ming", "deploy bot")) == {"bot", "other"}
    for query in ('"deploy bot"', "“Deploy  BOT”", 'who runs "deploy bot"', "「ｄｅｐｌｏｙ bot」"):
        assert names_found(agent, "ming", query) == ["bot"], query
    assert names_found(agent, "ming", "“模块周五”") == ["上线"]
    assert names_found(agent, "ming", "『模塊週五』") == ["上线"]
    assert names_found(agent, "ming", '"deploy bot" "Fridays"') == ["bot"]
    assert names_found(agent, "ming", '"deploy bot" "Mondays"') == []


def test_quotes_find_what_is_within_words(agent, remember, names_found):
    remember(agent, "ming", "see handler_42 in the rollback", name="m1")

    assert names_found(agent, "ming", '"dler_42 in"') == ["m1"]
    assert names_found(agent, "ming", '"llbac"') == ["m1"]


def test_quotes_narrow_before_the_limit(agent, remember, names_found):
    for number in range(12):
        remember(agent, "ming", "invoice " * 9, name=f"m{number}")
    remember(agent, "ming", "one invoice, of the baker who was paid twice", name="baker")

    assert names_found(agent, "ming", 'invoice "the baker"', limit=1) == ["baker"]


def test_quotes_and_filters_both_hold(agent, remember, names_found):
    remember(agent, "ming", "the deploy bot", name="a", tags=["x"])
    remember(agent, "ming", "the deploy bot", name="b")

    narrowed = MemoryFilter(tags=("x",))
    assert names_found(agent, "ming", '"deploy bot"', filter=narrowed) == ["a"]


def test_a_question_is_answered_where_nobody_holds_what_it_quotes(agent, remember, names_found):
    remember(agent, "ming", "Ming read the book about impossible things in May", name="book")
    remember(agent, "ming", "the deploy bot", name="bot")

    assert names_found(agent, "ming", 'When did Ming read "nothing is impossible"?') == ["book"]
    assert names_found(agent, "ming", "明 read “nothing is impossible”？") == ["book"]
    assert names_found(agent, "ming", 'Ming "nothing is impossible"') == []
    assert names_found(agent, "ming", 'What does the "deploy bot" read?') == ["bot"]
    assert names_found(agent, "ming", '"zeppelin"?') == []


def test_single_quotes_of_a_question_are_given_up_too(agent, remember, names_found):
    remember(agent, "ming", "Ming read the book about impossible things in May", name="book")

    assert names_found(agent, "ming", "Did Ming read 'nothing impossible' ?") == ["book"]


def test_in_a_message_quotes_demand_nothing(agent, remember, names_found):
    remember(agent, "ming", "the bot that Ming can deploy", name="other")

    asked = 'He said "deploy the bot now"'
    assert names_found(agent, "ming", asked) == []
    assert names_found(agent, "ming", asked, is_message=True) == ["other"]


# --- synonyms --------------------------------------------------------------------------


def test_a_synonym_is_found_and_named(agent, remember):
    remember(agent, "ming", "Kubernetes runs the payments", name="cluster")
    remember(agent, "ming", "k8s is what we call it", name="short")
    remember(agent, "ming", "the office is in Riga", name="office")
    assert set(hits(agent, "k8s")) == {"short"}

    give_synonyms(agent, ("k8s", "Kubernetes", "容器平台"))

    found = hits(agent, "k8s")
    assert list(found) == ["short", "cluster"]
    assert found["short"].matched == ("k8s",)
    assert set(found["cluster"].matched) == {"kubernet", "kuber~"}
    assert set(hits(agent, "where is ｋｕｂｅｒｎｅｔｅｓ?")) == {"short", "cluster"}


def test_what_holds_the_word_itself_scores_as_without_synonyms(agent, remember):
    remember(agent, "ming", "k8s is what we call it", name="short")
    remember(agent, "ming", "tea at four", name="tea")
    alone = hits(agent, "k8s upgrade")["short"].score

    give_synonyms(agent, ("k8s", "Kubernetes", "orchestrator", "容器编排"))

    assert hits(agent, "k8s upgrade")["short"].score == alone


def test_synonyms_of_several_words_and_of_chinese_are_found(agent, remember):
    remember(agent, "ming", "continuous integration is red", name="ci")
    remember(agent, "ming", "数据库每晚备份", name="备份")
    remember(agent, "ming", "Postgres is backed up each night", name="backup")
    give_synonyms(agent, ("CI", "continuous integration"), ("数据库", "postgres", "資料庫"))

    assert list(hits(agent, "why is CI red")) == ["ci"]
    assert "ci" in hits(agent, "CI")
    assert set(hits(agent, "資料庫")) == {"备份", "backup"}
    assert set(hits(agent, "数据库在哪里")) == {"备份", "backup"}
    assert list(hits(agent, "POSTGRES")) == ["backup", "备份"]


def test_a_word_within_a_longer_one_asks_for_no_synonym(agent, remember):
    remember(agent, "ming", "a car is parked here", name="car")
    remember(agent, "ming", "kafka holds it", name="kafka")
    give_synonyms(agent, ("车", "car"), ("log", "kafka"))

    assert hits(agent, "火车票") == {}
    assert hits(agent, "the blogger") == {}
    assert list(hits(agent, "车")) == ["car"]
    assert list(hits(agent, "logs")) == ["kafka"]


def test_synonyms_make_no_chains_and_circles_do_no_harm(agent, remember):
    for name in ("alpha", "beta", "gamma"):
        remember(agent, "ming", f"{name} particle", name=name)
    give_synonyms(agent, ("alpha", "beta"), ("beta", "gamma"), ("beta", "alpha"))

    assert set(hits(agent, "alpha")) == {"alpha", "beta"}
    assert set(hits(agent, "gamma")) == {"gamma", "beta"}
    assert set(hits(agent, "beta")) == {"alpha", "beta", "gamma"}


def test_synonyms_are_the_agents_own(ada, grace, remember):
    for agent in (ada, grace):
        remember(agent, "ming", "Kubernetes runs the payments", name="cluster")
    give_synonyms(ada, ("k8s", "Kubernetes"))

    assert set(hits(ada, "k8s")) == {"cluster"}
    assert hits(grace, "k8s") == {}


def test_an_explanation_says_what_a_synonym_adds(agent, remember):
    saved = remember(agent, "ming", "Kubernetes runs the payments", name="cluster")
    give_synonyms(agent, ("k8s", "Kubernetes"))

    reading, explained = explain(agent, "ming", SearchRequest("k8s"), {saved.pk: 0.5}, now=NOW)

    assert reading.terms["k8s"] == 1.0
    assert 0 < reading.terms["kubernet"] <= 0.7
    explanation = explained[saved.pk]
    assert {share.word for share in explanation.shares} == {"kubernet", "kuber~"}
    assert explanation.score == hits(agent, "k8s")["cluster"].score


def test_as_many_synonyms_as_may_be_can_all_be_asked_for(agent, remember):
    groups = [[f"word{n}x{m}" for m in range(10)] for n in range(200)]
    give_synonyms(agent, *groups)
    remember(agent, "ming", "it is word7x3 that he means", name="m")

    assert list(hits(agent, "word7x9")) == ["m"]
    assert list(hits(agent, " ".join(f"word{n}x1" for n in range(7, 200)))) == ["m"]


# --- pages -----------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["kumquat", "kumquat_", "um"])
def test_pages_follow_each_other_to_the_end(agent, remember, query):
    for number in range(7):
        remember(agent, "ming", f"kumquat_ kumquat {number}", name=f"m{number}")
    whole = search(agent, "ming", SearchRequest(query, limit=50), now=NOW)
    assert not whole.has_more

    pages = [
        search(agent, "ming", SearchRequest(query, limit=3, offset=offset), now=NOW)
        for offset in (0, 3, 6, 9)
    ]

    found = [hit.memory.name for page in pages for hit in page.hits]
    assert found == [hit.memory.name for hit in whole.hits]
    assert len(found) in {0, 7}
    assert [page.has_more for page in pages] == [bool(found), bool(found), False, False]


# --- long messages ---------------------------------------------------------------------


def test_a_question_beside_a_long_log_finds_its_memory(agent, remember, names_found):
    remember(agent, "ming", "Deadlocks on invoices: retry the save three times", name="deadlock")
    remember(agent, "ming", "worker 5 was replaced in May", name="worker")
    remember(agent, "ming", "茉莉花茶放在三楼的茶水间", name="茶")
    log = log_of(100_000)

    for message in (f"{log}\nWhy a deadlock on the invoice?", f"Why deadlock on invoices?\n{log}"):
        assert names_found(agent, "ming", message, is_message=True)[0] == "deadlock"
    beside = f"{log}\n茉莉花茶放在哪里？\n{log}"
    assert names_found(agent, "ming", beside, is_message=True)[0] == "茶"


def test_both_engines_read_a_long_message_alike(ada, grace, remember):
    for agent in (ada, grace):
        remember(agent, "ming", "Deadlocks on invoices: retry the save", name="deadlock")
        remember(agent, "ming", "茉莉花茶放在三楼的茶水间", name="茶")
    message = f"{log_of(30_000)}茉莉花茶 and the deadlock {log_of(30_000)}"

    ours, theirs = (hits(agent, message, is_message=True) for agent in (ada, grace))

    assert [(n, h.matched) for n, h in ours.items()] == [(n, h.matched) for n, h in theirs.items()]
    assert [h.score for h in ours.values()] == pytest.approx([h.score for h in theirs.values()])


def test_a_synonym_that_an_operator_gave_is_not_silenced_by_meaning(agent, remember, settings):
    settings.EMBEDDINGS = "embedded"
    agent.memory_config.synonyms = [["satay", "peanuts"]]
    remember(agent, "ming", "Ming is allergic to peanuts and carries an EpiPen.")
    for number in range(8):
        remember(agent, "ming", f"Ming moved meeting number {number} to the small room.")
    for scope in Scope.objects.for_agent(agent):
        list(embed_rows(MemoryVector.objects.of_scope(scope), embedder.current(), Tally()))

    request = SearchRequest("satay", min_score=MIN_SCORE)
    found = search(agent, "ming", request, now=NOW)

    assert found.mode == "hybrid"
    assert [hit.memory.content[:21] for hit in found.hits[:1]] == ["Ming is allergic to p"]
