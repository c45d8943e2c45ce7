"""Lists over HTTP: pages, filters, times, deletion by filter, whole batches."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from memory.drafts import parse_draft
from memory.models import Memory
from memory.services import memories
from tests.conftest import NOW
from tests.memory.api.client import error_of, fields_of
from tests.memory.rows import assert_consistent, row_counts

ODD_USERS = [
    "team/anna", "../anna", "anna@example.org", "agent:main:42", "anna b", "a+b", "ж-用户-🙂",
    "%2F", "a?b#c", "0", "null", "550e8400-e29b-41d4-a716-446655440000",
]  # fmt: skip


def save_many(agent, user_id, count, *, now=NOW, prefix="tea"):
    drafts = [
        parse_draft({"type": "user", "content": f"{prefix} {number}"}) for number in range(count)
    ]
    return [memory.pk for memory in memories.save_batch(agent, user_id, drafts, now=now)]


# --- pages -----------------------------------------------------------------------------


# field case C018
def test_a_walk_meets_every_memory_once_while_others_are_saved(agent, api):
    mings = set()
    for number in range(5):
        mings |= set(save_many(agent, "ming", 100, now=NOW + timedelta(seconds=number // 2)))
    mings |= set(save_many(agent, "ming", 23, now=NOW - timedelta(days=1)))
    save_many(agent, "bob", 40)
    assert len(mings) == 523

    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        query = {"cursor": cursor} if cursor else {}
        response = api.get("memories/", user_id="ming", limit=50, **query)
        assert response.status_code == 200
        page = response.json()
        assert set(page) == {"results", "next"}
        seen += [memory["id"] for memory in page["results"]]
        cursor, pages = page["next"], pages + 1
        assert len(page["results"]) == (50 if cursor else 23)
        if pages == 5:
            with time_machine.travel(NOW + timedelta(minutes=1)):
                api.save("ming", "a late one")

    assert pages == 11
    assert len(seen) == len(set(seen)) == 523
    assert set(seen) == mings


def test_a_walk_with_a_filter_keeps_its_filter(agent, api):
    for number in range(6):
        api.save("ming", f"tea {number}", tags=["tea"] if number % 2 else [])

    first = api.get("memories/", user_id="ming", tag="tea", limit=2).json()
    rest = api.get("memories/", user_id="ming", tag="tea", limit=2, cursor=first["next"]).json()

    assert [each["name"] for each in first["results"]] == ["tea 5", "tea 3"]
    assert [each["name"] for each in rest["results"]] == ["tea 1"]
    assert rest["next"] is None


def test_a_page_has_fifty_memories_and_at_most_two_hundred(agent, api):
    save_many(agent, "ming", 201)

    assert len(api.get("memories/", user_id="ming").json()["results"]) == 50
    largest = api.get("memories/", user_id="ming", limit=200).json()
    assert len(largest["results"]) == 200
    assert largest["next"]


@pytest.mark.parametrize("limit", ["0", "-1", "201", "1.5", "x", "9" * 2000, "", "true", "٣٣٣٣"])
def test_a_limit_that_is_none_is_refused(local, limit):
    assert fields_of(local.get("memories/", user_id="ming", limit=limit)) == {"limit"}


@pytest.mark.parametrize(
    "cursor", ["x", "eA", "MjAyNi0xMS0zMA", "é", "\x00", "A" * 10_000, "%00", "-_-_", "fHw"]
)
def test_a_cursor_that_is_none_is_refused(local, cursor):
    client = local

    assert fields_of(client.get("memories/", user_id="ming", cursor=cursor)) == {"cursor"}


# --- filters ---------------------------------------------------------------------------


def test_filters_narrow_the_list_and_are_combined(api):
    api.save("ming", "Ming deploys on Fridays", name="a", tags=["work", "ops"], importance=0.9)
    api.save("ming", "支付模块周五上线", name="b", type="project", tags=["work"], source="chat")
    api.save("ming", "Use short answers", name="c", type="feedback", tier="short_term",
             status="archived")  # fmt: skip
    api.save("ming", "Tea is a drink", name="d", kind="fact", importance=0.1,
             detail={"subject": "tea", "predicate": "is", "object": "a drink"})  # fmt: skip
    api.delete(f"memories/{api.save('ming', 'gone', name='e')['id']}/", user_id="ming")

    def names(**query):
        return "".join(sorted(api.names("ming", **query)))

    assert names() == "abcd"
    assert names(type="user") == "ad"
    assert names(type=["user", "project"]) == "abd"
    assert names(kind="fact") == "d"
    assert names(kind=["fact", "observation"]) == "abcd"
    assert names(tag="work") == "ab"
    assert names(tag=["work", "ops"]) == "a"
    assert names(tag="wor") == names(tag="w%") == names(tag="WORK") == ""
    assert names(tier="short_term") == "c"
    assert names(source="chat") == "b"
    assert names(status="archived") == "c"
    assert names(status=["archived", "trashed"]) == "ce"
    assert names(q="fridays") == names(q="FRI") == names(q="deploys ming") == "a"
    assert names(q="周五") == "b"
    assert names(q="100%") == ""
    assert names(min_importance="0.5") == "abc"
    assert names(min_importance="0") == "abcd"
    assert names(type="user", min_importance="0.5", tag="ops", q="ming") == "a"
    assert names(type="user", tier="short_term") == ""


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({"colour": "red"}, {"colour"}),
        ({"offset": 10}, {"offset"}),
        ({"types": "user"}, {"types"}),
        ({"type": "nonsense"}, {"type.0"}),
        ({"kind": "Fact"}, {"kind.0"}),
        ({"tier": "long"}, {"tier"}),
        ({"status": "dead"}, {"status.0"}),
        ({"tier": ["long_term", "short_term"]}, {"tier"}),
        ({"q": ["tea", "milk"]}, {"q"}),
        ({"limit": [5, 6]}, {"limit"}),
        ({"min_importance": "2"}, {"min_importance"}),
        ({"min_importance": "high"}, {"min_importance"}),
        ({"created_after": "soon"}, {"created_after"}),
        ({"q": "x" * 10_001}, {"q"}),
        ({"q": "a\x00"}, {"q"}),
        ({"q": "tea", "status": "trashed"}, {"q"}),
    ],
)
def test_a_parameter_that_is_not_valid_is_refused(local, query, fields):
    local.save("ming")

    assert fields_of(local.get("memories/", user_id="ming", **query)) == fields
    assert len(local.listed("ming")) == 1


# a filter that narrows nothing would delete everything
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"q": ""}, "q"),
        ({"q": " "}, "q"),
        ({"q": "\u200b"}, "q"),
        ({"created_before": ""}, "created_before"),
        ({"created_after": ""}, "created_after"),
        ({"tier": ""}, "tier"),
        ({"source": ""}, "source"),
        ({"type": ""}, "type.0"),
        ({"tag": ""}, "tag.0"),
        ({"status": ""}, "status.0"),
        ({"min_importance": ""}, "min_importance"),
        ({"min_importance": "nan"}, "min_importance"),
        ({"min_importance": "-inf"}, "min_importance"),
    ],
)
def test_a_filter_that_says_nothing_is_refused_and_deletes_nothing(local, query, field):
    local.save("ming")

    assert fields_of(local.delete("memories/", user_id="ming", **query)) == {field}
    assert fields_of(local.get("memories/", user_id="ming", **query)) == {field}
    assert len(local.listed("ming")) == 1


# field case C035
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("created_after=2026-03-01T10:00:00+02:00", ["late"]),
        ("created_after=2026-03-01T10:00:00%2B02:00", ["late"]),
        ("created_after=2026-03-01T08:00:00Z", ["late"]),
        ("created_after=2026-03-01T08:00:00", ["late"]),
        ("created_after=2026-03-01", ["late", "early"]),
        ("created_after=2025-10-26T02:30:00", ["late", "early"]),
        ("created_after=yesterday", None),
        ("created_after=0000-00-00", None),
        ("created_before=2026-03-01T10:00:00+02:00", ["early"]),
        ("created_before=2026-03-01T00:00:00-08:00", ["early"]),
        ("created_after=2026-03-01T07:59:00Z&created_before=2026-03-01T08:01:00Z", []),
        ("created_after=0001-01-01T00:00:00%2B14:00", None),
        ("created_after=9999-12-31T23:59:59-14:00", None),
        ("created_after=0001-01-01", ["late", "early"]),
        ("created_before=9999-12-31T23:59:59.999999", ["late", "early"]),
    ],
)
def test_times_in_a_query_have_a_zone_or_are_utc(agent, api, query, found):
    save_many(agent, "ming", 1, now=datetime(2026, 3, 1, 7, 59, tzinfo=UTC), prefix="early")
    save_many(agent, "ming", 1, now=datetime(2026, 3, 1, 8, 1, tzinfo=UTC), prefix="late")

    response = api.get(f"memories/?user_id=ming&{query}")

    if found is None:
        fields = error_of(response, 400, "invalid")["fields"]
        assert "2026-12-03T09:00:00Z" in fields["created_after"] or "range" in str(fields)
    else:
        assert [each["name"] for each in response.json()["results"]] == [f"{n} 0" for n in found]


# field case C019
def test_odd_user_ids_work_at_every_address_and_touch_that_user_only(agent, api):
    saved = {
        user: api.save(user, f"kumquat tea of {user!r}", name=repr(user)) for user in ODD_USERS
    }

    for user, memory in saved.items():
        path = f"memories/{memory['id']}/"
        assert api.get(path, user_id=user).json() == memory
        assert api.names(user) == api.found(user, "kumquat") == [repr(user)]
        assert repr(user) in json.dumps(
            api.post("prefetch/", {"user_id": user, "message": "kumquat tea?"}).json(),
            ensure_ascii=False,
        )
        assert api.patch(path, {"pinned": True}, user_id=user).json()["pinned"] is True
        assert len(api.get(f"{path}history/", user_id=user).json()["results"]) == 1
    for number, user in enumerate(ODD_USERS, 1):
        assert api.delete("memories/", user_id=user).json() == {"deleted": 1}
        assert api.names(user) == []
        alive = Memory.objects.for_agent(agent).kept().count()
        assert alive == len(ODD_USERS) - number


# --- delete by filter ------------------------------------------------------------------


def test_a_deletion_by_filter_moves_what_meets_it_to_the_trash(agent, api):
    for name, fields in {"a": {"tags": ["tea"]}, "b": {"type": "project", "tags": ["tea"]},
                         "c": {}}.items():  # fmt: skip
        api.save("ming", f"kumquat {name}", name=name, **fields)
    api.save("bob", "kumquat", name="bobs", tags=["tea"])

    answer = api.delete("memories/", user_id="ming", tag="tea", type="user")

    assert (answer.status_code, answer.json()) == (200, {"deleted": 1})
    assert sorted(api.names("ming")) == sorted(api.found("ming", "kumquat")) == ["b", "c"]
    assert api.names("ming", status="trashed") == ["a"]
    assert api.delete("memories/", user_id="ming", q="KUMQ c").json() == {"deleted": 1}
    assert api.delete("memories/", user_id="ming", status="trashed").json() == {"deleted": 0}
    assert api.delete("memories/", user_id="ming").json() == {"deleted": 1}
    assert api.delete("memories/", user_id="ming").json() == {"deleted": 0}
    assert api.delete("memories/", user_id="nobody").json() == {"deleted": 0}
    assert api.names("bob") == ["bobs"]
    assert_consistent(agent)


def test_a_deletion_by_filter_with_purge_erases_every_trace(agent, api):
    for name in ("one", "two", "three"):
        api.save("ming", name=name, content=f"kumquat {name}")
    api.save("bob", name="bobs", content="kumquat")
    api.delete("memories/", user_id="ming", q="kumquat one")

    one = api.delete("memories/", user_id="ming", q="kumquat two", purge="true")
    from_trash = api.delete("memories/", user_id="ming", status="trashed", purge="true")
    rest = api.delete("memories/", user_id="ming", purge="true")

    assert [each.json() for each in (one, from_trash, rest)] == [{"deleted": 1}] * 3
    assert api.names("ming") == api.names("ming", status="trashed") == []
    assert api.names("bob") == ["bobs"]
    assert row_counts(agent)["Memory"] == 1
    assert row_counts(agent)["MemoryRevision"] == 0
    assert_consistent(agent)


@pytest.mark.parametrize("query", [{}, {"limit": 1}, {"cursor": "x"}])
def test_a_deletion_by_filter_needs_a_user_and_takes_only_filters(local, query):
    local.save("ming")
    user = {"user_id": "ming"} if query else {}

    assert fields_of(local.delete("memories/", **user, **query)) == (set(query) or {"user_id"})
    assert len(local.listed("ming")) == 1


# --- batches ---------------------------------------------------------------------------


# field case C032
def test_a_batch_saves_what_is_valid_and_says_of_the_rest_why_not(agent, api):
    batch = [
        {"name": "a", "content": "1"},
        {"name": "b", "content": "2", "type": "nonsense"},
        {"name": "c", "content": None},
        {"name": "d", "content": "4"},
        {"name": "a", "content": "same name again"},
    ]
    batch = [{"type": "user", **each} for each in batch]

    response = api.post("memories/batch/", {"user_id": "ming", "memories": batch})

    assert response.status_code == 200
    answer = response.json()
    assert answer["saved"] == 3
    assert [each["index"] for each in answer["results"]] == [0, 1, 2, 3, 4]
    saved = [each["memory"] for each in answer["results"] if "memory" in each]
    assert [(each["name"], each["content"]) for each in saved] == [
        ("a", "1"), ("d", "4"), ("a", "same name again")
    ]  # fmt: skip
    for index, field in ((1, "type"), (2, "content")):
        error = answer["results"][index]["error"]
        assert error["code"] == "invalid"
        assert set(error["fields"]) == {field}
        assert field in error["message"]
        assert "memory" not in answer["results"][index]
    assert row_counts(agent)["Memory"] == 3
    assert api.listed("ming") == saved[::-1]
    assert api.save("ming", "a later one")["name"] == "a later one"
    assert_consistent(agent)


def test_a_batch_of_which_nothing_is_valid_stores_nothing(agent, api):
    bad = [{"content": "x"}, {"type": "user"}, {"type": "user", "content": "x", "user_id": "bob"}]

    answer = api.post("memories/batch/", {"user_id": "ming", "memories": bad}).json()

    assert answer["saved"] == 0
    assert [set(each["error"]["fields"]) for each in answer["results"]] == [
        {"type"}, {"content"}, {"user_id"}
    ]  # fmt: skip
    assert row_counts(agent) == dict.fromkeys(row_counts(agent), 0)


def test_a_batch_takes_two_hundred_memories_of_some_length(agent, api):
    content = "支付" * 2_300
    batch = [{"type": "user", "name": str(n), "content": f"{content}{n}"} for n in range(200)]

    raw = json.dumps({"user_id": "ming", "memories": batch}, ensure_ascii=False)
    answer = api.post("memories/batch/", None, raw=raw)

    assert len(raw.encode()) > 2_700_000
    assert answer.status_code == 200
    assert answer.json()["saved"] == len(api.listed("ming")) == 200


@pytest.mark.parametrize(
    ("memories_", "fields"),
    [
        ([], {"memories"}),
        (None, {"memories"}),
        ("text", {"memories"}),
        ({"0": {"type": "user", "content": "x"}}, {"memories"}),
        ([{"type": "user", "content": "x"}] * 201, {"memories"}),
    ],
)
def test_what_is_no_list_of_memories_is_refused(local, memories_, fields):
    assert fields_of(local.post("memories/batch/", {"user_id": "ming", "memories": memories_})) == (
        fields
    )
    assert row_counts(local.agent)["Memory"] == 0


def test_an_item_that_is_no_memory_stops_no_other(local):
    items = ["text", {"type": "user", "content": "kumquat"}, None, [], 5]

    answer = local.post("memories/batch/", {"user_id": "ming", "memories": items}).json()

    assert answer["saved"] == 1
    assert [result["index"] for result in answer["results"] if "error" in result] == [0, 2, 3, 4]
    assert answer["results"][0]["error"]["fields"] == {"memory": "This must be an object."}
    assert row_counts(local.agent)["Memory"] == 1
