"""No address reaches what is another's: another user's, another agent's, with any key."""

import json
from dataclasses import dataclass

import pytest
from django.urls import get_resolver

from memory.databases import store_alias
from memory.models import Memory
from tests.conftest import make_agent
from tests.memory.api.client import Api, error_of
from tests.memory.rows import rows_of

SECRET, NAME = "the kumquat harbour", "Kumquat"
OTHERS = ["u2", "u1 ", "U1", "u1%", "u10", "u1/../u2", "u1:a", "u1.a", "u1/a", "%", "ú1"]


@dataclass(frozen=True)
class Attempt:
    """A request for somebody else's memory; its answer must be `status`."""

    method: str
    path: str
    body: dict | None = None
    query: dict | None = None
    status: tuple = (404,)


ATTEMPTS = {
    "memories": [
        Attempt("GET", "memories/", status=(200,)),
        Attempt("GET", "memories/", query={"q": "kumquat"}, status=(200,)),
        Attempt("GET", "memories/", query={"status": "trashed"}, status=(200,)),
        Attempt("DELETE", "memories/", status=(200,)),
        Attempt("DELETE", "memories/", query={"q": "kumquat"}, status=(200,)),
        Attempt("POST", "memories/", {"type": "user", "content": "own tea"}, status=(201,)),
    ],
    "memories-batch": [
        Attempt("POST", "memories/batch/", {"memories": [
            {"type": "user", "content": "own tea"},
            {"type": "user", "content": "x", "user_id": "u1"},
        ]}, status=(200,)),
    ],
    "memory": [
        Attempt("GET", "memories/{id}/"),
        Attempt("PATCH", "memories/{id}/", {"content": "mine now"}),
        Attempt("DELETE", "memories/{id}/"),
        Attempt("DELETE", "memories/{id}/", query={"purge": "true"}),
    ],
    "memory-touch": [Attempt("POST", "memories/{id}/touch/", {})],
    "memory-reinforce": [Attempt("POST", "memories/{id}/reinforce/", {"delta": 0.5})],
    "memory-restore": [Attempt("POST", "memories/{id}/restore/", {})],
    "memory-history": [Attempt("GET", "memories/{id}/history/")],
    "search": [
        Attempt("POST", "search/", {"query": "the kumquat", "min_score": 0}, status=(200,)),
        Attempt("POST", "search/", {"query": "%", "min_score": 0}, status=(200,)),
    ],
    "prefetch": [Attempt("POST", "prefetch/", {"message": "the kumquat?"}, status=(200,))],
    "tools": [],  # says the same to everybody; see test_tools
    "tool": [
        Attempt("POST", "tools/memory_recall/", {"arguments": {
            "query": "the kumquat"}}, status=(200,)),
        Attempt("POST", "tools/memory_save/", {"arguments": {
            "action": "update", "id": "{id}", "content": "mine now"}}, status=(200,)),
        Attempt("POST", "tools/memory_save/", {"arguments": {
            "action": "update", "name": NAME, "content": "mine now"}}, status=(200,)),
        Attempt("POST", "tools/memory_save/", {"arguments": {
            "action": "delete", "id": "{id}"}}, status=(200,)),
        Attempt("POST", "tools/memory_save/", {"arguments": {
            "action": "delete", "name": NAME}}, status=(200,)),
        Attempt("POST", "tools/memory_save/", {"arguments": {
            "name": NAME, "content": "own tea"}}, status=(200,)),
    ],
    "memory-config": [Attempt("GET", "memory-config/", status=(400, 403)),
                      Attempt("PATCH", "memory-config/", {"enabled": False}, status=(403,))],
}  # fmt: skip


def filled(value, memory_id):
    """Put the id into an attempt's path or body."""
    return json.loads(json.dumps(value).replace("{id}", str(memory_id)))


def send(api, attempt, memory_id, user_id, agent=None):
    query = dict(attempt.query or {})
    body = filled(attempt.body, memory_id)
    if body is None:
        query["user_id"] = user_id
    else:
        body["user_id"] = user_id
    path = filled(attempt.path, memory_id)
    return api.send(attempt.method, path, body, agent=agent, **query)


def every_attempt():
    return [attempt for attempts in ATTEMPTS.values() for attempt in attempts]


def assert_says_nothing(response):
    body = response.content.decode()
    assert "harbour" not in body, body
    for of_u1 in ('"user_id":"u1"', "user u1 of"):
        assert of_u1 not in body, body


def test_every_address_of_an_agent_is_attempted():
    there_are = {
        (pattern.name, method.upper())
        for pattern in get_resolver("memory.urls").url_patterns
        for method in ("get", "post", "put", "patch", "delete")
        if hasattr(pattern.callback.view_class, method)
    }
    attempted = {(name, each.method) for name, attempts in ATTEMPTS.items() for each in attempts}

    assert there_are - attempted == {("tools", "GET")}
    assert attempted <= there_are


@pytest.fixture
def owned(agent):
    """u1's memory, with a history, and what its rows are."""
    api = Api(agent)
    saved = api.save("u1", SECRET, name=NAME, due_at="2026-01-01", tags=["harbour"])
    api.patch(f"memories/{saved['id']}/", {"description": "harbour"}, user_id="u1")
    api.delete(f"memories/{api.save('u1', f'{SECRET} of old')['id']}/", user_id="u1")
    return Memory.objects.in_scope(agent, "u1").get(pk=saved["id"])


