"""The operators' API: agents and their keys."""

import pytest
from django.test import Client

from agents.auth import find_key
from agents.models import Agent, ApiKey
from tests.conftest import NOW
from tests.memory.api.client import Api, error_of, fields_of
from tests.memory.threads import at_once

AGENT_FIELDS = {"name", "display_name", "system_prompt", "language", "is_active", "created_at"}
KEY_FIELDS = {
    "id", "name", "prefix", "user_id", "created_at", "last_used_at", "expires_at", "revoked_at",
    "replaced_by",
}  # fmt: skip


class Operator:
    """An operator's client."""

    def __init__(self, account):
        self.client = Client()
        self.client.force_login(account)

    def send(self, method, path="", body=None, **query):
        options = {} if body is None else {"data": body, "content_type": "application/json"}
        send = getattr(self.client, method)
        return send(f"/api/v1/agents/{path}", query_params=query, **options)


@pytest.fixture
def operator(db, django_user_model):
    return Operator(django_user_model.objects.create_user("opal", is_staff=True))


@pytest.fixture
def ada(operator):
    return operator.send("post", body={"name": "ada"}).json()


# --- agents ----------------------------------------------------------------------------


@pytest.mark.django_db(databases="__all__")
def test_an_agent_is_created_read_changed_and_deleted(operator):
    body = {"name": "助手.1-a_b", "display_name": "Ada", "system_prompt": " You are Ada. ",
            "language": "en", "is_active": True}  # fmt: skip

    created = operator.send("post", body=body)

    assert created.status_code == 201
    assert set(created.json()) == AGENT_FIELDS
    assert {name: created.json()[name] for name in body} == body
    path = "助手.1-a_b/"
    assert operator.send("get", path).json() == created.json()
    changed = operator.send("patch", path, {"name": "ada", "system_prompt": ""})
    assert changed.status_code == 200
    assert changed.json() == {**created.json(), "name": "ada", "system_prompt": ""}
    error_of(operator.send("get", path), 404, "not_found")
    deleted = operator.send("delete", "ada/")
    assert (deleted.status_code, deleted.content) == (204, b"")
    error_of(operator.send("delete", "ada/"), 404, "not_found")


def test_an_agent_needs_only_a_name_and_remembers_in_sqlite(operator, ada):
    assert (ada["display_name"], ada["system_prompt"], ada["is_active"]) == ("", "", True)
    assert ada["language"] == "zh-hans"
    config = Agent.objects.named("ada").memory_config
    assert (config.enabled, config.backend, config.sqlite_path) == (True, "sqlite", "memory.db")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"name"}),
        ({"name": ""}, {"name"}),
        ({"name": None}, {"name"}),
        ({"name": 42}, {"name"}),
        ({"name": "a b"}, {"name"}),
        ({"name": "a/b"}, {"name"}),
        ({"name": ".."}, {"name"}),
        ({"name": "."}, {"name"}),
        ({"name": "ada\n"}, {"name"}),
        ({"name": "ada\x00"}, {"name"}),
        ({"name": "\ud83d"}, {"name"}),
        ({"name": "x" * 101}, {"name"}),
        ({"name": "bo", "language": "fr"}, {"language"}),
        ({"name": "bo", "is_active": "perhaps"}, {"is_active"}),
        ({"name": "bo", "is_active": None}, {"is_active"}),
        ({"name": "bo", "system_prompt": None}, {"system_prompt"}),
        ({"name": "bo", "system_prompt": "a\x00"}, {"system_prompt"}),
        ({"name": "bo", "display_name": "x" * 201}, {"display_name"}),
        (
            {"name": "bo", "created_at": "2020-01-01T00:00:00Z", "colour": "red"},
            {"colour", "created_at"},
        ),
        ({"name": "ada"}, {"name"}),
    ],
)
def test_an_agent_that_is_not_valid_is_refused(operator, ada, body, fields):
    assert fields_of(operator.send("post", body=body)) == fields
    assert Agent.objects.count() == 1


def test_a_name_that_is_taken_is_refused_in_a_rename_too(operator, ada):
    operator.send("post", body={"name": "bo"})

    assert fields_of(operator.send("patch", "bo/", {"name": "ada"})) == {"name"}
    assert operator.send("post", body={"name": "ADA"}).status_code == 201


def test_a_rename_leaves_the_keys_working(operator, ada):
    key = operator.send("post", "ada/keys/", {}).json()["key"]
    operator.send("patch", "ada/", {"name": "ada2"})

    assert find_key(key, now=NOW).agent.name == "ada2"


def test_what_is_read_only_is_refused(operator, ada):
    changed = operator.send("patch", "ada/", {"created_at": "2020-01-01T00:00:00Z"})

    assert fields_of(changed) == {"created_at"}
    assert operator.send("patch", "ada/", {}).json() == ada


def test_agents_are_listed_by_name_page_by_page(operator):
    for number in range(7):
        operator.send("post", body={"name": f"agent-{number}"})

    names, cursor = [], ""
    while cursor is not None:
        page = operator.send("get", limit=3, cursor=cursor).json()
        assert set(page) == {"results", "next"}
        names.append([each["name"] for each in page["results"]])
        cursor = page["next"]

    assert names == [[f"agent-{n}" for n in part] for part in ((0, 1, 2), (3, 4, 5), (6,))]
    for bad in ("x", "é", "gICA", "\x00"):
        assert fields_of(operator.send("get", cursor=bad)) == {"cursor"}
    for bad in (0, 201, "x", ""):
        assert fields_of(operator.send("get", limit=bad)) == {"limit"}
    assert fields_of(operator.send("get", user_id="ming")) == {"user_id"}


