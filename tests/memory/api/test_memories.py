"""One memory over HTTP: saved, read, changed, deleted, restored, erased."""

import json

import pytest

from memory.services import memories
from tests.memory.api.client import error_of, fields_of
from tests.memory.rows import assert_consistent, row_counts, rows_of

FIELDS = {
    "id", "user_id", "type", "kind", "tier", "name", "content", "description", "detail",
    "metadata", "tags", "source", "importance", "confidence", "pinned", "core", "visibility",
    "status", "due_at", "expires_at", "created_at", "updated_at", "last_accessed_at",
    "access_count", "version",
}  # fmt: skip
WHOLE = {
    "type": "project",
    "kind": "fact",
    "tier": "short_term",
    "name": "支付上线",
    "content": "支付模块周五上线",
    "description": "Asked about a release",
    "detail": {"subject": "支付", "predicate": "上线", "object": "周五"},
    "metadata": {"ticket": 42},
    "tags": ["支付", "release"],
    "source": "chat",
    "importance": 0.75,
    "confidence": 0.5,
    "pinned": True,
    "core": True,
    "visibility": "private",
    "status": "active",
    "due_at": "2026-12-03T09:00:00Z",
    "expires_at": "2027-01-01T00:00:00Z",
}
FIRST = {"user_id": "ming", "type": "user", "content": "Ming deploys on Fridays"}


# --- save and read ---------------------------------------------------------------------


def test_a_saved_memory_is_answered_whole_and_read_again_the_same(api):
    response = api.post("memories/", {"user_id": "ming", **WHOLE})

    assert response.status_code == 201
    saved = response.json()
    assert set(saved) == FIELDS
    assert {name: saved[name] for name in WHOLE} == WHOLE
    assert (saved["user_id"], saved["version"], saved["access_count"]) == ("ming", 1, 0)
    assert saved["created_at"] == saved["updated_at"]
    assert saved["created_at"].endswith("Z")
    assert saved["last_accessed_at"] is None
    read = api.get(f"memories/{saved['id']}/", user_id="ming")
    assert read.status_code == 200
    assert read.json() == saved
    assert read.headers["ETag"] == response.headers["ETag"] == f'"{saved["id"]}-1"'


def test_a_memory_needs_only_a_type_and_content(api):
    saved = api.save("ming", "The office is in Riga\nfloor 3")

    assert saved["name"] == "The office is in Riga"
    assert (saved["kind"], saved["tier"], saved["status"]) == ("observation", "long_term", "active")
    assert (saved["importance"], saved["confidence"]) == (0.5, 1.0)


def test_a_saved_memory_is_found_at_once(api):
    api.save("ming", "Ming deploys on Fridays", name="deploys")

    assert api.found("ming", "When does he deploy?") == ["deploys"]


def test_the_user_may_be_named_in_the_query_or_in_the_body(api):
    body = {"type": "user", "content": "Ming deploys on Fridays"}

    in_query = api.post("memories/", body, user_id="ming")
    in_both = api.post("memories/", {**body, "user_id": "ming"}, user_id="ming")
    saved = in_query.json()["id"]
    changed = api.patch(f"memories/{saved}/", {"user_id": "ming", "pinned": True})

    assert (in_query.status_code, in_both.status_code, changed.status_code) == (201, 201, 200)
    assert changed.json()["pinned"] is True
    assert len(api.listed("ming")) == 2


def test_two_different_users_in_one_request_are_refused(api):
    response = api.post("memories/", FIRST, user_id="bob")
    twice = api.get("memories/?user_id=ming&user_id=bob")

    assert fields_of(response) == {"user_id"}
    assert fields_of(twice) == {"user_id"}
    assert api.listed("ming") == api.listed("bob") == []


@pytest.mark.parametrize("user_id", [42, None, True, [], ["ming"], {"$ne": ""}, "", "x" * 256,
                                     "ming\x00", "\ud800"])  # fmt: skip
