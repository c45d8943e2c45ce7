"""Measuring retrieval: the figures, what a question may see, and what is left behind."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.models import Agent
from memory.databases import migrate_store
from memory.models import Memory, MemoryTerms, Scope, Store
from memory.services import evaluation
from memory.services.evaluation import (
    METRICS,
    Figures,
    discounted_gain,
    evaluate,
    read_sets,
    recall_at,
    reciprocal_rank,
)
from tests.conftest import NOW, make_agent

DATA = Path(__file__).resolve().parents[2] / "data"
BACKENDS = ("sqlite", "mysql")
ALIASES = ("sqlite:memory.db", "mysql")
LEAST = {
    "memorybank-zh": {"recall@10": 0.95, "nDCG@10": 0.76},
    "memorybank-en": {"recall@10": 0.88, "nDCG@10": 0.67},
    "madial-zh": {"recall@10": 0.56, "nDCG@10": 0.46},
    "madial-en": {"recall@10": 0.58, "nDCG@10": 0.48},
    "precision": {"recall@10": 0.91, "nDCG@10": 0.87},
}
"""What the search by words must reach, to two decimals."""

in_stores = pytest.mark.django_db(transaction=True, databases="__all__")

MEMORIES = [
    {"id": "tea", "scope": "ming", "type": "user", "name": "Tea", "content": "green tea at four",
     "created_at": "2026-01-01T00:00:00Z", "lang": "en"},
    {"id": "coffee", "scope": "ming", "type": "user", "name": "Coffee", "content": "no coffee",
     "created_at": "2026-03-01T00:00:00Z", "lang": "en"},
    {"id": "black", "scope": "bob", "type": "user", "name": "Bob", "content": "black tea",
     "created_at": "2026-01-01T00:00:00Z", "lang": "en"},
]  # fmt: skip


def question(text, *relevant, scope="ming", **more):
    return {"qid": text, "scope": scope, "query": text, "relevant": relevant, "lang": "en", **more}


@pytest.fixture
def labelled(tmp_path):
    """Write a set and read it: labelled(question("tea", "tea"), …, memories=…)."""

    def write(*questions, memories=MEMORIES):
        for kind, records in (("memories", memories), ("queries", questions)):
            lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
            (tmp_path / f"set.{kind}.jsonl").write_text("".join(lines), encoding="utf-8")
        [found] = read_sets(tmp_path)
        return found

    return write


def rows_left():
    """Return how many rows evaluation's tables hold, whoever's they are."""
    models = (Memory, MemoryTerms, Scope, Store)
    counts = [model.objects.using(alias).count() for model in models for alias in ALIASES]
    return [*counts, Agent.objects.filter(name__startswith="evaluate").count()]


def means_of(found, language="en", group=""):
    return found[language, group].means()


# --- metrics ---------------------------------------------------------------------------


RANKED = [f"m{n}" for n in range(1, 12)]  # m1 … m11
METRICS_BY_HAND = [
    # relevant, recall@5, recall@10, MRR@10, nDCG@10
    (["m1"], 1, 1, 1, 1),
    (["m2"], 1, 1, 1 / 2, 1 / math.log2(3)),
    (["m3"], 1, 1, 1 / 3, 1 / 2),
    (["m10"], 0, 1, 1 / 10, 1 / math.log2(11)),
    (["m11"], 0, 0, 0, 0),
    (["nowhere"], 0, 0, 0, 0),
    (["m1", "m2"], 1, 1, 1, 1),
    (["m1", "m6"], 1 / 2, 1, 1, (1 + 1 / math.log2(7)) / (1 + 1 / math.log2(3))),
    (["m3", "nowhere"], 1 / 2, 1 / 2, 1 / 3, (1 / 2) / (1 + 1 / math.log2(3))),
    (["m2", "m7", "m11"], 1 / 3, 2 / 3, 1 / 2,
     (1 / math.log2(3) + 1 / 3) / (1 + 1 / math.log2(3) + 1 / 2)),
    (RANKED, 5 / 11, 10 / 11, 1, 1),
    ([], 0, 0, 0, 0),
]  # fmt: skip


def test_metrics_by_hand():
    assert list(METRICS) == ["recall@5", "recall@10", "MRR@10", "nDCG@10"]
    for relevant, *expected in METRICS_BY_HAND:
        found = [metric(RANKED, frozenset(relevant)) for metric in METRICS.values()]

        assert found == pytest.approx(expected), relevant


def test_metrics_of_an_empty_answer_are_nought():
    assert [metric([], frozenset(["m1"])) for metric in METRICS.values()] == [0, 0, 0, 0]


def test_recall_counts_the_first_k_only():
    relevant = frozenset(["m1", "m3"])

    assert [recall_at(k)(RANKED, relevant) for k in (1, 2, 3)] == [0.5, 0.5, 1.0]


def test_gain_and_rank_ignore_the_order_of_labels():
    assert discounted_gain(["a", "b"], frozenset("ab")) == discounted_gain(["b", "a"], {"a", "b"})
    assert reciprocal_rank(["x", "b", "a"], frozenset("ab")) == 1 / 2


def test_figures_are_means_over_queries():
    figures = Figures()
    figures.add(["m1"], frozenset(["m1"]))
    figures.add(["m2", "m1"], frozenset(["m1"]))
    figures.add([], frozenset(["m1"]))

    assert figures.queries == 3
    assert figures.means()["MRR@10"] == pytest.approx((1 + 1 / 2) / 3)
    assert figures.means()["recall@5"] == pytest.approx(2 / 3)
    assert set(Figures().means().values()) == {0.0}


# --- sets ------------------------------------------------------------------------------


def test_sets_are_pairs_of_files_by_name(tmp_path):
    for name in ("b.memories.jsonl", "b.queries.jsonl", "a.memories.jsonl", "a.queries.jsonl",
                 "alone.memories.jsonl", "lonely.queries.jsonl", "README.md"):  # fmt: skip
        (tmp_path / name).write_text("")

    assert [(each.name, each.queries) for each in read_sets(tmp_path)] == [("a", ()), ("b", ())]
    assert read_sets(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    "line", ["nonsense", "{}", "[]", '{"qid": 1, "scope": "ming", "query": "tea"}']
)
def test_malformed_question_is_named(tmp_path, line):
    (tmp_path / "set.memories.jsonl").write_text("")
    (tmp_path / "set.queries.jsonl").write_text(f"{json.dumps(question('tea', 'tea'))}\n{line}\n")

    with pytest.raises(ValueError, match=r"^set\.queries\.jsonl, line 2: "):
        read_sets(tmp_path)


# --- what a question sees --------------------------------------------------------------


@in_stores
@pytest.mark.parametrize("backend", BACKENDS)
def test_questions_are_asked_in_their_scope(labelled, backend):
    asked = labelled(question("tea", "tea"), question("tea", "tea", scope="bob"))

    found = evaluate(asked, backend, now=NOW)

    assert found["en", ""].queries == 2
    assert set(means_of(found).values()) == {0.5}


@in_stores
@pytest.mark.parametrize("backend", BACKENDS)
def test_question_sees_only_what_is_older(labelled, backend):
    created_at = "2026-03-01T00:00:00Z"
    for asked_at, is_seen in (
        (None, 1), ("2026-03-01T00:00:00.000001Z", 1), (created_at, 0), ("2026-02-01", 0),
    ):  # fmt: skip
        asked = labelled(question("coffee", "coffee", asked_at=asked_at))

        assert set(means_of(evaluate(asked, backend, now=NOW)).values()) == {is_seen}


@in_stores
def test_adversarial_questions_and_languages_stand_apart(labelled):
    asked = labelled(
        question("tea", "tea"),
        question("quantum", category="adversarial"),
        question("tea", "coffee", category="other", lang="zh"),
    )

    found = evaluate(asked, "sqlite", now=NOW)

    assert {key: figures.queries for key, figures in found.items()} == {
        ("en", ""): 1,
        ("en", "adversarial"): 1,
        ("zh", ""): 1,
    }
    assert set(means_of(found).values()) == {1.0}
    assert set(means_of(found, "zh").values()) == {0.0}


# --- what is left behind ---------------------------------------------------------------


@in_stores
@pytest.mark.parametrize("backend", BACKENDS)
def test_evaluation_leaves_no_row(labelled, backend):
    evaluate(labelled(question("tea", "tea")), backend, now=NOW)

    assert set(rows_left()) == {0}


@in_stores
@pytest.mark.parametrize("backend", BACKENDS)
def test_evaluation_that_fails_leaves_no_row(labelled, backend, monkeypatch):
    def fail(*args, **kwargs):
        assert Memory.objects.for_agent(args[0]).count() == 3
        raise RuntimeError("in the middle")

    monkeypatch.setattr(evaluation, "search", fail)

    with pytest.raises(RuntimeError, match="in the middle"):
        evaluate(labelled(question("tea", "tea")), backend, now=NOW)

    assert set(rows_left()) == {0}


@in_stores
@pytest.mark.parametrize("backend", BACKENDS)
def test_set_with_a_bad_memory_is_named_and_leaves_no_row(labelled, backend):
    asked = labelled(question("tea", "tea"), memories=[*MEMORIES, {"id": "x", "scope": "ming"}])

    with pytest.raises(ValueError, match=r"^set\.memories\.jsonl, line 4: "):
        evaluate(asked, backend, now=NOW)

    assert set(rows_left()) == {0}


@in_stores
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_dead_process_left_is_cleaned_up(labelled, remember, backend):
    left = make_agent("evaluate.sqlite.999999999", "sqlite")
    elsewhere = make_agent("evaluate.mysql.999999998", "mysql")
    for agent in (left, elsewhere):
        remember(agent, "ming", "Ming drinks tea")

    evaluate(labelled(question("tea", "tea")), backend, now=NOW)

    assert set(rows_left()) == {0}


@in_stores
def test_what_a_dead_process_of_the_same_number_left_is_cleaned_up(labelled, remember):
    """In a container every run may have the same process id."""
    left = make_agent(f"evaluate.sqlite.{os.getpid()}", "sqlite")
    remember(left, "ming", "Ming drinks tea")

    found = evaluate(labelled(question("tea", "tea")), "sqlite", now=NOW)

    assert set(means_of(found).values()) == {1.0}
    assert set(rows_left()) == {0}


@in_stores
def test_evaluation_of_a_process_that_runs_is_left_alone(labelled):
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        agent = make_agent(f"evaluate.mysql.{running.pid}", "mysql")

        evaluate(labelled(question("tea", "tea")), "mysql", now=NOW)

        assert list(Agent.objects.all()) == [agent]


@in_stores
def test_agent_of_an_operator_is_left_alone_whatever_its_name(labelled, remember):
    names = ["evaluate.20261130", "evaluate.reports", "evaluate.sqlite.v2"]
    for name in names:
        remember(make_agent(name, "sqlite"), "ming", "Ming drinks tea")

    evaluate(labelled(question("tea", "tea")), "sqlite", now=NOW)

    assert list(Agent.objects.values_list("name", flat=True)) == names
    assert [Memory.objects.for_agent(agent).count() for agent in Agent.objects.all()] == [1, 1, 1]


# --- the sets of tests/data ------------------------------------------------------------


@in_stores
@pytest.mark.parametrize("name", LEAST)
def test_set_is_found_as_well_as_before_and_alike_on_both_engines(name):
    migrate_store("mysql")
    [labelled] = [each for each in read_sets(DATA) if each.name == name]

    found = [evaluate(labelled, backend, now=NOW) for backend in BACKENDS]

    on_sqlite, on_mysql = found
    assert on_sqlite.keys() == on_mysql.keys()
    for key in on_sqlite:
        assert on_sqlite[key].means() == pytest.approx(on_mysql[key].means(), abs=0.005)
    [language] = {language for language, group in on_sqlite if not group}
    for figures in found:
        means = means_of(figures, language)
        print(name, {metric: round(value, 3) for metric, value in means.items()})
        assert all(round(means[metric], 2) >= least for metric, least in LEAST[name].items())
