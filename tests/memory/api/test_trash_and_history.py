"""Deleted, restored, erased; earlier states; and what a memory that is off leaves to do."""

import pytest
import time_machine

from memory.models import Memory
from memory.services import memories
from tests.conftest import NOW
from tests.memory.api.client import error_of, fields_of
from tests.memory.rows import assert_consistent, row_counts, rows_of

NEW = {"type": "user", "content": "Ming deploys on Fridays"}
FIRST = {"user_id": "ming", **NEW}


# --- trash -----------------------------------------------------------------------------


def test_a_deleted_memory_is_in_the_trash_and_can_be_restored(agent, api):
    saved = api.save("ming", "Ming deploys on Fridays", status="paused")
    path = f"memories/{saved['id']}/"

    response = api.delete(path, user_id="ming")

    assert (response.status_code, response.content) == (204, b"")
    error_of(api.get(path, user_id="ming"), 404)
    error_of(api.patch(path, {"pinned": True}, user_id="ming"), 404)
    error_of(api.post(f"{path}reinforce/", {"user_id": "ming", "delta": 0.1}), 404)
    error_of(api.post(f"{path}touch/", {"user_id": "ming"}), 404)
    assert api.listed("ming") == api.found("ming", "Fridays") == []
    assert [each["status"] for each in api.listed("ming", status="trashed")] == ["trashed"]
    for _ in range(2):
        restored = api.post(f"{path}restore/", {"user_id": "ming"})
        assert restored.status_code == 200
        assert restored.json()["status"] == "paused"
        assert restored.json()["version"] == 3
    assert_consistent(agent)


# field case C041, its end
def test_deleting_twice_is_a_404_and_moves_no_date(agent, api):
    saved = api.save("ming")
    path = f"memories/{saved['id']}/"
    api.delete(path, user_id="ming")
    before = rows_of(agent, Memory.objects.in_scope(agent, "ming").get(pk=saved["id"]))

    error_of(api.delete(path, user_id="ming"), 404, "not_found")

    assert rows_of(agent, Memory.objects.in_scope(agent, "ming").get(pk=saved["id"])) == before


@pytest.mark.parametrize("is_trashed", [False, True])
def test_purging_leaves_no_row(agent, api, is_trashed):
    saved = api.save("ming", "the secret harbour")
    path = f"memories/{saved['id']}/"
    api.patch(path, {"pinned": True}, user_id="ming")
    if is_trashed:
        api.delete(path, user_id="ming")

    assert api.delete(path, user_id="ming", purge="true").status_code == 204

    for response in (api.get(path, user_id="ming"), api.get(f"{path}history/", user_id="ming"),
                     api.post(f"{path}restore/", {"user_id": "ming"}),
                     api.delete(path, user_id="ming", purge="true")):  # fmt: skip
        error_of(response, 404, "not_found")
    counts = row_counts(agent)
    assert (counts["Memory"], counts["MemoryTerms"], counts["MemoryRevision"]) == (0, 0, 0)
    assert_consistent(agent)


@pytest.mark.parametrize("purge", ["maybe", "", "2", "True True"])
def test_a_purge_that_is_neither_true_nor_false_deletes_nothing(local, purge):
    saved = local.save("ming")

    assert fields_of(local.delete(f"memories/{saved['id']}/", user_id="ming", purge=purge)) == {
        "purge"
    }
    assert local.listed("ming") == [saved]


# --- history ---------------------------------------------------------------------------


def test_the_history_says_who_changed_what_and_when(agent, api):
    with time_machine.travel(NOW, tick=False):
        saved = api.save("ming", "Ming deploys on Fridays", due_at="2026-12-03T09:00:00Z")
        path = f"memories/{saved['id']}/"
        api.patch(path, {"content": "Ming deploys on Mondays"}, user_id="ming")
        api.delete(path, user_id="ming")

    page = api.get(f"{path}history/", user_id="ming")

    assert page.status_code == 200
    assert page.json()["next"] is None
    second, first = page.json()["results"]
    assert set(first) == {"version", "state", "actor_kind", "actor", "reason", "created_at"}
    assert (first["version"], second["version"]) == (1, 2)
    assert first["state"]["content"] == "Ming deploys on Fridays"
    assert first["state"]["due_at"].startswith("2026-12-03T09:00:00")
    assert second["state"]["content"] == "Ming deploys on Mondays"
    assert (first["actor_kind"], first["actor"]) == ("agent", agent.name)
    assert first["created_at"] == "2026-11-30T09:00:00Z"


def test_the_history_is_walked_page_by_page(api):
    saved = api.save("ming")
    path = f"memories/{saved['id']}/"
    for number in range(7):
        api.patch(path, {"description": str(number)}, user_id="ming")

    versions, cursor = [], ""
    while cursor is not None:
        page = api.get(f"{path}history/", user_id="ming", limit=3, cursor=cursor).json()
        versions.append([each["version"] for each in page["results"]])
        cursor = page["next"]

    assert versions == [[7, 6, 5], [4, 3, 2], [1]]
    for bad in ("x", "-1", "9" * 30, "٣", "1.5"):
        assert fields_of(api.get(f"{path}history/", user_id="ming", cursor=bad)) == {"cursor"}
    for bad in (0, -1, 201, "x", "9" * 5000):
        assert fields_of(api.get(f"{path}history/", user_id="ming", limit=bad)) == {"limit"}


# --- switched off ----------------------------------------------------------------------


def test_with_memory_off_nothing_is_saved_and_what_there_is_can_be_managed(agent, api, switch):
    saved = api.save("ming", "Ming deploys on Fridays")
    switch(agent, enabled=False)
    path = f"memories/{saved['id']}/"
    before = rows_of(agent, memories.get(agent, "ming", saved["id"]))

    refused = [
        api.post("memories/", FIRST),
        api.post("memories/batch/", {"user_id": "ming", "memories": [NEW]}),
        api.post("search/", {"user_id": "ming", "query": "Fridays"}),
    ]
    for response in refused:
        error_of(response, 409, "memory_off")
    off = api.post("prefetch/", {"user_id": "ming", "message": "When does Ming deploy?"})
    assert (off.status_code, off.json()) == (200, {"enabled": False})
    assert api.get("tools/").json() == {"tools": []}
    for name, arguments in (("memory_save", {"content": "x"}), ("memory_recall", {"query": "x"})):
        answer = api.tool(name, "ming", arguments)
        assert (answer["ok"], answer["result"]["code"]) == (False, "memory_off")
    assert rows_of(agent, memories.get(agent, "ming", saved["id"])) == before
    assert api.listed("ming") == [saved]
    assert api.get(path, user_id="ming").json() == saved
    assert api.patch(path, {"pinned": True}, user_id="ming").status_code == 200
    assert api.delete("memories/", user_id="ming").json() == {"deleted": 1}
    assert api.delete(path, user_id="ming", purge="true").status_code == 204