def test_what_cannot_name_a_user_is_refused_everywhere(local, user_id):
    saved = local.save("ming")
    calls = {
        "memories/": {"type": "user", "content": "x"},
        "memories/batch/": {"memories": [{"type": "user", "content": "x"}]},
        "search/": {"query": "x"},
        "prefetch/": {"message": "x"},
        "tools/memory_save/": {"arguments": {"content": "x"}},
        f"memories/{saved['id']}/touch/": {},
        f"memories/{saved['id']}/reinforce/": {"delta": 0.1},
        f"memories/{saved['id']}/restore/": {},
    }

    for path, body in calls.items():
        assert fields_of(local.post(path, {"user_id": user_id, **body})) == {"user_id"}, path
        assert fields_of(local.post(path, body)) == {"user_id"}, path
    assert row_counts(local.agent)["Memory"] == 1
    assert row_counts(local.agent)["Scope"] == 1


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"type", "content"}),
        ({"type": "nonsense", "content": "x"}, {"type"}),
        ({"type": "user", "content": 42}, {"content"}),
        ({"type": "user", "content": "x", "colour": "red"}, {"colour"}),
        ({"type": "user", "content": "x", "id": 7}, {"id"}),
        ({"type": "user", "content": "x", "version": 7}, {"version"}),
        ({"type": "user", "content": "x", "scope_id": 1}, {"scope_id"}),
        ({"type": "user", "content": "x", "tags": "tea"}, {"tags"}),
        ({"type": "user", "content": "x", "tags": [1]}, {"tags"}),
        ({"type": "user", "content": "x", "importance": "0.5"}, {"importance"}),
        ({"type": "user", "content": "x", "importance": 1.5}, {"importance"}),
        ({"type": "user", "content": "x", "pinned": "yes"}, {"pinned"}),
        ({"type": "user", "content": "x", "due_at": "tomorrow"}, {"due_at"}),
        ({"type": "user", "content": "x", "due_at": 0}, {"due_at"}),
        ({"type": ["user"], "content": "x"}, {"type"}),
        ({"type": "user", "content": "x", "kind": "fact"}, {
            "detail.subject", "detail.predicate", "detail.object"}),
        ({"type": "user", "content": "x", "name": "y" * 256}, {"name"}),
        ({"type": "user", "content": "x", "metadata": []}, {"metadata"}),
    ],
)  # fmt: skip
def test_a_memory_that_is_not_valid_is_refused_with_every_field_at_fault(local, body, fields):
    assert fields_of(local.post("memories/", {"user_id": "ming", **body})) == fields
    assert row_counts(local.agent) == dict.fromkeys(row_counts(local.agent), 0)


# field case C027
@pytest.mark.parametrize(
    "body",
    [
        {"name": "a", "content": ""},
        {"name": "b", "content": "  \n\t "},
        {"name": "c"},
        {"name": "d", "content": None},
        {"name": "e", "content": "\u200b"},
        {},
    ],
)
def test_blank_content_is_refused_at_every_door_and_stores_nothing(agent, api, body):
    typed = {"type": "user", **body}

    assert "content" in fields_of(api.post("memories/", {"user_id": "ming", **typed}))
    batch = api.post("memories/batch/", {"user_id": "ming", "memories": [typed]}).json()
    assert batch["saved"] == 0
    assert "content" in batch["results"][0]["error"]["fields"]
    answer = api.tool("memory_save", "ming", body)
    assert answer["ok"] is False
    assert "content" in answer["result"]["fields"]
    assert "content" in answer["text"]
    assert row_counts(agent)["Memory"] == 0


# field case C037: there is no quota; a memory has a largest size
def test_content_has_a_largest_size_in_bytes_and_replacing_it_does_not_count_twice(agent, api):
    largest = "支" * 21_845 + "x"
    assert len(largest.encode()) == 64 * 1024
    saved = api.save("ming", largest)

    changed = api.patch(f"memories/{saved['id']}/", {"content": "付" + largest[1:]}, user_id="ming")
    too_large = api.post("memories/", {**FIRST, "content": largest + "x"})
    grown = api.patch(f"memories/{saved['id']}/", {"content": largest + "x"}, user_id="ming")

    assert changed.status_code == 200
    assert "65536" in error_of(too_large, 400)["fields"]["content"]
    assert fields_of(grown) == {"content"}
    assert api.get(f"memories/{saved['id']}/", user_id="ming").json() == changed.json()
    assert len(api.listed("ming")) == 1


# field case C024
def test_metadata_comes_back_equal_and_a_change_replaces_it_whole(agent, api):
    metadata = {
        "a": None,
        "list": [1, "x", None, []],
        "deep": {"k": {"k": [{}]}},
        "empty": {},
        "big": 9007199254740993,
        'key with "quote" and .dot': "v",
        "": "empty key",
        "юни": "код",
    }
    saved = api.save("ming", metadata=metadata)
    path = f"memories/{saved['id']}/"

    assert json.dumps(saved["metadata"]) == json.dumps(metadata)
    read = api.get(path, user_id="ming").json()
    assert json.dumps(read["metadata"]) == json.dumps(metadata)
    for value in ({"a": 1}, {"a": None}):
        assert api.patch(path, {"metadata": value}, user_id="ming").json()["metadata"] == value
    for value in ([], "text"):
        assert fields_of(api.patch(path, {"metadata": value}, user_id="ming")) == {"metadata"}
    assert api.get(path, user_id="ming").json()["metadata"] == {"a": None}
    assert fields_of(api.get("memories/", user_id="ming", **{"metadata.a": 1})) == {"metadata.a"}


