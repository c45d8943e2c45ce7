"""Figures for Prometheus: who gets them, what they say, and that they are cheap and always come."""

import json
import re
from datetime import timedelta

import pytest
from django.conf import settings as configured
from django.utils import timezone

from agents.auth import issue_key
from agents.models import ApiKey
from memory.models import Job
from memory.retrieval.lexical import SearchRequest
from memory.services.figures import recall_counts
from memory.services.health import metrics, pulses, survey
from memory.services.recall import recall
from tests.conftest import NOW
from tests.memory.installation import Installation
from tests.memory.servers import free_port

TOKEN = "sixteen-or-more-0"
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)+)\})? (-?[0-9.e+-]+)')


def read(text):
    """Return {(name, labels): value}; every line must be one of the format."""
    found = {}
    for line in text.splitlines():
        if line.startswith("# "):
            assert re.match(r"# (HELP [a-z_]+ .|TYPE [a-z_]+ (gauge|counter))", line)
            continue
        name, labels, value = LINE.fullmatch(line).groups()
        assert (name, labels) not in found
        found[name, labels or ""] = float(value)
    return found


@pytest.fixture
def scrape(client, settings):
    """Ask as Prometheus does."""
    settings.METRICS_TOKEN = TOKEN
    settings.ALLOWED_HOSTS = ["testserver"]

    def ask(token=TOKEN):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return client.get("/metrics", headers=headers)

    return ask


# --- who gets them ---------------------------------------------------------------------


def test_whoever_has_the_token_gets_them_uncached(ada, scrape):
    answer = scrape()

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN}0", "支付"])
def test_nobody_else_gets_them(ada, scrape, token):
    answer = scrape(token)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "hippo_" not in answer.content.decode()


def test_an_agents_key_is_no_token(ada, scrape):
    assert scrape(issue_key(ada)[1]).status_code == 401


@pytest.mark.parametrize("token", ["", "None", "wrong"])
def test_without_the_setting_there_is_nothing_here(ada, scrape, settings, token):
    settings.METRICS_TOKEN = ""

    assert scrape(token).status_code == 404


@pytest.mark.parametrize(("is_staff", "status"), [(True, 200), (False, 404)])
def test_operators_get_them_by_their_session(
    ada, client, django_user_model, settings, is_staff, status
):
    settings.METRICS_TOKEN = ""
    client.force_login(django_user_model.objects.create_user("olga", is_staff=is_staff))

    assert client.get("/metrics").status_code == status


def test_a_token_that_can_be_guessed_stops_the_start(tmp_path):
    with Installation(tmp_path, METRICS_TOKEN="short").python("import config.settings") as process:
        assert "METRICS_TOKEN" in process.errors()


# --- what they say ---------------------------------------------------------------------


def test_they_count_what_there_is(ada, grace, scrape, remember):
    remember(ada, "ming", "Ming deploys on Fridays")
    remember(ada, "bob", "Bob deploys on Mondays")
    remember(grace, "ming", "支付模块周五上线")
    issue_key(ada)
    Job.objects.create(kind="expire", created_at=timezone.now())
    pulses.note(pulses.BEAT)

    found = read(scrape().content.decode())

    assert found["hippo_memories", 'agent="ada"'] == 2
    assert found["hippo_memories", 'agent="grace"'] == 1
    assert found["hippo_api_keys_live", ""] == 1
    assert found["hippo_jobs", 'state="pending",kind="expire"'] == 1
    assert 0 <= found["hippo_pulse_age_seconds", 'of="beat"'] < 60
    for store in ("default", "mysql", "sqlite:memory.db"):
        assert found["hippo_store_up", f'store="{store}"'] == 1
        assert found["hippo_store_bytes", f'store="{store}"'] > 0
    assert found["hippo_disk_free_bytes", ""] > 0
    assert found["hippo_part_state", 'part="worker"'] == 2


def test_no_text_of_a_memory_and_no_user_is_in_them(ada, scrape, remember):
    remember(ada, "ming", "kumquat", name="kumquat")

    text = scrape().content.decode()

    assert "kumquat" not in text
    assert "ming" not in text


def test_a_silent_store_is_down_and_the_rest_is_there(ada, grace, scrape, monkeypatch):
    monkeypatch.setitem(configured.DATABASES["mysql"], "PORT", free_port())

    found = read(scrape().content.decode())

    assert found["hippo_store_up", 'store="mysql"'] == 0
    assert ("hippo_memories", 'agent="grace"') not in found
    assert found["hippo_memories", 'agent="ada"'] == 0
    assert found["hippo_state", ""] == 1


def test_labels_are_escaped():
    metric = metrics.Metric("hippo_x", "X.", [({"agent": 'a"b\\c\nd'}, 1.5)])

    assert list(metric.lines())[-1] == 'hippo_x{agent="a\\"b\\\\c\\nd"} 1.5'


def test_they_cost_as_many_queries_with_many_memories_as_with_few(
    ada, remember, django_assert_num_queries
):
    def cost():
        report = survey.look(now=timezone.now(), has_counts=True)
        with django_assert_num_queries(2):
            metrics.render(report)

    cost()
    for number in range(30):
        remember(ada, f"user {number}", f"note number {number}")
    cost()


def test_only_keys_that_are_taken_are_counted(ada, scrape):
    issue_key(ada)
    issue_key(ada, expires_at=timezone.now() + timedelta(days=1))
    issue_key(ada, expires_at=timezone.now() - timedelta(seconds=1))
    ApiKey.objects.filter(pk=issue_key(ada)[0].pk).update(revoked_at=timezone.now())

    assert "hippo_api_keys_live 2" in scrape().content.decode().splitlines()


def test_what_agents_did_is_counted(agent, remember, scrape):
    remember(agent, "ming", "Ming deploys on Fridays")
    for query in ("When does Ming deploy?", "passport"):
        recall(agent, "ming", SearchRequest(query), now=NOW)
    recall_counts.flush()

    lines = scrape().content.decode().splitlines()

    label = f'{{agent="{agent.name}"}}'
    assert f"hippo_saved_total{label} 1" in lines
    assert f"hippo_recalls_total{label} 2" in lines
    assert f"hippo_recalls_answered_total{label} 1" in lines


_SCRAPE = """
import json, django
django.setup()
from django.test import Client
import time
began = time.monotonic()
answer = Client().get("/metrics", headers={"Authorization": "Bearer %s", "Host": "localhost"})
print(json.dumps([answer.status_code, answer.content.decode(), time.monotonic() - began]))
"""


def test_without_the_control_database_they_say_so(tmp_path):
    dead = f"mysql://app:hunter2@127.0.0.1:{free_port()}/hippo"
    installed = Installation(
        tmp_path,
        DATABASE_URL=dead,
        METRICS_TOKEN=TOKEN,
        DJANGO_SETTINGS_MODULE="config.settings",
        LOG_LEVEL="CRITICAL",
    )

    with installed.python(_SCRAPE % TOKEN) as process:
        status, text, seconds = process.read()

    found = read(text)
    assert status == 200
    assert found["hippo_store_up", 'store="default"'] == 0
    assert found["hippo_state", ""] == 2
    assert found["hippo_disk_free_bytes", ""] > 0
    assert seconds < 5
    assert "hunter2" not in json.dumps(text)
