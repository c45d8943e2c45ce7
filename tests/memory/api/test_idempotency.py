"""A POST under an Idempotency-Key happens once, however often it is sent."""

import json
from datetime import timedelta

import pytest
import time_machine

from memory.databases import store_alias
from memory.models import IdempotencyRecord
from tests.conftest import NOW
from tests.memory.api.client import error_of, fields_of
from tests.memory.rows import assert_consistent, row_counts
from tests.memory.threads import at_once

NEW = {"user_id": "ming", "type": "user", "content": "Ming deploys on Fridays"}
KEY = {"idempotency-key": "8e03978e-40d5-43e8-bc93-6894a57f9324"}
BATCH = {
    "user_id": "ming",
    "memories": [
        {"type": "user", "content": "tea"},
        {"type": "nonsense", "content": "milk"},
        {"type": "user", "content": "jam"},
    ],
}


def records(agent):
    return list(IdempotencyRecord.objects.using(store_alias(agent)).values())


def is_replay(response):
    return response.headers.get("Idempotency-Replayed") == "true"


def test_a_repeated_save_answers_the_same_memory_and_stores_nothing(agent, client_of):
    api = client_of(agent)
    first = api.post("memories/", NEW, headers=KEY)
    api.patch(f"memories/{first.json()['id']}/", {"pinned": True}, user_id="ming")

    again = [api.post("memories/", NEW, headers=KEY) for _ in range(2)]
    reordered = json.dumps(dict(reversed(NEW.items())), indent=2)
    again.append(api.post("memories/", None, raw=reordered, headers=KEY))
    again.append(client_of(agent).post("memories/", NEW, headers=KEY))

    assert first.status_code == 201
    assert not is_replay(first)
    for response in again:
        assert response.status_code == 201
        assert is_replay(response)
        assert response.json()["id"] == first.json()["id"]
        assert response.json()["pinned"] is True
        assert response.headers["ETag"] == f'"{first.json()["id"]}-2"'
    assert row_counts(agent)["Memory"] == 1
    assert len(records(agent)) == 1
    assert_consistent(agent)


def test_a_key_with_another_request_is_refused(agent, client_of):
    api = client_of(agent)
    saved = api.post("memories/", NEW, headers=KEY).json()

    others = [
        api.post("memories/", {**NEW, "content": "Ming deploys on Mondays"}, headers=KEY),
        api.post("memories/", {**NEW, "pinned": False}, headers=KEY),
        api.post("memories/batch/", BATCH, headers=KEY),
        api.post(f"memories/{saved['id']}/touch/", {"user_id": "ming"}, headers=KEY),
        api.post("tools/memory_save/", {"user_id": "ming", "arguments": {"content": "x"}},
                 headers=KEY),
    ]  # fmt: skip

    for response in others:
        error_of(response, 422, "idempotency_key_reused")
    assert api.listed("ming") == [saved]


def test_one_key_of_two_users_or_agents_is_two_keys(agent, client_of, neighbour):
    api = client_of(agent)

    ids = {
        api.post("memories/", NEW, headers=KEY).json()["id"],
        api.post("memories/", {**NEW, "user_id": "bob"}, headers=KEY).json()["id"],
        api.post("memories/", {**NEW, "user_id": "ming "}, headers=KEY).json()["id"],
        client_of(neighbour).post("memories/", NEW, headers=KEY).json()["id"],
    }
    other_key = api.post("memories/", NEW, headers={"idempotency-key": KEY["idempotency-key"][:-1]})
    upper = api.post("memories/", NEW, headers={"idempotency-key": KEY["idempotency-key"].upper()})

    ids |= {other_key.json()["id"], upper.json()["id"]}
    assert len(ids) == 6


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é", "支付", "a\tb", "\x7f"])
def test_a_malformed_key_is_refused_at_every_address(local, key):
    saved = local.save("ming")
    path, headers = f"memories/{saved['id']}/", {"idempotency-key": key}

    for where, body in (("memories/", NEW), ("memories/batch/", BATCH),
                        ("memories/batch/", {"user_id": "ming", "memories": [{}]}),
                        (f"{path}touch/", {"user_id": "ming"}),
                        (f"{path}restore/", {"user_id": "ming"}),
                        (f"{path}reinforce/", {"user_id": "ming", "delta": 0.1}),
                        ("tools/memory_save/", {"user_id": "ming", "arguments": {"content": "x"}}),
                        ):  # fmt: skip
        assert fields_of(local.post(where, body, headers=headers)) == {"Idempotency-Key"}, where
    assert local.listed("ming") == [saved]


def test_a_key_of_any_visible_ascii_is_taken(local):

    for key in ("!", "~" * 255, "a/b?c=%20&d", '"quoted"'):
        headers = {"idempotency-key": key}
        first, second = (local.post("memories/", NEW, headers=headers) for _ in range(2))
        assert first.json()["id"] == second.json()["id"]
        assert is_replay(second)


def test_a_request_that_failed_may_be_sent_again(agent, client_of, switch):
    api = client_of(agent)
    unknown = api.post("memories/7/touch/", {"user_id": "ming"}, headers=KEY)
    bad = api.post("memories/", {**NEW, "type": "nonsense"}, headers=KEY)
    tool = api.tool("memory_save", "ming", {"action": "delete", "name": "nothing"}, headers=KEY)
    foreign = api.post("memories/7/reinforce/", {"user_id": "ming", "delta": 2}, headers=KEY)
    switch(agent, enabled=False)
    off = api.post("memories/", NEW, headers=KEY)
    switch(agent, enabled=True)

    assert [each.status_code for each in (unknown, bad, foreign, off)] == [404, 400, 400, 409]
    assert tool["ok"] is False
    assert records(agent) == []
    good = api.post("memories/", NEW, headers=KEY)
    assert good.status_code == 201
    assert not is_replay(good)


