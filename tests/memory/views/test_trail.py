"""The audit on its page: filters, pages and exports, for operators only."""

import csv
import io
import json
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents import audit
from agents.models import Agent, AuditAction, AuditEntry, Identity
from agents.trail import Wanted
from memory.templatetags.trail_tags import detail_words
from memory.views import trail
from tests.conftest import NOW


@pytest.fixture(autouse=True)
def _settings(settings):
    settings.ALLOWED_HOSTS = ["testserver"]


@pytest.fixture
def opal(db):
    return get_user_model().objects.create_user("opal", is_staff=True)


@pytest.fixture
def web(client, opal):
    client.force_login(opal)
    return client


def note(actor, action=AuditAction.SETTING_CHANGED, minutes=0, **fields):
    return audit.note(actor, action, now=NOW + timedelta(minutes=minutes), **fields)


@pytest.fixture
def entries(opal):
    """Five entries, oldest first, of several kinds."""
    ming = get_user_model().objects.create_user("ming")
    Identity.objects.create(account=ming, user_id="u1")
    ada = Agent.objects.create_agent("ada", backend="sqlite", display_name="Ada")
    grace = Agent.objects.create_agent("grace", backend="sqlite")
    made = [
        note(opal, agent=ada, detail="enabled: True → False"),
        note(None, AuditAction.AGENT_CREATED, 1, agent=grace),
        note(opal, AuditAction.IDENTITY_LINKED, 2, subject=ming, user_id="u1"),
        note(opal, AuditAction.EXPORTED, 3, agent=ada, user_id="u1", count=7),
        note(ming, AuditAction.ACCOUNT_CHANGED, 60 * 24, subject=ming, detail="password: changed"),
    ]
    return [entry.pk for entry in made]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [4, 3, 2, 1, 0]),
        ({"action": "exported"}, [3]),
        ({"actor": "opal"}, [3, 2, 0]),
        ({"actor": "-"}, [1]),
        ({"about": "ming"}, [4, 2]),
        ({"about": "u1"}, [3, 2]),
        ({"about": "U1"}, []),
        ({"agent": "Ada"}, [3, 0]),
        ({"agent": "ada"}, [3, 0]),
        ({"since": "2026-12-01"}, [4]),
        ({"until": "2026-11-30"}, [3, 2, 1, 0]),
        ({"actor": "opal", "agent": "ada", "action": "exported"}, [3]),
    ],
)
def test_filters_combine_on_the_page_and_in_the_exports(web, entries, query, expected):
    shown = web.get("/audit/", query)
    exported = web.get("/audit/export.jsonl", query).getvalue().decode().splitlines()

    found = [entries.index(entry.pk) for entry in shown.context["entries"]]
    assert found == expected
    assert len(exported) == len(expected)


def test_an_entry_stays_found_when_account_and_agent_are_gone(web, opal, ada):
    ming = get_user_model().objects.create_user("ming")
    note(ming, AuditAction.ACCOUNT_CHANGED, subject=ming)
    note(opal, agent=ada)
    ming.delete()
    ada.delete()

    for query in ({"about": "ming"}, {"actor": "ming"}, {"agent": "ada"}):
        assert web.get("/audit/", query).context["entries"], query


def test_bad_filters_are_told_and_made_up_cursors_are_nowhere(web, entries):
    assert web.get("/audit/", {"since": "yesterday"}).status_code == 422
    assert web.get("/audit/", {"action": "nothing"}).status_code == 422
    assert web.get("/audit/", {"cursor": "made-up"}).status_code == 404
    assert web.get("/audit/export.csv", {"since": "yesterday"}).status_code == 404
    assert web.get("/audit/export.xls").status_code == 404


def test_pages_go_on_where_the_last_one_ended_though_entries_are_added(web, opal, monkeypatch):
    monkeypatch.setattr(trail, "ENTRIES", 2)
    made = [note(opal, minutes=number // 2).pk for number in range(5)]

    shown, following = [], ""
    while True:
        answer = web.get(f"/audit/{following}", headers={"HX-Request": "true"})
        shown += [entry.pk for entry in answer.context["entries"]]
        note(opal, minutes=99)
        if not (following := answer.context["next"]):
            break

    assert shown == made[::-1]
    assert "<html" not in answer.content.decode()


def test_a_page_costs_the_same_for_many(web, opal):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            web.get("/audit/")
        return len(captured)

    note(opal)
    few = queries()
    for minutes in range(40):
        note(opal, minutes=minutes)

    assert queries() == few


def test_the_csv_is_whole_and_no_formula(web, opal, monkeypatch):
    monkeypatch.setattr("agents.trail._CHUNK", 3)
    detail = '=HYPERLINK("http://x")'
    for minutes in range(10):
        note(opal, minutes=minutes // 4, detail=detail, user_id="@u, 甲")

    answer = web.get("/audit/export.csv")

    text = answer.getvalue().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 10
    assert {(row["detail"], row["user_id"]) for row in rows} == {(f"'{detail}", "'@u, 甲")}
    assert 'filename="hippo-audit-' in answer.headers["Content-Disposition"]
    lines = web.get("/audit/export.jsonl").getvalue().decode().splitlines()
    assert [json.loads(line)["detail"] for line in lines] == [detail] * 10


@pytest.mark.parametrize(
    ("wanted", "index"),
    [(Wanted(), "audit_by_time"), (Wanted(action="exported"), "audit_by_action")],
)
def test_an_index_finds_them(db, wanted, index):
    assert index in wanted.entries()[:50].explain()


def test_nobody_changes_anything_there(web, entries):
    for method in ("post", "put", "patch", "delete"):
        assert getattr(web, method)("/audit/").status_code == 405
    assert AuditEntry.objects.count() == len(entries)


def test_details_are_told_in_the_readers_language():
    from django.utils.translation import override

    with override("en"):
        assert detail_words("enabled: True → False") == "memory on: yes → no"
        assert detail_words("role: user → operator; account: deleted") == (
            "role: user → operator; account: deleted"
        )
        assert detail_words("Some <b>other</b> words") == "Some <b>other</b> words"


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_ends_of_the_calendar_are_no_fault(web, name, day):
    paths = ("/audit/", "/audit/export.csv", "/audit/export.jsonl")
    assert [web.get(path, {name: day}).status_code for path in paths] == [422, 404, 404]
