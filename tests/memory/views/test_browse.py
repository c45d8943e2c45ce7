"""The list and one memory beside it: what narrows them, and what is said of nothing."""

from datetime import timedelta
from urllib.parse import urlencode

import pytest
import time_machine
from django.db import OperationalError

from agents.models import Profile
from memory.models import Memory
from memory.services import memories
from tests.conftest import MING, NOW


@pytest.fixture
def pantry(agent, remember):
    """Memories that differ in everything a list can be narrowed by."""
    made = {}
    for name, age, fields in (
        ("tea", 0, {"type": "user", "tags": ["drink"], "importance": 0.9}),
        (
            "jam",
            10,
            {
                "type": "project",
                "source": "api",
                "kind": "procedure",
                "detail": {"when": "s", "steps": ["a"]},
                "importance": 0.5,
            },
        ),
        ("pie", 20, {"type": "feedback", "status": "paused", "importance": 0.1}),
    ):
        made[name] = remember(
            agent, "ming", f"kumquat {name}", name=name, now=NOW - timedelta(days=age), **fields
        )
    remember(agent, "bob", "kumquat of bob", name="bob's", tags=["drink"])
    return made


def names(answer):
    return [entry.memory.name for entry in answer.context["entries"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["tea", "jam", "pie"]),
        ("sort=oldest", ["pie", "jam", "tea"]),
        ("sort=important", ["tea", "jam", "pie"]),
        ("type=project", ["jam"]),
        ("tag=drink", ["tea"]),
        ("kind=procedure", ["jam"]),
        ("source=api", ["jam"]),
        ("status=paused", ["pie"]),
        ("importance=0.4", ["tea", "jam"]),
        ("after=2026-11-20&before=2026-11-20", ["jam"]),
        ("after=2026-11-21", ["tea"]),
        ("unused=30", ["tea", "jam", "pie"]),
        ("q=kumquat&type=user", ["tea"]),
        ("q=pie", ["pie"]),
        ("q=zebra", []),
        # what is not valid narrows nothing
        ("type=nonsense&after=yesterday&sort=upwards", ["tea", "jam", "pie"]),
    ],
)
def test_what_is_in_the_address_narrows_the_list(web, pantry, query, found):
    answer = web.get(f"/memories/?{query}")

    assert answer.status_code == 200
    assert names(answer) == found


def test_days_are_those_of_the_readers_time_zone(web, ming, agent, remember):
    Profile.objects.create(account=ming, time_zone="Asia/Shanghai")
    remember(agent, "ming", "late", name="late", now=NOW.replace(day=20, hour=17))

    assert names(web.get("/memories/?after=2026-11-21&before=2026-11-21")) == ["late"]
    assert names(web.get("/memories/?before=2026-11-20")) == []


def test_every_page_of_list_and_search_is_reached_once(web, agent, remember):
    for number in range(75):
        remember(agent, "ming", f"kumquat {number}", now=NOW + timedelta(minutes=number))

    for address in ("/memories/", "/memories/?q=kumquat"):
        seen = []
        while address:
            answer = web.get(address)
            seen += names(answer)
            address = answer.context["next"]
        assert sorted(seen) == sorted(f"kumquat {n}" for n in range(75))


def test_nothing_found_names_the_filters_and_what_is_there_without(web, pantry):
    text = web.get("/memories/?q=kumquat&type=reference", headers={"accept-language": "en"})
    page_text = text.content.decode()

    assert "Type = Reference" in page_text
    assert "Without them there are 3." in page_text
    assert 'href="/memories/?q=kumquat"' in page_text


def test_a_long_list_counts_its_types_afterwards(web, fragment, pantry, monkeypatch):
    monkeypatch.setattr("memory.views.listing.COUNTED_AT_ONCE", 2)

    answer = web.get("/memories/?tag=drink")
    assert answer.context["counts"] is None
    assert 'hx-get="/memories/counts/?tag=drink"' in answer.content.decode()

    counted = fragment("get", "/memories/counts/?tag=drink")
    assert counted.context["counts"].by_type == {"user": 1}
    assert counted.content.decode().count("<div") == 1


@pytest.mark.parametrize(
    "path", ["", "?cursor=x", "?q=kumquat&cursor=x", "?q=kumquat&cursor=99999"]
)
def test_a_cursor_that_somebody_made_up_leads_nowhere(web, pantry, path):
    assert web.get(f"/memories/{path}").status_code == (404 if path else 200)


