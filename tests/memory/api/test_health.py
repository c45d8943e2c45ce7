"""Whether Hippo works, for load balancers and for people."""

import json

import pytest
from django.db import DatabaseError

from memory.errors import BackendUnavailable
from memory.services.health import readiness

PARTS = {"default", "sqlite:memory.db", "mysql", "cache"}


def test_a_process_that_runs_says_so_and_asks_nothing(client):
    response = client.get("/healthz")  # no database is allowed here

    assert (response.status_code, response.json()) == (200, {"status": "ok", "parts": {}})
    assert response.headers["Cache-Control"] == "no-store"


def test_readiness_names_every_part(ada, grace, client):
    response = client.get("/readyz")

    assert response.status_code == 200
    body = response.json()
    assert body["status"] == "ok"
    assert set(body["parts"].values()) == {"ok"}
    assert set(body["parts"]) >= PARTS
    assert response.headers["Cache-Control"] == "no-store"


def test_without_a_cache_health_is_reduced(local, client, settings):
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://user:hunter2@127.0.0.1:1/0",
        }
    }

    response = client.get("/readyz")

    assert response.status_code == 200
    assert response.json()["status"] == "reduced"
    assert "hunter2" not in json.dumps(response.json())


def test_without_the_control_database_nothing_can_be_served(local, client, monkeypatch):
    def fail(*args, **kwargs):
        raise DatabaseError("password=hunter2")

    monkeypatch.setattr("memory.services.health.readiness.Agent.objects.exists", fail)

    response = client.get("/readyz")

    assert response.status_code == 503
    assert response.json()["status"] == "down"
    assert "hunter2" not in json.dumps(response.json())


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
def test_health_only_answers_to_get(client, address):
    response = client.post(address)

    assert response.status_code == 405
    assert set(response.json()) == {"error"}


def test_agents_whose_mysql_is_not_configured_make_health_reduced(grace, client, monkeypatch):
    def missing():
        raise BackendUnavailable("MySQL is not configured.")

    monkeypatch.setattr(readiness, "mysql_alias", missing)

    body = client.get("/readyz").json()

    assert body["status"] == "reduced"
    assert "MYSQL_URL" in body["parts"]["mysql"]
