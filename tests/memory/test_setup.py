"""The first run: open while nobody has an account, one operator, four steps."""

import json
import re
import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client

from agents.accounts import AlreadySetUp, create_operator
from agents.auth import find_key
from agents.models import Agent, ApiKey, Identity
from tests.conftest import NOW, make_agent

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")

LIN = {
    "username": "lin",
    "password": "correct horse",
    "again": "correct horse",
    "language": "en",
    "time_zone": "Asia/Shanghai",
}


@pytest.fixture
def lin(client):
    """Somebody who has just taken the first step."""
    client.post("/setup/", LIN)
    return client


def key_on(page):
    return re.search(r"hippo_[\w-]{40,}", page.content.decode())[0]


# --- where it is open ------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/memories/", "/me/", "/accounts/login/", "/admin/", "/nothing/"]
)
def test_without_accounts_every_page_leads_to_the_setup(client, path):
    assert client.get(path).headers["Location"] == "/setup/"
    assert client.get("/setup/").status_code == 200


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/api/v1/agents/", 403)])
def test_programs_are_left_alone(client, path, status):
    assert client.get(path).status_code == status


def test_with_an_account_it_is_looked_for_once(
    client, django_user_model, django_assert_num_queries
):
    django_user_model.objects.create_user("ming")

    assert client.get("/accounts/login/").status_code == 200
    with django_assert_num_queries(0):
        assert client.get("/accounts/login/").status_code == 200


def test_afterwards_nobody_finds_it(client, ada, django_user_model):
    make_agent("grace", "mysql")
    boss = django_user_model.objects.create_superuser("boss")

    paths = ("/setup/", "/setup/backend/", "/setup/agent/", "/setup/key/")
    for path in paths:
        assert client.get(path).status_code == 404
        assert client.post(path, LIN).status_code == 404
    client.force_login(boss)  # who comes back to it by the browser's history is led on
    assert {client.get(path).url for path in paths} == {"/"}
    assert {client.post(path, LIN).url for path in paths} == {"/"}
    assert get_user_model().objects.count() == 1


# --- the four steps --------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["sqlite", "mysql"])
def test_four_steps_end_with_an_agent_that_remembers(client, backend):
    first = client.get("/memories/", follow=True)
    to_backend = client.post("/setup/", LIN)
    backends = client.get(to_backend.url)
    to_agent = client.post(to_backend.url, {"backend": backend})
    to_key = client.post(to_agent.url, {"name": "小河", "language": "zh-hans", "backend": backend})
    shown = client.post(to_key.url)

    assert b'name="username"' in first.content
    assert backends.content.count(b"pill ok") == 2
    assert to_agent.url == f"/setup/agent/?backend={backend}"
    account = get_user_model().objects.get()
    assert (account.is_superuser, account.profile.time_zone) == (True, "Asia/Shanghai")
    assert Identity.objects.get().user_id == "lin"
    agent = Agent.objects.named("小河")
    assert (agent.memory_config.backend, agent.language) == (backend, "zh-hans")
    assert "no-store" in shown.headers["Cache-Control"]
    assert find_key(key_on(shown), now=NOW).agent == agent
    assert client.get("/setup/").url == "/"  # the key was used


def test_the_call_that_is_shown_saves_a_memory_about_the_operator(lin, remember):
    lin.post("/setup/agent/", {"name": "ada", "language": "en", "backend": "sqlite"})
    shown = lin.post("/setup/key/")
    words = shlex.split(shown.context["snippet"].replace("\\\n", " "))

    address, body = words[1], words[-1]
    answer = Client().post(
        address.removeprefix("http://testserver"),
        body,
        content_type="application/json",
        headers={"authorization": f"Bearer {key_on(shown)}"},
    )

    assert answer.status_code == 201
    assert json.loads(body)["content"] in lin.get("/memories/").content.decode()


def test_what_is_wrong_is_said_beside_its_field(client):
    wrong = {
        **LIN,
        "username": "a b",
        "password": "12345678",
        "again": "12345678",
        "time_zone": "x",
    }

    answer = client.post("/setup/", wrong)
    differing = client.post("/setup/", {**LIN, "again": "other horse"})
    like_the_name = client.post("/setup/", {**LIN, "username": "correcthorse"})

    assert answer.status_code == differing.status_code == 422
    assert set(answer.context["form"].errors) == {"username", "password", "time_zone"}
    assert set(differing.context["form"].errors) == {"again"}
    assert set(like_the_name.context["form"].errors) == {"password"}
    assert not get_user_model().objects.exists()


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_htmx_gets_the_next_step_alone_unless_the_language_changes(client, language):
    client.cookies["django_language"] = "en"
    htmx = {"hx-request": "true"}

    answer = client.post("/setup/", {**LIN, "language": language}, headers=htmx)
    step = client.get("/setup/backend/", headers=htmx)

    if language == "en":
        assert answer.headers["Location"] == "/setup/backend/"
    else:
        assert answer.headers["HX-Redirect"] == "/setup/backend/"
    assert step.content.decode().lstrip().startswith("<main")
    assert client.cookies["django_language"].value == language


def test_a_reload_or_another_browser_ends_at_the_right_step(lin):
    other = Client()

    assert lin.get("/setup/").headers["Location"] == "/setup/backend/"
    assert lin.get("/setup/key/").headers["Location"] == "/setup/backend/"
    assert other.get("/setup/").headers["Location"] == "/accounts/login/?next=/setup/"
    other.force_login(get_user_model().objects.create_user("mallory"))
    assert other.get("/setup/backend/").status_code == 404
    lin.post("/setup/agent/", {"name": "ada", "language": "en", "backend": "sqlite"})
    assert lin.get("/setup/").headers["Location"] == "/setup/key/"
    assert lin.get("/memories/").status_code == 200  # it may wait


def test_a_key_page_that_is_sent_again_leaves_one_key(lin):
    lin.post("/setup/agent/", {"name": "ada", "language": "en", "backend": "sqlite"})

    keys = [key_on(lin.post("/setup/key/")) for _ in range(2)]

    assert ApiKey.objects.filter(revoked_at=None).count() == 1
    assert find_key(keys[0], now=NOW) is None
    assert find_key(keys[1], now=NOW)


# --- what goes wrong -------------------------------------------------------------------


def test_two_at_once_make_one_operator():
    def create(number):
        try:
            create_operator(f"lin{number}", "correct horse", language="en", time_zone="UTC")
        except AlreadySetUp:
            return "late"
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        ends = list(threads.map(create, range(8)))

    assert sorted(ends, key=str) == [None, *["late"] * 7]
    assert get_user_model().objects.count() == Identity.objects.count() == 1


def test_a_backend_that_does_not_work_says_why_and_cannot_be_chosen(
    lin, settings, tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("")
    settings.MEMORY_DIR = tmp_path / "file"
    monkeypatch.delitem(settings.DATABASES, "mysql")

    page = lin.get("/setup/backend/").content.decode()
    refused = lin.post("/setup/backend/", {"backend": "mysql"})
    agent = lin.post("/setup/agent/", {"name": "ada", "language": "en", "backend": "mysql"})

    assert page.count("pill bad") == 2
    assert "MYSQL_URL" in page
    assert refused.status_code == agent.status_code == 422
    assert not Agent.objects.exists()


def test_an_agent_of_that_name_is_an_error_of_the_form(lin):
    for name in ("a b", "..", ""):
        form = {"name": name, "language": "en", "backend": "sqlite"}
        assert lin.post("/setup/agent/", form).status_code == 422
    assert not Agent.objects.exists()
