"""Changing many memories from the list: the ticked, or all that match; undone; by a job."""

import json
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from memory.models import Memory
from memory.services import bulk, job_kinds
from tests.conftest import NOW


@pytest.fixture
def forty(agent, remember):
    return [
        remember(
            agent, "ming", f"kumquat {n}", type=("user", "project")[n % 2],
            now=NOW + timedelta(minutes=n),
        )
        for n in range(40)
    ]  # fmt: skip


def statuses(agent, user_id="ming"):
    rows = Memory.objects.in_scope(agent, user_id).order_by("pk")
    return [memory.status for memory in rows]


def undo_of(answer):
    return json.loads(answer.headers["HX-Trigger"])["toast"]["undo"]


def test_the_ticked_are_deleted_and_come_back(fragment, agent, forty):
    ids = [memory.pk for memory in forty[:3]]

    answer = fragment("post", "/memories/bulk/?type=user", {"action": "delete", "id": ids})

    assert statuses(agent).count("trashed") == 3
    assert answer.context["total"] == 18
    back = fragment("post", undo_of(answer))
    assert statuses(agent) == ["active"] * 40
    assert back.context["query"] == {"type": "user"}


def test_everything_means_the_filter_and_not_what_is_shown(fragment, agent, forty):
    fragment("post", "/memories/bulk/?type=user", {"action": "pause", "everything": "1"})

    assert statuses(agent) == ["paused", "active"] * 20


def test_everything_of_a_search_means_its_hits(fragment, agent, forty, remember):
    remember(agent, "ming", "zebra")

    fragment("post", "/memories/bulk/?q=kumquat", {"action": "pin", "everything": "1"})

    rows = Memory.objects.in_scope(agent, "ming")
    assert sorted(memory.name for memory in rows if not memory.pinned) == ["zebra"]


def test_type_and_tag_are_given_to_the_ticked(fragment, agent, forty):
    ids = [forty[0].pk]

    fragment("post", "/memories/bulk/", {"action": "type:reference", "id": ids})
    fragment("post", "/memories/bulk/", {"action": "tag", "tag": " 茶 ", "id": ids})
    fragment("post", "/memories/bulk/", {"action": "tag", "tag": " ", "id": ids})

    memory = Memory.objects.in_scope(agent, "ming").get(pk=forty[0].pk)
    assert (memory.type, memory.tags, memory.version) == ("reference", ["茶"], 3)


@pytest.mark.parametrize("action", ["", "explode", "type:nonsense", "type", "undo"])
def test_what_no_button_sends_is_refused(web, agent, forty, action):
    answer = web.post("/memories/bulk/", {"action": action, "id": [forty[0].pk]})

    assert answer.status_code == 404
    assert statuses(agent) == ["active"] * 40


def test_others_memories_are_out_of_reach(web, agent, forty, remember):
    other = remember(agent, "bob", "quince")

    web.post("/memories/bulk/", {"action": "delete", "id": [other.pk, "x", "9" * 30]})

    assert statuses(agent, "bob") == ["active"]


def test_very_many_are_left_to_a_job_that_shows_how_far_it_is(fragment, agent, forty, monkeypatch):
    monkeypatch.setattr(bulk, "AT_ONCE", 10)

    answer = fragment("post", "/memories/bulk/", {"action": "delete", "everything": "1"})
    job = answer.context["job"]
    waiting = fragment("get", f"/memories/bulk/{job.pk}/")
    job_kinds.perform(job.pk)
    done = fragment("get", f"/memories/bulk/{job.pk}/")

    assert 'hx-trigger="every 2s"' in waiting.content.decode()
    assert "every 2s" not in done.content.decode()
    assert statuses(agent) == ["trashed"] * 40
    undoing = fragment("post", done.context["undo"])
    job_kinds.perform(undoing.context["job"].pk)
    assert statuses(agent) == ["active"] * 40


def test_without_scripts_the_list_comes_back_as_it_was_narrowed(web, agent, forty):
    ids = [forty[0].pk]
    answer = web.post("/memories/bulk/?type=user", {"action": "delete", "id": ids})

    assert answer.status_code == 302
    assert urlsplit(answer.headers["Location"]).query == "type=user"


@pytest.mark.parametrize("at", ["", "yesterday", "2026-11-30", "2026-11-30T09:00:00"])
def test_undo_of_no_moment_is_refused(web, forty, at):
    assert web.post(f"/memories/undo/?at={at}").status_code == 404


def test_enter_in_the_field_of_the_tag_does_nothing_else(fragment, agent, forty):
    """The first button of a form is what Enter presses: here it is the tag's."""
    text = fragment("get", "/memories/").content.decode()
    form = text[text.index('id="bulk"') :]

    assert form.index('value="tag"') < form.index('value="pause"')


@pytest.mark.parametrize("tag", ["", " ", "\x00", "x" * 65, "a\nb"])
def test_what_is_no_tag_is_refused_in_words(fragment, agent, forty, tag):
    answer = fragment("post", "/memories/bulk/", {"action": "tag", "tag": tag, "id": [forty[0].pk]})

    assert answer.status_code == 200
    assert Memory.objects.in_scope(agent, "ming").get(pk=forty[0].pk).version == 1


def test_too_many_ticks_are_refused_and_not_cut(fragment, agent, forty, monkeypatch):
    monkeypatch.setattr(bulk, "AT_ONCE", 10)

    fragment("post", "/memories/bulk/", {"action": "delete", "id": [each.pk for each in forty]})

    assert statuses(agent) == ["active"] * 40


def test_the_trash_gives_back_the_ticked_or_everything(web, agent, forty):
    web.post("/memories/bulk/", {"action": "delete", "everything": "1"})
    web.post("/memories/bulk/", {"action": "restore", "id": [forty[0].pk, forty[1].pk]})
    assert statuses(agent).count("active") == 2

    answer = web.post("/memories/bulk/", {"action": "restore", "everything": "1"})

    assert answer.url == "/memories/trash/"
    assert statuses(agent) == ["active"] * 40


def test_a_memory_full_of_tags_stops_no_other(fragment, agent, forty):
    full = Memory.objects.in_scope(agent, "ming").filter(pk=forty[0].pk)
    full.update(tags=[f"t{number}" for number in range(32)])
    ids = [memory.pk for memory in forty[:3]]

    fragment("post", "/memories/bulk/", {"action": "tag", "tag": "tea", "id": ids})

    rows = Memory.objects.in_scope(agent, "ming").filter(pk__in=ids).order_by("pk")
    assert [("tea" in memory.tags, memory.version) for memory in rows] == [
        (False, 1), (True, 2), (True, 2),
    ]  # fmt: skip


def test_a_bad_tag_begins_no_job(fragment, agent, forty, monkeypatch):
    monkeypatch.setattr(bulk, "AT_ONCE", 10)

    data = {"action": "tag", "tag": "x" * 65, "everything": "1"}
    answer = fragment("post", "/memories/bulk/", data)

    assert answer.context["job"] is None
