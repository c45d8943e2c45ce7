"""Memories by name: what a model refers to without ids."""

from datetime import timedelta

import pytest

from memory.errors import AmbiguousName, InvalidMemory, UnknownMemory
from memory.models import ActorKind, Scope
from memory.services import memories
from memory.services.naming import find_named, infer_type, live_of_name, save_named
from memory.services.writing import Actor
from tests.conftest import NOW
from tests.memory.rows import assert_consistent, row_counts
from tests.memory.threads import at_once

ADA = Actor(ActorKind.AGENT, "ada")


def save(agent, user_id="ming", **values):
    return save_named(agent, user_id, values, actor=ADA, now=NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see www.example.org", "reference"),
        ("Ming likes https://example.org", "reference"),
        ("Stop using tables; he prefers lists", "feedback"),
        ("不要用表格", "feedback"),
        ("My name is Ming", "user"),
        ("我叫周宁", "user"),
        ("The release is on Friday", "project"),
        ("", "project"),
    ],
)
def test_the_type_follows_from_the_words(text, expected):
    assert infer_type(text) == expected


def test_a_name_is_one_memory_and_exactly_that_name(agent):
    memory, done = save(agent, name="office", content="Riga")
    names = ("Office", "office ", "öffice")
    others = [
        save(agent, name=name, content=f"Riga {floor}")[1] for floor, name in enumerate(names)
    ]
    same, changed = save(agent, name="office", content="Tartu", description="where to meet")

    assert (done, changed) == ("created", "updated")
    assert others == ["created"] * 3
    assert same.pk == memory.pk
    found = find_named(agent, "ming", "office", now=NOW)
    assert (found.content, found.description, found.version) == ("Tartu", "where to meet", 2)
    assert_consistent(agent)


def test_a_name_belongs_to_one_user(agent):
    save(agent, name="office", content="Riga")

    assert save(agent, "bob", name="office", content="Tartu")[1] == "created"
    for user_id in ("mallory", "ming ", "MING"):
        with pytest.raises(UnknownMemory, match="call memory_recall"):
            find_named(agent, user_id, "office", now=NOW)


def test_a_paused_memory_keeps_its_name_and_its_status(agent, remember):
    paused = remember(agent, "ming", "Riga", name="office", status="paused")

    memory, done = save(agent, name="office", content="Tartu")

    assert (memory.pk, done, memory.status) == (paused.pk, "updated", "paused")


def test_what_is_gone_has_no_name(agent, remember):
    for fields in ({"status": "trashed"}, {"status": "archived"}, {"status": "superseded"},
                   {"expires_at": NOW}):  # fmt: skip
        remember(agent, "ming", "Riga", name="office", **fields)
    scope = Scope.objects.of_user(agent, "ming").get()

    assert live_of_name(scope, "office", now=NOW) == []
    assert len(live_of_name(scope, "office", now=NOW - timedelta(seconds=1))) == 1
    with pytest.raises(UnknownMemory):
        find_named(agent, "ming", "office", now=NOW)


def test_the_same_text_twice_over_is_no_question_without_a_name(agent, remember):
    for _ in range(2):
        remember(agent, "ming", "Ming likes tea")

    memory, done = save(agent, content="Ming likes tea")

    assert done == "unchanged"
    assert memory.content == "Ming likes tea"
    with pytest.raises(AmbiguousName):
        save(agent, name="Ming likes tea", content="Ming likes oolong")


@pytest.mark.parametrize("name", ["", " ", "x" * 256, "a\x00", "\ud83d", 5, None])
def test_what_no_memory_can_be_named_is_refused(agent, name):
    save(agent, content="Ming likes tea")

    with pytest.raises(InvalidMemory) as caught:
        find_named(agent, "ming", name, now=NOW)
    assert set(caught.value.fields) == {"name"}


def test_what_is_not_valid_stores_nothing(agent):
    for values in (
        {},
        {"name": "office"},
        {"name": "office", "content": " "},
        {"name": "\ud83d", "content": "x"},
        {"content": "x", "colour": "red"},
    ):
        with pytest.raises(InvalidMemory):
            save(agent, **values)
    assert row_counts(agent)["Scope"] == 0


def test_many_savers_of_one_name_make_one_memory(agent):
    done = at_once(
        [lambda n=n: save(agent, name="office", content=f"Riga {n}")[1] for n in range(6)]
    )

    assert sorted(done) == ["created"] + ["updated"] * 5
    [memory] = memories.walk(agent, "ming")
    assert memory.version == 6
    assert_consistent(agent)