def test_a_time_with_another_zone_is_answered_in_utc(api):
    saved = api.save("ming", due_at="2026-12-03T10:30:00+08:00", expires_at="2027-01-01")

    assert saved["due_at"] == "2026-12-03T02:30:00Z"
    assert saved["expires_at"] == "2027-01-01T00:00:00Z"


def test_texts_and_times_at_their_limits_are_kept(api):
    limits = {"name": "支" * 255, "description": "é" * 500, "source": "🙂" * 50,
              "tags": [f"{n:02}" + "🙂" * 62 for n in range(32)],
              "due_at": "0001-01-01T00:00:00Z", "expires_at": "9999-12-31T23:59:59.999999Z",
              "metadata": {"huge": 10**400, "tiny": 5e-324, "zero": -0.0}}  # fmt: skip

    saved = api.save("🙂" * 255, "\u2028 tea \r\n tea\t", **limits)

    read = api.get(f"memories/{saved['id']}/", user_id="🙂" * 255).json()
    assert read == saved
    assert {name: read[name] for name in limits} == limits
    assert read["content"] == "\u2028 tea \r\n tea\t"


def test_an_unknown_memory_is_a_404_that_names_the_next_step(api):
    api.save("ming")

    for memory_id in (0, 7, 2**53, 2**63, 2**64, 10**30):
        response = api.get(f"memories/{memory_id}/", user_id="ming")
        assert "list to find its id" in error_of(response, 404, "not_found")["message"]
    for memory_id in ("x", "-1", "1.5", "9" * 5000):
        error_of(api.get(f"memories/{memory_id}/", user_id="ming"), 404, "not_found")


# --- change ----------------------------------------------------------------------------


def test_a_change_leaves_other_fields_alone_and_raises_the_version(agent, api):
    saved = api.save("ming", **{k: v for k, v in WHOLE.items() if k not in {"content", "name"}})

    response = api.patch(
        f"memories/{saved['id']}/", {"content": "Ming deploys on Mondays"}, user_id="ming"
    )

    assert response.status_code == 200
    changed = response.json()
    assert {name for name in FIELDS if changed[name] != saved[name]} == {
        "content", "version", "updated_at"
    }  # fmt: skip
    assert changed["version"] == 2
    assert response.headers["ETag"] == f'"{saved["id"]}-2"'
    assert api.found("ming", "mondays") == [saved["name"]]
    assert_consistent(agent)


def test_the_same_change_again_makes_no_version(api):
    saved = api.save("ming")

    for _ in range(2):
        changed = api.patch(f"memories/{saved['id']}/", {"tags": ["tea"]}, user_id="ming")

    assert changed.json()["version"] == 2
    assert api.patch(f"memories/{saved['id']}/", {}, user_id="ming").json()["version"] == 2


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"content": ""}, {"content"}),
        ({"name": " "}, {"name"}),
        ({"name": None}, {"name"}),
        ({"status": "trashed"}, {"status"}),
        ({"created_at": "2020-01-01"}, {"created_at"}),
        ({"id": 1, "version": 9}, {"id", "version"}),
        ({"kind": "procedure"}, {"detail.when", "detail.steps"}),
        ({"detail": {"colour": "red"}}, {"detail.colour"}),
    ],
)
def test_a_change_that_is_not_valid_changes_nothing(local, changes, fields):
    saved = local.save("ming")

    assert fields_of(local.patch(f"memories/{saved['id']}/", changes, user_id="ming")) == fields
    assert local.get(f"memories/{saved['id']}/", user_id="ming").json() == saved