def test_each_tab_tells_its_part(web, agent, pantry):
    memory = pantry["tea"]
    memories.touch(agent, "ming", [memory.pk], now=NOW)
    memories.update(agent, "ming", memory.pk, {"content": "kumquat tea, hot"}, actor=MING, now=NOW)
    english = {"accept-language": "en"}

    def tab(name):
        return web.get(f"/memories/{memory.pk}/?tab={name}", headers=english).content.decode()

    assert "<ins>, hot</ins>" in tab("history")
    assert "recalled it 1 time" in tab("recalls")
    assert "jam" in tab("similar")
    assert str(memory.pk) in tab("metadata")
    assert "<ins>" in tab("nonsense")


def test_a_row_can_be_asked_for_alone(fragment, pantry):
    memory = pantry["tea"]
    answer = fragment("get", f"/memories/{memory.pk}/", target=f"row-{memory.pk}")

    assert answer.content.decode().strip().startswith("<li")


def test_what_goes_into_the_list_of_pages_is_asked_for_by_letters(web, pantry, agent):
    english = {"accept-language": "en"}

    everything = web.get("/search/", headers=english)
    found = web.get("/search/?q=tras", headers=english)
    memory = web.get("/search/?q=kumq", headers=english)

    assert [place.label for place in everything.context["agents"]] == [agent.name]
    assert [place.label for place in found.context["places"]] == ["Trash"]
    assert len(memory.context["entries"]) == 3


HOSTILE = '"><svg onload=alert(1)>'


def test_nothing_that_was_saved_becomes_markup(web, fragment, agent, ming, remember):
    """From the field: tags, names and metadata that were shown without escaping (C049)."""
    memory = remember(
        agent, "ming", "kumquat", name=HOSTILE, tags=["<img src=x onerror=alert(1)>"],
        metadata={"<i>k</i>": "<script>1</script>"}, description="<b>d</b>",
    )  # fmt: skip
    path = f"/memories/{memory.pk}/"
    bad_type = {"type": "<u>x</u>", "name": "n", "content": "c", "importance": "1", "version": "1"}
    answers = [
        web.get("/memories/"), web.get(path), web.get(f"{path}?tab=metadata"),
        web.get(f"{path}edit/"), fragment("get", "/memories/?q=kumquat"),
        web.get("/memories/?q=<u>x</u>&tag=<u>x</u>"), web.get("/search/?q=kumquat"),
        web.post(f"{path}edit/", bad_type),
        web.get("/memories/new/?content=<u>x</u>"),
        fragment("post", f"{path}delete/"), web.get("/memories/trash/"),
    ]  # fmt: skip

    assert answers[7].status_code == 422
    for answer in answers:
        text = answer.content.decode()
        for raw in ("<svg onload", "<img src=x", "<i>k", "<script>1", "<b>d", "<u>x"):
            assert raw not in text
        policy = answer.headers["Content-Security-Policy"]
        assert "unsafe-inline" not in policy
        assert "script-src 'self'" in policy
    toast = answers[9].headers["HX-Trigger"]
    assert toast.isascii()
    assert "\n" not in toast


def test_a_get_changes_nothing(web, agent, remember):
    """From the field: addresses that deleted on GET (C051)."""
    memory = remember(agent, "ming", "kumquat")

    for end in ("delete/", "erase/", "restore/", "mark/", "revert/1/"):
        assert web.get(f"/memories/{memory.pk}/{end}").status_code == 405
    for path in ("/memories/bulk/", "/memories/undo/", "/me/memory/erase/"):
        assert web.get(path).status_code == 405

    assert Memory.objects.in_scope(agent, "ming").get().version == 1


def test_without_its_token_nothing_changes(agent, ming, remember, settings):
    """From the field: HTMX requests that went through without a CSRF token (C051)."""
    from django.test import Client

    settings.ALLOWED_HOSTS = ["testserver"]
    client = Client(enforce_csrf_checks=True)
    client.force_login(ming)
    memory = remember(agent, "ming", "kumquat")
    headers = {"HX-Request": "true", "HX-Target": "list"}

    for method, path in (
        ("post", f"/memories/{memory.pk}/delete/"), ("post", "/memories/bulk/"),
        ("delete", f"/memories/{memory.pk}/delete/"), ("post", f"/memories/{memory.pk}/edit/"),
    ):  # fmt: skip
        assert getattr(client, method)(path, headers=headers).status_code == 403

    assert Memory.objects.in_scope(agent, "ming").get().version == 1


