"""Every request has an id and one line in the log, which holds nobody's words."""

import http.client
import json
import logging
import re
import time

import pytest
from django.test import Client

from agents import logs
from agents.auth import issue_key
from tests.memory.installation import Installation
from tests.memory.servers import free_port, running, web

GIVEN = "0f3c-proxy.made_1"


@pytest.fixture
def ming(db, django_user_model):
    return django_user_model.objects.create_user("ming", password="correct horse")


@pytest.fixture
def lines(caplog):
    """What was logged of requests so far, as the words and the fields of each."""
    caplog.set_level(logging.DEBUG, logger="agents.request_log")

    def read():
        records = [each for each in caplog.records if each.name == "agents.request_log"]
        return [(each.getMessage(), each.fields, each.levelno) for each in records]

    return read


def test_every_answer_carries_an_id_of_its_own(client, ming):
    answers = [client.get(path) for path in ("/healthz", "/memories/", "/nothing/", "/api/x")]

    ids = [answer.headers["X-Request-ID"] for answer in answers]
    assert all(re.fullmatch(r"[0-9a-f]{16}", each) for each in ids)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("proxies", "given", "is_kept"),
    [
        (1, GIVEN, True),
        (0, GIVEN, False),  # anybody can write it
        (1, "short", False),
        (1, "a" * 65, False),
        (1, "two words 123", False),
        (1, "0f3c\\n{forged}", False),
    ],
)
def test_an_id_is_taken_from_a_proxy_of_ours_if_it_is_one(
    client, settings, proxies, given, is_kept
):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies

    answer = client.get("/healthz", headers={"x-request-id": given})

    assert (answer.headers["X-Request-ID"] == given) == is_kept


def test_a_line_names_route_status_and_account_and_no_words_of_theirs(client, ming, lines):
    client.force_login(ming)

    client.get("/memories/?q=kumquat")
    client.get("/memories/7/")
    client.get("/nothing/kumquat/")

    found = lines()
    assert [(each["route"], each["status"]) for _, each, _ in found] == [
        ("/memories/", 200), ("/memories/<int:memory_id>/", 404), ("-", 404),
    ]  # fmt: skip
    assert found[0][1]["account"] == "ming"
    assert found[0][1]["ms"] > 0
    assert "kumquat" not in str(found)


def test_a_line_names_the_agent_whose_key_came(ada, client, lines):
    key = issue_key(ada)[1]

    client.get(
        "/api/v1/agents/ada/memories/?user_id=ming", headers={"authorization": f"Bearer {key}"}
    )

    [(said, fields, _)] = lines()
    assert (fields["agent"], fields["status"]) == ("ada", 200)
    assert fields["route"] == "/api/v1/agents/<str:agent>/memories/"
    assert "ming" not in said
    assert key not in said


@pytest.mark.parametrize("path", ["/healthz", "/static/nothing.css"])
def test_what_machines_ask_for_all_the_time_is_for_debugging(client, ming, lines, path):
    client.get(path)

    assert [level for _, _, level in lines()] == [logging.DEBUG]


def test_a_fault_is_logged_under_the_id_that_the_page_shows():
    # without the mark `django_db`, every query fails
    client = Client(raise_request_exception=False)

    page = client.get("/memories/")
    fragment = client.get("/memories/", headers={"hx-request": "true"})

    assert page.headers["X-Request-ID"] in page.content.decode()
    assert fragment.headers["X-Request-ID"]


@pytest.mark.parametrize("path", ["/nothing/", "/memories/7/"])
def test_error_pages_show_the_id(client, ming, path):
    client.force_login(ming)

    answer = client.get(path)

    assert answer.status_code == 404
    assert f"<code>{answer.headers['X-Request-ID']}</code>" in answer.content.decode()


def test_what_is_bound_ends_where_it_began():
    with logs.bound(request="outer"):
        with logs.bound(job=7):
            assert logs.request_id() == "outer"
        assert logs.request_id() == "outer"
    assert logs.request_id() == ""


def test_a_text_line_cannot_be_forged():
    record = logging.LogRecord("x", logging.INFO, "", 0, "a\nERROR forged", (), None)

    assert logs.TextFormatter().format(record).endswith("a\\nERROR forged")


def test_another_format_stops_the_start(tmp_path):
    with Installation(tmp_path, LOG_FORMAT="xml").python("import config.settings") as process:
        assert "LOG_FORMAT must be text or json" in process.errors()


def ask(port, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_the_server_logs_each_request_once_and_all_in_json(tmp_path):
    installed = Installation(tmp_path, LOG_FORMAT="json", TRUSTED_PROXY_COUNT="1")
    assert installed.manage("migrate_stores")[0] == 0
    port = free_port()
    server = web(installed, port)
    with running(server):
        until = time.monotonic() + 30
        while not _answers(port):
            assert time.monotonic() < until, server.logged()
            time.sleep(0.1)
        answer = ask(port, "/setup/?q=kumquat", **{"X-Request-ID": GIVEN})
        wrong = ask(port, "/memories/", Host="evil.example")

    lines = [json.loads(line) for line in server.logged().splitlines()]
    assert answer.headers["X-Request-ID"] == GIVEN
    assert "kumquat" not in server.logged()
    [line] = [line for line in lines if line.get("request") == GIVEN]
    assert (line["method"], line["route"], line["status"]) == ("GET", "/setup/", 200)
    assert {"time", "level", "logger", "message", "ms"} <= line.keys()
    assert wrong.headers["X-Request-ID"] in {line.get("request") for line in lines}


def _answers(port):
    try:
        return ask(port, "/healthz").status == 200
    except OSError:
        return False
