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
from memory.models import Memory, MemoryTerms, MemoryVector, Scope, Store
from memory.services import recall
from memory.services.evaluation import runs, scratch
from memory.services.evaluation.measuring import Way, evaluate
from memory.services.evaluation.metrics import (
    METRICS,
    SHARES,
    Figures,
    discounted_gain,
    mean_of,
    percentile,
    recall_at,
    reciprocal_rank,
)
from memory.services.evaluation.runs import KeptRun
from memory.services.evaluation.sets import read_sets
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
    """Return the figures of what was ranked, whatever the scores."""
    means = found.figures[language, group].means()
    return {name: means[name] for name in METRICS}


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
    assert set(Figures().means().values()) == {None}


def test_what_is_given_has_a_precision_only_where_something_is():
    figures = Figures()
    figures.add_given(["m1", "x"], frozenset(["m1"]))
    figures.add_given([], frozenset(["m1"]))
    figures.add_elsewhere(is_silent=True)
    figures.add_elsewhere(is_silent=False)

    means = figures.means()

    assert {name: means[name] for name in SHARES if name not in METRICS} == {
        "precision": 0.5, "recall": 0.5, "silent": 0.5, "silent elsewhere": 0.5,
    }  # fmt: skip


def test_percentiles_are_values_that_were_measured():
    assert percentile([], 50) is None
    assert [percentile([3, 1, 2, 4], percent) for percent in (0, 50, 75, 95, 100)] == [
        1,
        2,
        3,
        4,
        4,
    ]


def test_mean_leaves_out_what_was_not_measured():
    assert mean_of([{"a": 1.0, "b": None}, {"a": 0.0, "b": None}]) == {"a": 0.5, "b": None}


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

    assert found.figures["en", ""].queries == 2
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

    assert {key: figures.queries for key, figures in found.figures.items()} == {
        ("en", ""): 1,
        ("en", "adversarial"): 1,
        ("zh", ""): 1,
    }
    assert set(means_of(found).values()) == {1.0}
    assert set(means_of(found, "zh").values()) == {0.0}


@in_stores
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_question_is_asked_of_another_scope_as_well(labelled, backend):
    asked = labelled(
        question("green tea at four", "tea"),
        question("black tea", "black", scope="bob"),
        question("no coffee", "coffee"),
        question("quantum", category="adversarial"),
    )

    found = evaluate(asked, backend, Way("lexical", 0.5), now=NOW)

    means = found.figures["en", ""].means()
    shown = {name: means[name] for name in ("precision", "recall", "silent")}
    assert shown == {"precision": 1, "recall": 1, "silent": 0}
    assert 0 < means["silent elsewhere"] <= 1
    assert means["p95 ms"] >= means["p50 ms"] > 0
    apart = found.figures["en", "adversarial"].means()
    assert (apart["silent"], apart["silent elsewhere"]) == (1, None)
    assert found.modes == {"lexical"}
    again = evaluate(asked, backend, Way("lexical", 0.5), now=NOW)
    assert again.figures["en", ""].means()["silent elsewhere"] == means["silent elsewhere"]


@in_stores
def test_threshold_decides_what_is_given_and_not_what_is_ranked(labelled):
    asked = labelled(question("tea in the garden", "tea"))

    low, high = (evaluate(asked, "sqlite", Way("lexical", at), now=NOW) for at in (0.0, 0.999))

    assert means_of(low) == means_of(high)
    silent = [each.figures["en", ""].means()["silent"] for each in (low, high)]
    assert silent == [0, 1]
    assert low.figures["en", ""].means()["silent elsewhere"] is None


@in_stores
@pytest.mark.parametrize("backend", BACKENDS)
def test_memories_are_embedded_where_the_mode_wants_it(backend, settings):
    settings.EMBEDDINGS = "embedded"
    lines = [json.dumps(each).encode() for each in MEMORIES]
    for embeds in (False, True):
        with scratch.throw_away_agent(backend) as agent:
            scratch.load(agent, lines, embeds=embeds, now=NOW)

            for scope in Scope.objects.for_agent(agent):
                rows = MemoryVector.objects.of_scope(scope)
                found = set(rows.values_list("dimension", flat=True))
                assert found == {512 if embeds else 0}
                assert {len(row.vector) for row in rows} == {1024 if embeds else 0}
                assert all(row.stamp <= scope.vector_stamp for row in rows)


# --- what is kept of it ----------------------------------------------------------------


def kept(at, mode="auto", backend="sqlite", **figures):
    rows = [{"set": "tea", "language": "en", "group": "", "queries": 1, **figures}]
    return KeptRun(at, mode, backend, 0.22, "", rows)


def test_runs_are_kept_by_mode_and_engine(tmp_path):
    folder = tmp_path / "evaluations"
    assert runs.last(folder, "auto", "sqlite") is None
    runs.keep(folder, kept("2026-01-02", precision=0.5))
    runs.keep(folder, kept("2026-01-01"))
    runs.keep(folder, kept("2026-01-03", backend="mysql"))
    with (folder / "runs.jsonl").open("a") as file:
        file.write('{"at": "2026-01-04", "mo')

    assert runs.last(folder, "auto", "sqlite") == kept("2026-01-02", precision=0.5)
    assert runs.last(folder, "lexical", "sqlite") is None


def test_fall_is_what_is_worse_by_more_than_is_tolerated():
    before = kept("1", precision=0.5, recall=0.9, silent=0.1, **{"p50 ms": 1.0})
    after = kept("2", precision=0.49, recall=0.88, silent=0.2, **{"p50 ms": 9.0})

    found = runs.compare(before, after, tolerance=0.01)

    assert {each.metric: each.is_fall for each in found} == {
        "precision": False, "recall": True, "silent": True,
    }  # fmt: skip
    assert not any(each.is_fall for each in runs.compare(after, before, tolerance=0.01))


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

    monkeypatch.setattr(recall, "search", fail)

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

    on_sqlite, on_mysql = (measured.figures for measured in found)
    assert on_sqlite.keys() == on_mysql.keys()
    for key in on_sqlite:
        one, other = on_sqlite[key].means(), on_mysql[key].means()
        assert [one[name] for name in SHARES] == pytest.approx(
            [other[name] for name in SHARES], abs=0.005
        )
    [language] = {language for language, group in on_sqlite if not group}
    for measured in found:
        means = means_of(measured, language)
        print(name, {metric: round(value, 3) for metric, value in means.items()})
        assert all(round(means[metric], 2) >= least for metric, least in LEAST[name].items())
