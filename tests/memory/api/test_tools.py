"""The tools over HTTP."""

import json

import pytest

from memory.services import memories
from tests.memory.api.client import error_of, fields_of
from tests.memory.rows import assert_consistent, row_counts
from tests.memory.threads import at_once


def test_the_definitions_come_in_the_form_that_is_asked_for(local):
    default = local.get("tools/")
    openai, anthropic = (local.get("tools/", format=form) for form in ("openai", "anthropic"))

    assert default.status_code == openai.status_code == anthropic.status_code == 200
    assert default.json() == openai.json()
    assert [each["function"]["name"] for each in openai.json()["tools"]] == [
        "memory_save", "memory_recall"
    ]  # fmt: skip
    assert [each["name"] for each in anthropic.json()["tools"]] == ["memory_save", "memory_recall"]
    assert fields_of(local.get("tools/", format="mcp")) == {"format"}
    assert fields_of(local.get("tools/", user_id="ming")) == {"user_id"}
    assert fields_of(local.get("tools/?format=openai&format=anthropic")) == {"format"}


def test_what_a_model_saves_it_recalls(api):
    saved = api.tool("memory_save", "ming", {"name": "office", "content": "The office is in Riga"})
    found = api.tool("memory_recall", "ming", json.dumps({"query": "Where is the office?"}))

    assert saved["ok"] is True
    assert set(saved["result"]) == {"action", "id", "name", "type", "version"}
    assert saved["result"]["action"] == "created"
    assert found["ok"] is True
    assert set(found["result"]) == {"mode", "degraded", "abstained", "memories"}
    [hit] = found["result"]["memories"]
    assert hit["memory"]["id"] == saved["result"]["id"]
    assert f"office (id {saved['result']['id']})" in found["text"]
    read = api.get(f"memories/{saved['result']['id']}/", user_id="ming").json()
    assert read["access_count"] == 1
    nothing = api.tool("memory_recall", "bob", {"query": "office"})
    assert (nothing["ok"], nothing["result"]["memories"]) == (True, [])


# field case C026
def test_a_correction_leaves_one_memory_that_every_door_shows(api):
    api.tool("memory_save", "ming", {"name": "office", "content": "The office is in Riga"})

    answer = api.tool(
        "memory_save", "ming", {"name": "office", "content": "The office is in Tartu"}
    )

    [memory] = api.listed("ming")
    assert (memory["name"], memory["content"]) == ("office", "The office is in Tartu")
    assert (answer["result"]["action"], answer["result"]["id"]) == ("updated", memory["id"])
    search = api.post("search/", {"user_id": "ming", "query": "office"})
    prefetch = api.post("prefetch/", {"user_id": "ming", "message": "Where is the office?"})
    for response in (search, prefetch):
        assert "Tartu" in response.content.decode()
        assert "Riga" not in response.content.decode()


@pytest.mark.parametrize(
    "arguments",
    [
        "{broken", [], 42, True, {"content": "x", "\ud83d": 1}, {"content": "\ud83d"},
        {"name": "\ud83d", "action": "delete"}, '{"name": "\\ud83d", "action": "delete"}',
        {"id": 10**400}, {"content": {"a": "\ud83d"}}, "\ud83d",
    ],
)  # fmt: skip
def test_what_a_model_does_wrong_is_no_error_of_the_programs(local, arguments):
    answer = local.tool("memory_save", "ming", arguments)

    assert answer["ok"] is False
    assert answer["result"]["code"] == "invalid"
    assert answer["text"]
    assert row_counts(local.agent)["Memory"] == 0


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"user_id": "ming"}, {"arguments"}),
        ({"user_id": "ming", "arguments": None}, {"arguments"}),
        ({"arguments": {}}, {"user_id"}),
        ({"user_id": "ming", "arguments": {}, "name": "x"}, {"name"}),
    ],
)
def test_a_call_that_is_none_is_refused(local, body, fields):
    assert fields_of(local.post("tools/memory_save/", body)) == fields


@pytest.mark.parametrize("name", ["memory_forget", "MEMORY_SAVE", "memory_save ", "x" * 300])
def test_a_tool_that_there_is_not_is_a_404_that_names_those_there_are(local, name):

    response = local.post(f"tools/{name}/", {"user_id": "ming", "arguments": {}})

    assert "memory_save and memory_recall" in error_of(response, 404, "not_found")["message"]


# field case C094
def test_parallel_calls_leave_what_some_order_of_them_would(agent, client_of):
    clients = [client_of(agent), client_of(agent)]
    seeded = clients[0].tool("memory_save", "ming", {"name": "b", "content": "kumquat b"})
    calls = [
        ("memory_save", {"name": "a", "content": "kumquat a"}),
        ("memory_save", {"name": "b", "content": "kumquat b again"}),
        ("memory_save", {"name": "a", "content": "kumquat a, updated"}),
        ("memory_save", {"action": "delete", "id": seeded["result"]["id"]}),
        ("memory_recall", {"query": "kumquat"}),
        ("memory_save", {"name": "c", "content": "kumquat c"}),
        ("memory_save", {"name": "a", "content": "kumquat a"}),
        ("memory_recall", {"query": "kumquat", "limit": 50}),
        ("memory_save", {"action": "delete", "id": 7}),
        ("memory_recall", {"query": "kumquat " * 20_000}),
    ]

    answers = at_once(
        [
            lambda n=n, name=name, arguments=arguments: clients[n % 2].tool(name, "ming", arguments)
            for n, (name, arguments) in enumerate(calls)
        ]
    )

    assert [answer["ok"] for answer in answers] == [True] * 8 + [False, True]
    assert answers[8]["result"] == {"code": "not_found"}
    ids = {
        "a": {answers[n]["result"]["id"] for n in (0, 2, 6)},
        "c": {answers[5]["result"]["id"]},
    }
    assert len(ids["a"]) == 1
    assert sorted(answers[n]["result"]["action"] for n in (0, 2, 6)).count("created") == 1
    alive = {memory.name: memory for memory in memories.list_page(agent, "ming").memories}
    # b was saved again before it was deleted, or after, and then as a new memory
    was_updated = answers[1]["result"]["action"] == "updated"
    assert set(alive) == ({"a", "c"} if was_updated else {"a", "b", "c"})
    assert alive["a"].content in {"kumquat a", "kumquat a, updated"}
    assert {alive["a"].pk} == ids["a"]
    assert {alive["c"].pk} == ids["c"]
    assert_consistent(agent)
    later = clients[1].tool("memory_save", "ming", {"name": "d", "content": "kumquat d"})
    assert later["result"]["action"] == "created"