def everything(agent):
    """Return the rows of all of u1's memories with this agent."""
    return [
        rows_of(agent, memory) for memory in Memory.objects.in_scope(agent, "u1").order_by("pk")
    ]


def test_other_users_of_the_agent_reach_nothing_of_u1(agent, owned):
    api = Api(agent)
    before = everything(agent)

    for user_id in OTHERS:
        for attempt in every_attempt():
            response = send(api, attempt, owned.pk, user_id)
            assert response.status_code in attempt.status, (user_id, attempt, response.content)
            assert_says_nothing(response)
            if response.status_code == 404:
                error_of(response, 404, "not_found")
    assert everything(agent) == before


def test_a_bound_key_reaches_its_user_and_no_other(agent, owned):
    own = Api(agent, "u1")
    before = everything(agent)

    attempts = [each for each in every_attempt() if each.path != "memory-config/"]
    calls = [(Api(agent, user_id), "u1") for user_id in OTHERS[:4]]
    calls += [(own, user_id) for user_id in OTHERS]
    for api, user_id in calls:
        for attempt in attempts:
            response = send(api, attempt, owned.pk, user_id)
            error_of(response, 404, "not_found")
            assert_says_nothing(response)
    assert everything(agent) == before
    assert own.get(f"memories/{owned.pk}/", user_id="u1").status_code == 200
    assert own.names("u1") == [NAME]
    in_both = own.patch(f"memories/{owned.pk}/", {"user_id": "u2"}, user_id="u1")
    assert in_both.status_code == 400
    twice = own.get("memories/?user_id=u1&user_id=u2")
    assert twice.status_code == 400
    assert everything(agent) == before


def test_other_agents_reach_nothing_wherever_they_keep_their_memories(agent, owned):
    other_engine = "mysql" if agent.memory_config.backend == "sqlite" else "sqlite"
    strangers = [
        make_agent("barbara", agent.memory_config.backend),
        make_agent("adele", other_engine),
        make_agent(f"{agent.name}2", agent.memory_config.backend),
    ]
    assert store_alias(strangers[0]) == store_alias(agent)
    before = everything(agent)

    for stranger in strangers:
        for api in (Api(stranger), Api(stranger, "u1")):
            for attempt in every_attempt():
                if attempt.path == "memory-config/":
                    continue
                at_own = send(api, attempt, owned.pk, "u1")
                assert at_own.status_code in attempt.status, (attempt, at_own.content)
                assert "harbour" not in at_own.content.decode()
                at_agent = send(api, attempt, owned.pk, "u1", agent=agent)
                error_of(at_agent, 404, "not_found")
                assert_says_nothing(at_agent)
            error_of(api.get("tools/", agent=agent), 404, "not_found")
    assert everything(agent) == before


def test_an_agent_that_there_is_not_reads_like_one_that_is_anothers(agent):
    api, barbara = Api(agent), make_agent("barbara", agent.memory_config.backend)
    agent.name, name = "nobody", agent.name
    unknown = api.get("memories/", user_id="u1")
    agent.name = name
    another = api.get("memories/", user_id="u1", agent=barbara)

    assert (
        error_of(unknown, 404)["message"].replace("nobody", "barbara")
        == (error_of(another, 404)["message"])
    )
    for variant in (name.upper(), f"{name} ", f" {name}", f"{name}\u200b", f"{name}."):
        agent.name = variant
        error_of(api.get("memories/", user_id="u1"), 404, "not_found")
    agent.name = name


# field case C041
def test_a_batch_of_own_and_foreign_ids_changes_only_ones_own(agent, owned):
    api = Api(agent)
    own = api.save("u2", "own tea")
    before = everything(agent)

    answers = [
        api.tool("memory_save", "u2", {"action": "delete", "id": memory_id})
        for memory_id in (own["id"], owned.pk)
    ]

    assert [answer["ok"] for answer in answers] == [True, False]
    assert answers[1]["result"]["code"] == "not_found"
    assert "harbour" not in json.dumps(answers)
    assert everything(agent) == before


# field case C040; there is no export over HTTP
@pytest.mark.parametrize("has_own", [True, False])
def test_users_and_agents_whose_names_begin_alike_share_nothing(agent, has_own):
    users = ["u10", "u1:a", "u1.a", "u1/a", *(["u1"] if has_own else [])]
    bot = Api(make_agent("bot", agent.memory_config.backend))
    bot2 = Api(make_agent("bot2", agent.memory_config.backend))
    for api in (bot2, bot):
        for user_id in users:
            api.save(user_id, f"kumquat of {user_id}", name=f"{api.agent.name} {user_id}")
            refused = api.post("memories/", {"user_id": user_id, "type": "x", "content": "x"})
            assert refused.status_code == 400
    own = ["bot u1"] if has_own else []

    # the same question of everybody: nobody's answer is kept for another
    for user_id in (*users, "u1"):
        mine = [f"bot {user_id}"] if user_id in users else []
        assert bot.found(user_id, "kumquat") == mine
        prefetched = bot.post("prefetch/", {"user_id": user_id, "message": "kumquat?"}).json()
        assert [hit["memory"]["name"] for hit in prefetched["memories"]] == mine
    assert bot.names("u1") == own
    assert bot.delete("memories/", user_id="u1").json() == {"deleted": len(own)}
    for api in (bot, bot2):
        for user_id in users:
            gone = api is bot and user_id == "u1"
            assert api.names(user_id) == ([] if gone else [f"{api.agent.name} {user_id}"])