@pytest.mark.parametrize(
    "query",
    ["after=0001-01-01", "before=9999-12-31", "after=2026-02-30", "importance=1e999", "unused=-1",
     "q=%00", "q=%E2%80%8B", "tag=%00", "source=%0A", "agent=%00", "type=%00", "sort=%00"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/memories/", "/memories/counts/"])
def test_odd_filters_narrow_nothing_or_to_nothing_and_fail_nothing(web, pantry, path, query):
    assert web.get(f"{path}?{query}").status_code == 200


def test_a_memory_in_a_silent_store_is_out_of_reach_and_not_gone(web, pantry, agent, monkeypatch):
    path = f"/memories/{pantry['tea'].pk}/"
    monkeypatch.setattr("memory.services.library.store_alias", _silent)

    assert web.get(path).status_code == 503


def _silent(agent):
    raise OperationalError(2006, "MySQL server has gone away")


def test_the_filters_speak_the_language_of_the_page(web):
    pages = {
        each: web.get("/memories/", headers={"accept-language": each}) for each in ("zh-hans", "en")
    }

    assert "for 30 days" in pages["en"].content.decode()
    assert "0.4 or more" in pages["en"].content.decode()
    assert "已有 30 天" in pages["zh-hans"].content.decode()


# --- operators in the search box --------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("type:project", ["jam"]),
        ("kumquat type:project", ["jam"]),
        ("类型：项目 kumquat", ["jam"]),
        ("type:user type:project", ["tea", "jam"]),
        ("tag:drink", ["tea"]),
        ("標籤:drink", ["tea"]),
        ("tag:drink type:project", []),
        ("after:2026-11-20 before:2026-11-21", ["jam"]),
        ("after:2026-11-20", ["tea", "jam"]),
        ("before:11月20日", ["pie"]),
        ("kumquat before:2026-11-11", ["pie"]),
        ("type:project zebra", []),
        ("name:pie", ["pie"]),
        ('"kumquat pie"', ["pie"]),
        ('kumquat "jam"', ["jam"]),
        ('say "pie', ["pie"]),
    ],
)
def test_operators_typed_into_the_search_narrow_it(web, pantry, typed, found):
    with time_machine.travel(NOW, tick=False):
        answer = web.get("/memories/", {"q": typed})

    assert answer.status_code == 200
    assert names(answer) == found
    assert answer.context["refusals"] == []


def test_operators_go_with_the_filters_beside_them(web, pantry):
    assert names(web.get("/memories/", {"q": "tag:drink", "type": "user"})) == ["tea"]
    assert names(web.get("/memories/", {"q": "after:2026-11-25", "before": "2026-11-24"})) == []
    assert names(web.get("/memories/", {"q": "type:project", "type": "user"})) == ["jam"]


@pytest.mark.parametrize(
    ("language", "typed", "said"),
    [
        ("en", "type:bug", "“bug” is no type; there are: User, Project, Feedback, Reference."),
        ("en", "after:never kumquat", "“never” is no time;"),
        ("en", "before:<b>", "“&lt;b&gt;” is no time;"),
    ],
)
def test_an_operator_that_says_nothing_is_told_and_lets_nothing_through(
    web, pantry, language, typed, said
):
    answer = web.get("/memories/", {"q": typed}, headers={"accept-language": language})

    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert names(answer) == []


def test_all_that_an_operator_matches_are_changed_and_no_others(web, pantry, agent):
    for typed, changed in (("type:bug", set()), ("tag:drink", {"tea"})):
        web.post(f"/memories/bulk/?{urlencode({'q': typed})}", {"action": "pin", "everything": "1"})
        pinned = Memory.objects.for_agent(agent).filter(pinned=True)
        assert set(pinned.values_list("name", flat=True)) == changed


def test_no_hits_names_the_operators_and_leads_to_the_words_alone(web, pantry):
    answer = web.get("/memories/", {"q": "pie type:project"}, headers={"accept-language": "en"})

    page = answer.content.decode()
    assert "Type = Project" in page
    assert "Without them there is 1." in page
    assert 'href="/memories/?q=pie"' in page


def test_the_palette_understands_operators(web, pantry):
    answer = web.get("/search/", {"q": "kumquat type:project"})

    assert [entry.memory.name for entry in answer.context["entries"]] == ["jam"]
