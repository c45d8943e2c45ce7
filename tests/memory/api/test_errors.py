"""Whatever is wrong with a request is told in one shape, with the right status."""

import json

import pytest
from django.db import OperationalError

from agents.endpoint import MAX_BODY_BYTES
from agents.models import Agent
from memory.databases import store_alias
from memory.models import Scope, Store, StoreState
from tests.memory.api.client import Api, error_of, fields_of
from tests.memory.rows import row_counts

NEW = {"type": "user", "content": "Ming deploys on Fridays"}
GOOD = {"user_id": "ming", **NEW}


@pytest.fixture
def api(local):
    return local


def test_unknown_addresses_answer_in_the_same_shape(local):
    strict = Api(local.agent, enforce_csrf_checks=True).client

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        for address in ("/api/", "/api/v1/", "/api/v2/agents/", "/api/v1/agents/ada/memory/",
                        "/api/v1/agents/ada/memories/x/", "/api/v1/agents/ada/memories/1/touch/x/",
                        "/api/v1/agents/ada/../grace/memories/", "/api/v1/agents/a%2Fb/memories/",
                        "/api/v1/agents/%FF%FE/x/", "/api/v1/agents//memories/"):  # fmt: skip
            error = error_of(strict.generic(method, address), 404, "not_found")
            assert "/api/docs/" in error["message"]
        slashless = strict.generic(method, "/api/v1/agents/ada/memories", json.dumps(GOOD))
        assert "end in a slash" in error_of(slashless, 404, "not_found")["message"]


def test_addresses_outside_of_the_api_answer_as_pages(admin_client):
    response = admin_client.get("/nothing/here/")

    assert response.status_code == 404
    assert response.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "TRACE", "PROPFIND"])
def test_a_method_that_there_is_not_is_a_405_that_names_the_others(api, method):
    response = api.send(method, "memories/", GOOD)

    error_of(response, 405, "method_not_allowed")
    assert {"GET", "POST", "DELETE"} <= set(response.headers["Allow"].split(", "))


def test_answers_are_json_only(api):
    for accept in ("text/html", "application/xml", "text/*;q=0.5"):
        response = api.get("memories/", user_id="ming", headers={"accept": accept})
        error_of(response, 406, "not_acceptable")
    for accept in ("*/*", "text/html, */*;q=0.1", "application/*"):
        assert api.get("memories/", user_id="ming", headers={"accept": accept}).status_code == 200


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"]
)
def test_bodies_are_json_only(api, content_type):
    response = api.client.post(
        api.address("memories/"), json.dumps(GOOD), content_type=content_type
    )

    error_of(response, 415, "unsupported_media_type")


def test_a_body_has_a_largest_size(api):
    padding = b" " * (MAX_BODY_BYTES - len(json.dumps(GOOD)))

    largest = api.post("memories/", None, raw=json.dumps(GOOD).encode() + padding)
    larger = api.post("memories/", None, raw=json.dumps(GOOD).encode() + padding + b" ")

    assert largest.status_code == 201
    assert str(MAX_BODY_BYTES) in error_of(larger, 413, "too_large")["message"]


