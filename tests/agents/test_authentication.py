"""Who may call what: keys, sessions, and how often."""

import os
import secrets

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client
from django.urls import get_resolver

from agents.auth import issue_key
from agents.models import Agent, ApiKey
from tests.conftest import NOW, make_agent
from tests.memory.api.client import Api, error_of

pytestmark = pytest.mark.django_db(databases="__all__")

MEMORIES = "/api/v1/agents/ada/memories/?user_id=ming"
OPERATORS = {
    "agents": "/api/v1/agents/",
    "agent": "/api/v1/agents/ada/",
    "agent-keys": "/api/v1/agents/ada/keys/",
    "agent-key": "/api/v1/agents/ada/keys/1/",
    "agent-key-rotate": "/api/v1/agents/ada/keys/1/rotate/",
    "memory-config": "/api/v1/agents/ada/memory-config/",
}
METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE")


def memory_addresses():
    """Return an address of every pattern that agents reach by their key."""
    for pattern in get_resolver("memory.urls").url_patterns:
        if pattern.name != "memory-config":
            path = str(pattern.pattern).replace("<int:memory_id>", "1")
            yield f"/api/v1/agents/ada/{path.replace('<str:tool>', 'memory_save')}?user_id=ming"


@pytest.fixture
def local(db):
    """ada; a test of keys does not depend on the engine, and is rolled back."""
    return make_agent("ada", "sqlite")


@pytest.fixture
def staff(django_user_model):
    return django_user_model.objects.create_user("opal", is_staff=True, is_superuser=True)


@pytest.fixture
def reader(django_user_model):
    return django_user_model.objects.create_user("ming")


# --- keys ------------------------------------------------------------------------------


def refusals(client):
    for address in memory_addresses():
        for method in METHODS:
            yield client.generic(method, address, "{}", "application/json")


@pytest.mark.parametrize(
    "header",
    [
        None, "", "hippo_x", "Bearer", "Bearer ", "Bearer hippo_", "Bearer hippo_unknown",
        "Bearer x", "Basic b3BhbDpvcGFs", "Token hippo_x", "Bearer\thippo_x", "é", "Bearer hippo_é",
        "Bearer hippo_" + "x" * 10_000, "Bearer hippo_x, Bearer hippo_y",
    ],
)  # fmt: skip
def test_without_a_live_key_every_memory_address_is_a_401(local, header):
    client = Client(headers={} if header is None else {"authorization": header})

    for response in refusals(client):
        code = "invalid_key" if header else "not_authenticated"
        error = error_of(response, 401, code)
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert "fields" not in error


def test_a_key_that_is_revoked_or_altered_or_of_an_inactive_agent_is_a_401(local):
    api = Api(local)
    assert api.client.get(MEMORIES).status_code == 200

    for altered in (api.key[:-1], api.key + "x", api.key.upper(), f" {api.key}", f"{api.key} "):
        client = Client(headers={"authorization": f"Bearer {altered}"})
        error_of(client.get(MEMORIES), 401, "invalid_key")
    Agent.objects.update(is_active=False)
    error_of(api.client.get(MEMORIES), 401, "invalid_key")
    Agent.objects.update(is_active=True)
    assert api.client.get(MEMORIES).status_code == 200
    ApiKey.objects.update(revoked_at=NOW)
    error_of(api.client.get(MEMORIES), 401, "invalid_key")


def test_the_scheme_may_be_in_any_case(local):
    _, key = issue_key(local)

    for scheme in ("bearer", "BEARER", "Bearer"):
        assert Client(headers={"authorization": f"{scheme} {key}"}).get(MEMORIES).status_code == 200


def test_a_key_is_no_operator(local, staff):
    api = Api(local)

    for address in OPERATORS.values():
        for method in METHODS:
            response = api.client.generic(method, address, "{}", "application/json")
            error_of(response, 403, "forbidden")
    assert Agent.objects.filter(name="ada", is_active=True).exists()
    assert ApiKey.objects.filter(revoked_at=None).count() == 1


def test_every_operators_address_is_looked_at():
    names = {pattern.name for pattern in get_resolver("agents.urls").url_patterns}

    assert names | {"memory-config"} == set(OPERATORS)


