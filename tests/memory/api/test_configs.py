"""The memory configuration of an agent, which operators read and change."""

from pathlib import Path

import pytest
from django.test import Client

from agents.models import Agent, MemoryConfig
from tests.conftest import make_agent
from tests.memory.api.client import Api, error_of, fields_of

CONFIG = {
    "enabled": True, "backend": "sqlite", "sqlite_path": "memory.db", "prefetch_limit": 5,
    "budget_tokens": 1000, "min_score": None,
}  # fmt: skip


@pytest.fixture
def operator(django_user_model):
    client = Client()
    client.force_login(django_user_model.objects.create_user("opal", is_staff=True))
    return client


def configure(operator, body, name="ada"):
    address = f"/api/v1/agents/{name}/memory-config/"
    return operator.patch(address, body, content_type="application/json")


def test_a_configuration_is_read_and_changed(local, operator):
    read = operator.get("/api/v1/agents/ada/memory-config/")
    changed = configure(operator, {"prefetch_limit": 9, "enabled": False})

    assert (read.status_code, read.json()) == (200, CONFIG)
    assert (changed.status_code, changed.json()) == (
        200, {**CONFIG, "prefetch_limit": 9, "enabled": False}
    )  # fmt: skip
    config = MemoryConfig.objects.get(agent=local.agent)
    assert (config.prefetch_limit, config.enabled, config.budget_tokens) == (9, False, 1000)
    assert configure(operator, {}).json() == changed.json()


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"prefetch_limit": 0}, {"prefetch_limit"}),
        ({"prefetch_limit": 51}, {"prefetch_limit"}),
        ({"prefetch_limit": None}, {"prefetch_limit"}),
        ({"budget_tokens": 49}, {"budget_tokens"}),
        ({"budget_tokens": 100_001}, {"budget_tokens"}),
        ({"enabled": "maybe"}, {"enabled"}),
        ({"enabled": None}, {"enabled"}),
        ({"backend": "postgres"}, {"backend"}),
        ({"sqlite_path": "../hippo.sqlite3"}, {"sqlite_path"}),
        ({"sqlite_path": "/etc/passwd.db"}, {"sqlite_path"}),
        ({"sqlite_path": ""}, {"sqlite_path"}),
        ({"sqlite_path": "a\x00.db"}, {"sqlite_path"}),
        ({"agent": "grace"}, {"agent"}),
        ({"prefetch_limit": 3, "budget_tokens": 1}, {"budget_tokens"}),
    ],
)
def test_a_change_that_is_not_valid_changes_nothing(local, operator, body, fields):
    assert fields_of(configure(operator, body)) == fields
    assert operator.get("/api/v1/agents/ada/memory-config/").json() == CONFIG


def test_an_unknown_agent_has_no_configuration(local, operator):
    error_of(operator.get("/api/v1/agents/grace/memory-config/"), 404, "not_found")
    error_of(configure(operator, {"enabled": False}, "grace"), 404, "not_found")


def test_an_agent_without_memories_may_change_its_store(ada, operator):
    changed = configure(operator, {"backend": "mysql", "prefetch_limit": 7})

    assert changed.status_code == 200
    assert (changed.json()["backend"], changed.json()["prefetch_limit"]) == ("mysql", 7)
    api = Api(Agent.objects.named("ada"))
    api.save("ming", "Ming deploys on Fridays")
    assert api.found("ming", "Fridays") == ["Ming deploys on Fridays"]


def test_a_change_that_would_strand_memories_is_refused_with_the_choices(ada, operator):
    api = Api(ada)
    saved = api.save("ming", "Ming deploys on Fridays")

    refused = configure(operator, {"backend": "mysql", "prefetch_limit": 7})
    message = error_of(refused, 409, "would_strand_memories")["message"]

    assert "leave_memories" in message or "move" in message
    assert "Fridays" not in message
    assert operator.get("/api/v1/agents/ada/memory-config/").json() == CONFIG
    assert api.listed("ming") == [saved]
    left = configure(operator, {"backend": "mysql", "leave_memories": True})
    assert left.status_code == 200
    assert "leave_memories" not in left.json()
    assert api.listed("ming") == []
    api.save("ming", "The office is in Riga")
    back = configure(operator, {"backend": "sqlite", "leave_memories": True})
    assert back.status_code == 200
    assert api.listed("ming") == [saved]


def test_mysql_that_is_not_configured_is_told(local, operator, monkeypatch):
    monkeypatch.setattr("memory.api.configs.mysql_obstacle", lambda: "MySQL is not configured.")

    error = error_of(configure(operator, {"backend": "mysql"}), 400, "invalid")

    assert error["fields"] == {"backend": "MySQL is not configured."}


def test_no_memory_content_is_behind_an_operators_addresses(local, operator):
    local.save("ming", "the secret harbour")

    for path in ("", "ada/", "ada/keys/", "ada/memory-config/"):
        response = operator.get(f"/api/v1/agents/{path}")
        assert response.status_code == 200
        assert "harbour" not in response.content.decode()


def test_deleting_an_agent_erases_what_it_remembers_and_nothing_else(agent, operator):
    barbara = make_agent("barbara", agent.memory_config.backend)
    mine, others = Api(agent), Api(barbara)
    mine.save("ming", "Ming deploys on Fridays")
    kept = others.save("ming", "the office is in Riga")

    response = operator.delete(f"/api/v1/agents/{agent.name}/")

    assert (response.status_code, response.content) == (204, b"")
    error_of(mine.get("memories/", user_id="ming"), 401, "invalid_key")
    error_of(operator.get(f"/api/v1/agents/{agent.name}/"), 404)
    assert others.listed("ming") == [kept]
    made_anew = Api(make_agent(agent.name, agent.memory_config.backend))
    assert made_anew.listed("ming") == []


def test_a_refused_change_leaves_no_file_behind(ada, operator, remember, settings):
    remember(ada, "ming", "Ming deploys on Fridays")

    refused = configure(operator, {"sqlite_path": "never.db"})

    assert refused.status_code == 409
    assert not list(Path(settings.MEMORY_DIR).glob("never.db*"))
