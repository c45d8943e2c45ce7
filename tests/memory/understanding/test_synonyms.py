import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import analyzer
from memory.understanding import telling
from memory.understanding.synonyms import MAX_ADDED_TERMS, WEIGHT, expand


def added(query, *groups):
    return expand(query, telling.query_terms(query), groups)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("k8s", True), ("K8S", True), ("ｋ８ｓ", True), ("what of k8s?", True), ("k8s的配置", True),
        ("k8", False), ("k8sx", False), ("ak8s", False), ("", False), ("k 8 s", False),
    ],
)  # fmt: skip
def test_a_word_is_asked_for_in_any_spelling_but_not_within_another(query, found):
    assert bool(added(query, ["k8s", "cluster"])) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [("資料庫", True), ("数据库在哪", True), ("数据", False), ("车", True), ("火车票", False)],
)
def test_a_chinese_word_is_asked_for_in_either_script(query, found):
    assert bool(added(query, ["数据库", "资料库", "postgres"], ["车", "car"])) == found


def test_an_english_word_is_asked_for_in_its_other_forms():
    assert added("databases", ["database", "postgres"])
    assert added("deployed", ["deploys", "rollout"])


def test_the_words_of_a_synonym_share_its_weight():
    assert added("ci", ["CI", "Jenkins"])["jenkin"] == pytest.approx(WEIGHT / 2)
    found = added("ci", ["CI", "continuous integration"])
    whole = [term for term in found if not term.endswith("~")]
    assert sum(found[term] for term in whole) <= WEIGHT


def test_what_the_query_holds_already_is_not_added():
    assert added("deploy to the cluster", ["cluster", "deploy"]) == {}


def test_there_are_no_chains():
    assert set(added("alpha", ["alpha", "beta"], ["beta", "gamma"])) == {"beta"}


@given(
    st.text(max_size=80),
    st.lists(st.lists(st.text(max_size=60), min_size=2, max_size=10), max_size=20),
)
def test_what_is_added_is_bounded_and_weighs_less(query, groups):
    found = added(query, *groups)

    assert len(found) <= MAX_ADDED_TERMS
    assert all(0 < weight < 1 for weight in found.values())
    assert not found.keys() & telling.query_terms(query).keys()


def test_a_full_table_is_read_in_a_moment():
    groups = [[f"word {n} of {m}" for m in range(10)] for n in range(200)]
    query = "x " * (analyzer.MAX_QUERY_CHARS // 2)
    terms = telling.query_terms(query)
    expand(query, terms, groups)
    took = []
    for _ in range(5):
        started = time.perf_counter()
        expand(query, terms, groups)
        took.append(time.perf_counter() - started)

    assert min(took) < 0.2