def test_a_change_of_another_version_is_refused(agent, api):
    saved = api.save("ming")
    path, tag = f"memories/{saved['id']}/", f'"{saved["id"]}-1"'
    first = api.patch(path, {"pinned": True}, user_id="ming", headers={"if-match": tag})
    before = rows_of(agent, memories.get(agent, "ming", saved["id"]))

    stale = [tag, f'"{saved["id"] + 1}-2"', f'W/"{saved["id"]}-1"', f'"{saved["id"]}-3"']
    answers = [api.patch(path, {"pinned": False}, user_id="ming", headers={"if-match": each})
               for each in stale]  # fmt: skip
    answers += [api.delete(path, user_id="ming", headers={"if-match": each}) for each in stale]
    answers.append(api.delete(path, user_id="ming", purge="true", headers={"if-match": tag}))

    assert first.status_code == 200
    for answer in answers:
        assert "Read it again" in error_of(answer, 412, "version_conflict")["message"]
    assert rows_of(agent, memories.get(agent, "ming", saved["id"])) == before
    any_version = api.patch(path, {"pinned": False}, user_id="ming", headers={"if-match": "*"})
    assert any_version.status_code == 200
    zipped = f"W/{any_version.headers['ETag']}"  # as a proxy hands it on
    assert api.delete(path, user_id="ming", headers={"if-match": zipped}).status_code == 204


@pytest.mark.parametrize("header", ["1", '"1"', "1-1", '"a-b"', '"1-1", "1-2"', "", '"1-1'])
def test_an_if_match_that_is_no_etag_is_refused(local, header):
    saved = local.save("ming")

    response = local.patch(
        f"memories/{saved['id']}/", {"pinned": True}, user_id="ming", headers={"if-match": header}
    )

    assert "If-Match" in error_of(response, 400)["message"]
    assert local.get(f"memories/{saved['id']}/", user_id="ming").json() == saved


def test_a_memory_that_has_not_changed_is_not_sent_again(api):
    saved = api.save("ming")
    path, tag = f"memories/{saved['id']}/", f'"{saved["id"]}-1"'

    for known in (tag, f"W/{tag}", f'"x", {tag}', f'"x",{tag}', "*"):
        response = api.get(path, user_id="ming", headers={"if-none-match": known})
        assert (response.status_code, response.content) == (304, b""), known
        assert response.headers["ETag"] == tag
    api.patch(path, {"pinned": True}, user_id="ming")
    assert api.get(path, user_id="ming", headers={"if-none-match": tag}).status_code == 200
    other = api.get(path, user_id="bob", headers={"if-none-match": "*"})
    error_of(other, 404)


def test_a_recall_changes_neither_version_nor_etag(api):
    saved = api.save("ming")
    path = f"memories/{saved['id']}/"

    touched = api.post(f"{path}touch/", {"user_id": "ming"})

    assert touched.status_code == 200
    assert touched.json()["access_count"] == 1
    assert touched.json()["last_accessed_at"] is not None
    assert touched.headers["ETag"] == f'"{saved["id"]}-1"'
    read = api.get(path, user_id="ming").json()
    assert {name for name in FIELDS if read[name] != saved[name]} == {
        "access_count", "last_accessed_at"
    }  # fmt: skip


def test_reinforcing_moves_the_importance_within_its_bounds(api):
    saved = api.save("ming")
    path = f"memories/{saved['id']}/reinforce/"

    moved = [api.post(path, {"user_id": "ming", "delta": delta}).json()["importance"]
             for delta in (0.2, 1, -0.3, -1, 0)]  # fmt: skip

    assert moved == [0.7, 1.0, 0.7, 0.0, 0.0]
    for delta in (2, -1.01, "nan", "much", None, 1e400):
        body = json.dumps({"user_id": "ming", "delta": delta})
        refused = api.post(path, None, raw=body.replace("Infinity", "1e400"))
        assert fields_of(refused) == {"delta"}, delta
    assert fields_of(api.post(path, {"user_id": "ming"})) == {"delta"}


def test_a_save_tells_what_is_there_already_and_saves_all_the_same(api):
    first = api.save("ming", content="Ming deploys the payment module on Fridays")
    again = api.save("ming", content="ming deploys the payment module on FRIDAYS.")
    other = api.save("ming", content="Ming deploys the payment module on Mondays")
    bobs = api.save("bob", content="Ming deploys the payment module on Fridays")

    assert "duplicates" not in first
    assert "duplicates" not in bobs
    [exact] = again["duplicates"]
    assert exact == {
        "id": first["id"], "name": first["name"], "likeness": 1.0, "is_exact": True,
        "is_same": True,
    }  # fmt: skip
    assert {each["id"] for each in other["duplicates"]} == {first["id"], again["id"]}
    assert not any(each["is_same"] for each in other["duplicates"])
    assert "duplicates" not in api.get(f"memories/{again['id']}/", user_id="ming").json()