# --- sessions --------------------------------------------------------------------------


def test_a_session_reaches_no_memory(local, staff, reader):
    Api(local).save("ming", "the secret harbour")
    for account in (staff, reader):
        client = Client()
        client.force_login(account)
        for response in refusals(client):
            error_of(response, 401, "not_authenticated")
            assert "harbour" not in response.content.decode()


def test_a_session_with_a_key_is_the_keys(local, staff):
    api = Api(local)
    api.client.force_login(staff)

    assert api.client.get(MEMORIES).status_code == 200
    assert api.client.get("/api/v1/agents/").status_code == 200  # by the session


def test_who_is_no_operator_reaches_no_operators_address(local, reader, staff):
    staff.is_active = False
    staff.save()
    for account in (None, reader, staff):
        client = Client()
        if account:
            client.force_login(account)
        for address in OPERATORS.values():
            for method in METHODS:
                response = client.generic(method, address, "{}", "application/json")
                assert "staff account" in error_of(response, 403, "forbidden")["message"]
    assert [agent.name for agent in Agent.objects.all()] == ["ada"]


def test_a_session_writes_with_a_csrf_token_only(staff):
    client = Client(enforce_csrf_checks=True)
    client.force_login(staff)
    body = {"name": "ada"}

    without = client.post("/api/v1/agents/", body, content_type="application/json")
    wrong = client.post("/api/v1/agents/", body, content_type="application/json",
                        headers={"x-csrftoken": "x" * 32})  # fmt: skip
    for response in (without, wrong):
        assert "CSRF" in error_of(response, 403, "forbidden")["message"]
    assert not Agent.objects.exists()
    assert client.get("/api/v1/agents/").status_code == 200
    token = secrets.token_hex(16)
    client.cookies["csrftoken"] = token
    right = client.post("/api/v1/agents/", body, content_type="application/json",
                        headers={"x-csrftoken": token})  # fmt: skip
    assert right.status_code == 201


def test_a_key_needs_no_csrf_token(local):
    api = Api(local, enforce_csrf_checks=True)

    assert api.save("ming")["user_id"] == "ming"


# --- throttle --------------------------------------------------------------------------


@pytest.fixture(params=["files", "redis"])
def shared_cache(request, settings, tmp_path):
    backend = {
        "files": {
            "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
            "LOCATION": str(tmp_path),
        },
        "redis": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": os.environ["TEST_REDIS_URL"],
            "KEY_PREFIX": secrets.token_hex(4),
        },
    }
    settings.CACHES = {"default": backend[request.param]}
    return cache


def test_a_key_has_so_many_requests_a_minute(local, settings, shared_cache):
    settings.API_RATE_PER_MINUTE = 3
    one, two = Api(local), Api(local)

    with time_machine.travel(NOW.replace(second=18), tick=False):
        answers = [one.client.get(MEMORIES) for _ in range(3)]
        # what is wrong counts, too
        limited = [one.client.get(MEMORIES), one.client.get("/api/v1/agents/grace/tools/"),
                   one.client.post(MEMORIES)]  # fmt: skip
        other = two.client.get(MEMORIES)
    with time_machine.travel(NOW.replace(minute=1), tick=False):
        later = one.client.get(MEMORIES)

    assert [each.status_code for each in answers] == [200] * 3
    for response in limited:
        assert "42" in error_of(response, 429, "throttled")["message"]
        assert 42 <= int(response.headers["Retry-After"]) <= 43
    assert other.status_code == later.status_code == 200


def test_without_a_limit_nothing_is_counted(local, settings, shared_cache):
    settings.API_RATE_PER_MINUTE = 0
    api = Api(local)

    assert {api.client.get(MEMORIES).status_code for _ in range(20)} == {200}


def test_a_cache_that_does_not_answer_lets_requests_through(local, settings, caplog):
    settings.API_RATE_PER_MINUTE = 1
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://user:hunter2@127.0.0.1:1/0",
        }
    }
    api = Api(local)

    assert [api.client.get(MEMORIES).status_code for _ in range(3)] == [200] * 3
    assert "rate" in caplog.text
    assert "hunter2" not in caplog.text