def test_unknown_agents_are_a_404_everywhere(operator):
    for method, path in (("get", "ada/"), ("patch", "ada/"), ("delete", "ada/"),
                         ("get", "ada/keys/"), ("post", "ada/keys/"), ("delete", "ada/keys/1/"),
                         ("get", "ADA/"), ("get", "%00/"), ("get", "ada%20/")):  # fmt: skip
        body = {} if method in {"patch", "post"} else None
        error_of(operator.send(method, path, body), 404, "not_found")


@pytest.mark.django_db(transaction=True)
def test_of_two_who_take_a_name_at_once_one_is_refused(django_user_model):
    account = django_user_model.objects.create_user("opal", is_staff=True)
    operators = [Operator(account) for _ in range(6)]

    responses = at_once(
        [lambda each=each: each.send("post", body={"name": "ada"}) for each in operators]
    )

    statuses = [response.status_code for response in responses]
    assert sorted(statuses) == [201] + [400] * 5
    assert {name for r in responses if r.status_code == 400 for name in fields_of(r)} == {"name"}
    assert Agent.objects.count() == 1


# --- keys ------------------------------------------------------------------------------


def test_a_key_is_shown_once(operator, ada):
    created = operator.send("post", "ada/keys/", {"name": "laptop", "user_id": " Ming "})

    assert created.status_code == 201
    issued = created.json()
    assert set(issued) == KEY_FIELDS | {"key"}
    assert (issued["name"], issued["user_id"]) == ("laptop", " Ming ")
    assert issued["key"].startswith(issued["prefix"])
    assert find_key(issued["key"], now=NOW).user_id == " Ming "
    listed = operator.send("get", "ada/keys/")
    assert set(listed.json()["results"][0]) == KEY_FIELDS
    for response in (listed, operator.send("get", "ada/"), operator.send("get")):
        assert issued["key"] not in response.content.decode()
        assert "hashed" not in response.content.decode()
    assert issued["key"] not in repr(list(ApiKey.objects.values()))


def test_a_revoked_key_opens_nothing_and_stays_listed(operator, ada):
    issued = operator.send("post", "ada/keys/", {}).json()
    other = operator.send("post", "ada/keys/", {}).json()
    path = f"ada/keys/{issued['id']}/"

    assert [operator.send("delete", path).status_code for _ in range(2)] == [204, 204]

    assert find_key(issued["key"], now=NOW) is None
    assert find_key(other["key"], now=NOW)
    revoked = {each["id"]: each["revoked_at"] for each in
               operator.send("get", "ada/keys/").json()["results"]}  # fmt: skip
    assert revoked[issued["id"]].endswith("Z")
    assert revoked[other["id"]] is None
    first = ApiKey.objects.get(pk=issued["id"]).revoked_at
    operator.send("delete", path)
    assert ApiKey.objects.get(pk=issued["id"]).revoked_at == first


def test_a_key_of_another_agent_is_unknown(operator, ada):
    issued = operator.send("post", "ada/keys/", {}).json()
    operator.send("post", body={"name": "bo"})

    for path in (f"bo/keys/{issued['id']}/", "ada/keys/99/", f"ada/keys/{10**30}/"):
        error_of(operator.send("delete", path), 404, "not_found")
    assert find_key(issued["key"], now=NOW)
    assert operator.send("get", "bo/keys/").json()["results"] == []


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"user_id": "x" * 256}, {"user_id"}),
        ({"user_id": 42}, {"user_id"}),
        ({"user_id": None}, {"user_id"}),
        ({"user_id": "a\x00"}, {"user_id"}),
        ({"name": "x" * 101}, {"name"}),
        ({"colour": "red"}, {"colour"}),
    ],
)
def test_a_key_that_is_not_valid_is_refused(operator, ada, body, fields):
    assert fields_of(operator.send("post", "ada/keys/", body)) == fields
    assert not ApiKey.objects.exists()


def test_keys_are_listed_newest_first_page_by_page(operator, ada):
    ids = [operator.send("post", "ada/keys/", {}).json()["id"] for _ in range(5)]

    first = operator.send("get", "ada/keys/", limit=3).json()
    second = operator.send("get", "ada/keys/", limit=3, cursor=first["next"]).json()

    assert [each["id"] for each in first["results"] + second["results"]] == ids[::-1]
    assert second["next"] is None
    for bad in ("x", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OQ", "LTE", "OTkuNQ", "OTk5" * 2000):
        assert fields_of(operator.send("get", "ada/keys/", cursor=bad)) == {"cursor"}


def test_an_agent_that_is_switched_off_refuses_its_keys(operator, ada):
    api = Api(Agent.objects.named("ada"))
    operator.send("patch", "ada/", {"is_active": False})

    error_of(api.get("tools/"), 401, "invalid_key")
    operator.send("patch", "ada/", {"is_active": True})
    assert api.get("tools/").status_code == 200
