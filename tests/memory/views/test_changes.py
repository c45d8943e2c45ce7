"""Correcting a memory: what the second editor sees, what was trashed meanwhile, what is undone."""

import json

import pytest

from memory.models import Memory
from memory.services import memories
from tests.conftest import MING, NOW


@pytest.fixture
def memory(agent, remember):
    return remember(agent, "ming", "kumquat tea", name="tea", tags=["hot"])


def form_of(memory, **changes):
    values = {
        "name": memory.name, "type": memory.type, "content": memory.content,
        "description": memory.description, "tags": ", ".join(memory.tags),
        "importance": memory.importance, "version": memory.version,
    }  # fmt: skip
    return {**values, **changes}


def now_of(agent, memory):
    return Memory.objects.in_scope(agent, "ming").get(pk=memory.pk)


def test_what_the_second_editor_left_alone_stays_as_the_first_made_it(agent, web, memory):
    path = f"/memories/{memory.pk}/edit/"
    web.post(path, form_of(memory, name="our tea", tags="hot, daily"))

    conflict = web.post(path, form_of(memory, content="kumquat tea at nine"))
    form = conflict.context["form"]
    assert conflict.status_code == 409
    assert [str(value) for _, value in conflict.context["their_fields"]] == [
        "our tea",
        "hot, daily",
    ]
    web.post(path, {name: form[name].value() for name in form.fields})

    saved = now_of(agent, memory)
    assert (saved.name, saved.tags) == ("our tea", ["hot", "daily"])
    assert saved.content == "kumquat tea at nine"


def test_where_both_changed_the_text_both_are_shown(agent, web, memory):
    path = f"/memories/{memory.pk}/edit/"
    web.post(path, form_of(memory, content="kumquat tea, cold"))

    conflict = web.post(path, form_of(memory, content="kumquat tea, hot"))

    assert conflict.context["form"]["content"].value() == "kumquat tea, hot"
    assert ("ins", "cold") in [
        (mark, text.strip(", ")) for mark, text in conflict.context["theirs"]
    ]
    assert now_of(agent, memory).content == "kumquat tea, cold"


@pytest.mark.parametrize("end", ["edit/", "mark/", "revert/1/"])
def test_what_was_trashed_meanwhile_is_shown_as_such_and_not_changed(agent, fragment, memory, end):
    memories.update(agent, "ming", memory.pk, {"content": "x"}, actor=MING, now=NOW)
    memories.trash(agent, "ming", memory.pk, actor=MING, now=NOW)

    data = {**form_of(memory), "mark": "pause"}
    answer = fragment("post", f"/memories/{memory.pk}/{end}", data, target="detail")

    assert answer.status_code == 200
    assert answer.context["is_trashed"]
    assert "relist" in json.loads(answer.headers["HX-Trigger"])
    assert now_of(agent, memory).version == 3


@pytest.mark.parametrize(
    ("end", "data"),
    [("mark/", {"mark": "pause"}), ("mark/", {"mark": "pin"}), ("edit/", {"content": "other"})],
)
def test_every_change_can_be_undone(agent, fragment, memory, end, data):
    sent = {**form_of(memory), **data}
    answer = fragment("post", f"/memories/{memory.pk}/{end}", sent, target="detail")
    assert now_of(agent, memory).version == 2

    fragment("post", json.loads(answer.headers["HX-Trigger"])["toast"]["undo"])

    saved = now_of(agent, memory)
    assert (saved.status, saved.pinned, saved.content) == ("active", False, "kumquat tea")


@pytest.mark.parametrize("content", ["", " ", "\x00", "\u200b", "\u202e", "猫" * 3000])
def test_any_text_can_be_compared_with_what_is_there(fragment, memory, content):
    answer = fragment("post", "/memories/similar/", {"content": content}, target="similar")

    assert answer.status_code == 200
