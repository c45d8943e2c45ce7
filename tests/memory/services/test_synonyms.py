"""Rows of words that mean the same: what can be one, and who changed them."""

import pytest
from django.core.exceptions import ValidationError
from django.utils import translation

from agents.models import Agent, AuditEntry
from memory.services import synonyms
from memory.understanding.synonyms import MAX_GROUPS
from tests.conftest import NOW
from tests.memory.views.operators import make_operator


@pytest.fixture(autouse=True)
def _in_english():
    with translation.override("en"):
        yield


@pytest.fixture
def opal(db):
    return make_operator()


def kept(agent):
    return Agent.objects.named(agent.name).memory_config.synonyms


def details():
    return list(AuditEntry.objects.order_by("pk").values_list("detail", flat=True))


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("k8s, Kubernetes", ["k8s", "Kubernetes"]),
        (" k8s ，容器  平台、集群;x\ny ", ["k8s", "容器 平台", "集群", "x", "y"]),
        ("Car, car, ＣＡＲ, auto", ["Car", "auto"]),
        ("数据库,資料庫,數據庫", ["数据库", "資料庫"]),
        ("c++, cpp", ["c++", "cpp"]),
        ("a, b,,", ["a", "b"]),
    ],
)
def test_words_are_read_between_commas(text, group):
    assert synonyms.parse(text) == group


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "at least two"), ("k8s", "at least two"), (" , ,", "at least two"),
        ("k8s, K8S", "at least two"), (",".join("abcdefghijk"), "At most 10 words"),
        (f"k8s, {'x' * 61}", "At most 60 characters"), ("k8s, ++", "no letter or digit"),
        ("k8s, 。。", "no letter or digit"),
    ],
)  # fmt: skip
def test_what_can_be_no_row_is_refused(text, problem):
    with pytest.raises(ValidationError, match=problem):
        synonyms.parse(text)


def test_rows_are_added_changed_and_removed_on_record(ada, opal):
    change = {"actor": opal, "now": NOW}

    synonyms.add(ada, ["k8s", "Kubernetes"], **change)
    synonyms.add(ada, ["ci", "jenkins"], **change)
    synonyms.change(ada, ["k8s", "Kubernetes"], ["k8s", "集群"], **change)
    assert kept(ada) == ada.memory_config.synonyms == [["ci", "jenkins"], ["k8s", "集群"]]

    assert synonyms.remove(ada, ["k8s", "集群"], **change) == 1
    assert kept(ada) == [["ci", "jenkins"]]
    assert details() == [
        "synonyms: + k8s, Kubernetes", "synonyms: + ci, jenkins",
        "synonyms: k8s, Kubernetes → k8s, 集群", "synonyms: − k8s, 集群",
    ]  # fmt: skip


def test_a_row_that_is_not_there_any_more_changes_nothing(ada, opal):
    change = {"actor": opal, "now": NOW}
    synonyms.add(ada, ["a1", "b1"], **change)

    for act in (
        lambda: synonyms.change(ada, ["a1", "c1"], ["x", "y"], **change),
        lambda: synonyms.remove(ada, ["a1", "c1"], **change),
    ):
        with pytest.raises(ValidationError, match="Somebody else changed this row"):
            act()
    assert kept(ada) == [["a1", "b1"]]
    assert len(details()) == 1


def test_a_row_that_is_the_same_is_no_change(ada, opal):
    change = {"actor": opal, "now": NOW}
    synonyms.add(ada, ["a1", "b1"], **change)

    synonyms.change(ada, ["a1", "b1"], ["a1", "b1"], **change)

    assert len(details()) == 1


def test_no_two_rows_are_of_the_same_words(ada, opal):
    change = {"actor": opal, "now": NOW}
    synonyms.add(ada, ["a1", "b1"], **change)
    synonyms.add(ada, ["a1", "c1"], **change)  # a word may be in several

    with pytest.raises(ValidationError, match="already"):
        synonyms.add(ada, ["B1", "a1"], **change)
    with pytest.raises(ValidationError, match="already"):
        synonyms.change(ada, ["a1", "c1"], ["b1", "a1"], **change)


def test_there_are_only_so_many_rows(ada, opal):
    ada.memory_config.synonyms = [[f"a{n}", f"b{n}"] for n in range(MAX_GROUPS)]
    ada.memory_config.save()

    with pytest.raises(ValidationError, match="as many as may be"):
        synonyms.add(ada, ["x", "y"], actor=opal, now=NOW)