@pytest.mark.parametrize(
    "raw",
    [
        b"{", b"{'a': 1}", b"\xff\xfe", b'{"a": "\xff"}', b"\xef\xbb\xbf{}", b"{} {}", b"nope",
        b'{"a": NaN}', b'{"a": Infinity}', b'{"a": ' + b"9" * 5000 + b"}", b" ", b"\x00",
        b'{"a": "\x01"}', "{}".encode("utf-16"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused(api, raw):
    error = error_of(api.post("memories/", None, raw=raw), 400, "malformed")

    assert error["message"].startswith("The body is not JSON")


@pytest.mark.parametrize("raw", [b"[]", b"null", b"42", b'"text"', b"true", b"[[]]"])
def test_a_body_that_is_no_object_is_refused(api, raw):
    error = error_of(api.post("memories/", None, raw=raw), 400, "malformed")

    assert error["message"] == "The body must be a JSON object."


@pytest.mark.parametrize("depth", [65, 500, 900, 990, 5_000, 200_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_refused_wherever_it_is(api, depth, opening, closing):
    deep = opening * depth + "1" + closing * depth
    bodies = {
        "memories/": '"type": "user", "content": "x", "metadata": {"a": %s}',
        "memories/batch/": '"memories": [{"type": "user", "content": %s}]',
        "tools/memory_save/": '"arguments": {"content": %s}',
        "search/": '"query": %s',
    }

    for path, body in bodies.items():
        raw = f'{{"user_id": "ming", {body % deep}}}'
        error = error_of(api.post(path, None, raw=raw, headers={"idempotency-key": "k"}), 400)
        assert "nested too deeply" in error["message"], path
    text = json.dumps({"user_id": "ming", "arguments": f'{{"content": {deep}}}'})
    assert api.post("tools/memory_save/", None, raw=text).json()["ok"] is False
    assert row_counts(api.agent)["Memory"] == 0


def test_an_empty_body_does_where_nothing_must_be_said(api):
    saved = api.save("ming")

    response = api.send("POST", f"memories/{saved['id']}/touch/", user_id="ming")

    assert response.status_code == 200
    assert "user_id" in fields_of(api.send("POST", "memories/"))


@pytest.mark.parametrize(
    "query", ["user_id=%ff", "user_id=ming%", "user_id=\xff", "user_id=ming&q=%C3%28", "%ed%a0%80"]
)
def test_a_query_that_is_not_utf8_is_refused(api, query):
    api.save("ming%")

    response = api.client.get(api.address("memories/"), QUERY_STRING=query)

    if query == "user_id=ming%":  # a sign that begins no escape stands for itself
        assert [each["user_id"] for each in response.json()["results"]] == ["ming%"]
    else:
        assert "UTF-8" in error_of(response, 400, "malformed")["message"]


def test_a_query_in_plain_utf8_is_read_like_an_escaped_one(api):
    api.save("用户")

    response = api.client.get(
        api.address("memories/"), QUERY_STRING="user_id=用户".encode().decode("latin-1")
    )

    assert len(response.json()["results"]) == 1


def test_thousands_of_parameters_are_refused(api):
    response = api.client.get(api.address("memories/") + "?" + "&".join(["a=1"] * 2_000))

    error_of(response, 400, "malformed")


def test_every_wrong_parameter_is_named_at_once(api):
    response = api.get("memories/?user_id=ming&colour=red&size=1&limit=5&limit=6")

    assert fields_of(response) == {"colour", "size", "limit"}


def test_parameters_of_others_are_refused_at_every_address(api):
    saved = api.save("ming")
    path = f"memories/{saved['id']}/"

    for method, where in (("GET", path), ("DELETE", path), ("PATCH", path), ("POST", "memories/"),
                          ("POST", f"{path}touch/"), ("GET", f"{path}history/"),
                          ("GET", "tools/"), ("POST", "search/")):  # fmt: skip
        query = {} if where == "tools/" else {"user_id": "ming"}
        body = None if method in {"GET", "DELETE"} else {}
        response = api.send(method, where, body, colour="red", **query)
        assert fields_of(response) == {"colour"}, (method, where)
    assert api.listed("ming") == [saved]


def test_an_unknown_host_is_told(api, settings):
    settings.ALLOWED_HOSTS = ["hippo.example"]

    error = error_of(api.client.get("/api/v1/agents/"), 400, "unknown_host")

    assert "ALLOWED_HOSTS" in error["message"]


@pytest.mark.parametrize("state", [StoreState.FROZEN, StoreState.MOVED])
def test_writes_during_a_move_are_to_be_tried_again_and_reads_go_on(agent, state):
    api = Api(agent)
    saved = api.save("ming", "Ming deploys on Fridays")
    alias = store_alias(agent)
    Store.objects.using(alias).update(state=state)
    Scope.objects.using(alias).update(state=state)
    path = f"memories/{saved['id']}/"

    refused = [
        api.post("memories/", GOOD),
        api.post("memories/", {**GOOD, "user_id": "a new one"}),
        api.post("memories/batch/", {"user_id": "ming", "memories": [NEW]}),
        api.patch(path, {"pinned": True}, user_id="ming"),
        api.delete(path, user_id="ming"),
        api.delete(path, user_id="ming", purge="true"),
        api.delete("memories/", user_id="ming"),
        api.post(f"{path}reinforce/", {"user_id": "ming", "delta": 0.1}),
        api.post(f"{path}restore/", {"user_id": "ming"}),
        api.post("tools/memory_save/", {"user_id": "ming", "arguments": {"content": "x"}}),
        api.post("memories/", GOOD, headers={"idempotency-key": "k"}),
    ]

    for response in refused:
        error_of(response, 503, "store_not_open")
        assert int(response.headers["Retry-After"]) >= 1
    assert api.get(path, user_id="ming").json() == saved
    assert api.found("ming", "Fridays") == ["Ming deploys on Fridays"]
    assert api.post("prefetch/", {"user_id": "ming", "message": "Fridays"}).status_code == 200


def test_a_database_that_fails_is_a_503_and_never_nothing_found(api, monkeypatch, caplog):
    def fail(*args, **kwargs):
        raise OperationalError("the server has gone away: host=secret.example password=hunter2")

    monkeypatch.setattr("memory.api.memories.memories.list_page", fail)
    monkeypatch.setattr("memory.api.recall.recall", fail)

    for response in (api.get("memories/", user_id="ming"),
                     api.post("search/", {"user_id": "ming", "query": "x"})):  # fmt: skip
        error = error_of(response, 503, "database_unavailable")
        assert "secret" not in error["message"]
        assert int(response.headers["Retry-After"]) >= 1
    assert "a database fails" in caplog.text


def test_a_backend_that_is_not_there_is_a_503(api, monkeypatch):
    Agent.objects.get(pk=api.agent.pk).memory_config.__class__.objects.update(backend="mysql")
    monkeypatch.setattr("memory.databases.MYSQL_ALIAS", "nowhere")

    response = api.get("memories/", user_id="ming")

    assert "MySQL is not configured" in error_of(response, 503, "backend_unavailable")["message"]


def test_a_fault_of_ours_says_nothing_of_its_inside(api, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("/srv/secret/path")

    monkeypatch.setattr("memory.api.memories.memories.get", fail)
    api.client.raise_request_exception = False

    response = api.get("memories/1/", user_id="ming")

    assert "secret" not in json.dumps(error_of(response, 500, "internal"))


def test_errors_are_in_english_whatever_the_caller_speaks(api):
    response = api.get("memories/", limit="x", headers={"accept-language": "zh-hans"})

    assert error_of(response, 400)["fields"]["limit"] == "A valid integer is required."
    assert response.headers["Content-Language"] == "en"


def test_a_body_in_chunks_is_refused_and_not_taken_for_an_empty_one(local):
    headers = {"transfer-encoding": "chunked"}

    answer = local.post("memories/", {"user_id": "ming"}, headers=headers)

    assert "Content-Length" in error_of(answer, 411, "length_required")["message"]