def test_a_repeated_batch_gives_the_same_answer(agent, client_of):
    api = client_of(agent)

    first, second = (api.post("memories/batch/", BATCH, headers=KEY) for _ in range(2))

    assert (is_replay(first), is_replay(second)) == (False, True)
    assert first.json() == second.json()
    assert first.json()["saved"] == row_counts(agent)["Memory"] == 2


def test_repeated_touches_and_reinforcements_count_once(agent, client_of):
    api = client_of(agent)
    saved = api.save("ming", importance=0.25)
    path = f"memories/{saved['id']}/"

    touches = [api.post(f"{path}touch/", {"user_id": "ming"}, headers={"idempotency-key": "t"})
               for _ in range(3)]  # fmt: skip
    moves = [api.post(f"{path}reinforce/", {"user_id": "ming", "delta": 0.5},
                      headers={"idempotency-key": "r"}) for _ in range(3)]  # fmt: skip
    api.delete(path, user_id="ming")
    restores = [api.post(f"{path}restore/", {"user_id": "ming"}, headers={"idempotency-key": "s"})
                for _ in range(2)]  # fmt: skip

    for responses in (touches, moves, restores):
        assert [is_replay(each) for each in responses] == [False, *[True] * (len(responses) - 1)]
        assert {each.status_code for each in responses} == {200}
    read = api.get(path, user_id="ming").json()
    assert (read["access_count"], read["importance"], read["version"]) == (1, 0.75, 4)


def test_a_repeated_tool_call_does_nothing_and_says_the_same(agent, client_of):
    api = client_of(agent)

    def call(arguments, key):
        body = {"user_id": "ming", "arguments": arguments}
        first, second = (
            api.post("tools/memory_save/", body, headers={"idempotency-key": key}) for _ in range(2)
        )
        assert first.json()["ok"] is True
        assert (is_replay(first), is_replay(second)) == (False, True)
        assert first.json() == second.json()
        return first.json()["result"]

    office = {"name": "office", "content": "The office is in Riga"}
    created = call(office, "a")
    assert created["action"] == "created"
    moved = {**office, "content": "The office is in Tartu"}
    assert call(moved, "b")["action"] == "updated"
    assert call({"action": "delete", "id": created["id"]}, "c")["action"] == "deleted"
    reused = api.post("tools/memory_save/", {"user_id": "ming", "arguments": office},
                      headers={"idempotency-key": "b"})  # fmt: skip
    error_of(reused, 422, "idempotency_key_reused")
    assert row_counts(agent)["Memory"] == 1


def test_the_repetition_of_what_was_purged_is_a_404(agent, client_of):
    api = client_of(agent)
    saved = api.post("memories/", NEW, headers=KEY).json()
    batch = api.post("memories/batch/", BATCH, headers={"idempotency-key": "b"}).json()
    for memory_id in (saved["id"], batch["results"][0]["memory"]["id"]):
        api.delete(f"memories/{memory_id}/", user_id="ming", purge="true")

    error_of(api.post("memories/", NEW, headers=KEY), 404, "not_found")
    error_of(api.post("memories/batch/", BATCH, headers={"idempotency-key": "b"}), 404, "not_found")
    assert row_counts(agent)["Memory"] == 1


def test_the_record_holds_ids_and_no_text(agent, client_of):
    api = client_of(agent)
    secret = "the-harbour-of-kumquats"
    body = {**NEW, "content": secret, "name": secret, "metadata": {secret: secret}}
    api.post("memories/", body, headers=KEY)
    api.tool("memory_save", "ming", {"content": secret}, headers={"idempotency-key": "t"})

    kept = records(agent)

    assert len(kept) == 2
    assert secret not in repr(kept)
    for record in kept:
        assert set(record["outcome"]) == {"ids", "action"}
        assert len(record["fingerprint"]) == 64


def test_another_address_or_query_is_another_request(local):
    one, two = local.save("ming", "tea"), local.save("ming", "jam")
    local.post(f"memories/{one['id']}/touch/", {"user_id": "ming"}, headers=KEY)

    response = local.post(f"memories/{two['id']}/touch/", {"user_id": "ming"}, headers=KEY)

    error_of(response, 422, "idempotency_key_reused")
    assert local.get(f"memories/{two['id']}/", user_id="ming").json()["access_count"] == 0


def test_a_key_still_counts_after_most_of_a_day(agent, client_of):
    api = client_of(agent)
    with time_machine.travel(NOW, tick=False):
        first = api.post("memories/", NEW, headers=KEY)
    with time_machine.travel(NOW + timedelta(hours=23), tick=False):
        second = api.post("memories/", NEW, headers=KEY)

    assert second.json()["id"] == first.json()["id"]


@pytest.mark.parametrize(
    ("path", "body", "count"),
    [
        ("memories/", NEW, 1),
        ("memories/batch/", BATCH, 2),
        ("tools/memory_save/", {"user_id": "ming", "arguments": {"content": "tea"}}, 1),
    ],
)
def test_the_same_request_from_many_threads_is_carried_out_once(
    agent, client_of, path, body, count
):
    clients = [client_of(agent) for _ in range(6)]

    responses = at_once([lambda api=api: api.post(path, body, headers=KEY) for api in clients])

    assert {each.status_code for each in responses} <= {200, 201}
    assert len({each.content for each in responses}) == 1
    assert sum(not is_replay(each) for each in responses) == 1
    assert row_counts(agent)["Memory"] == count
    assert len(records(agent)) == 1
    assert_consistent(agent)
