"""What operators are told of each part that is not well, and that the page always comes."""

import os
import socket
import threading
import time
from collections import namedtuple
from contextlib import closing
from datetime import timedelta

import pytest
from django.conf import settings as configured
from django.core.cache import caches
from django.db import connections
from django.utils import timezone, translation

from agents.models import MemoryConfig
from memory import fts
from memory.databases import store_alias
from memory.models import Job, JobState, MemoryTerms, Pulse
from memory.services import memories
from memory.services.health import background, machine, pulses, survey
from memory.services.health.background import Background
from memory.services.health.findings import WELL, State
from tests.conftest import MING, NOW
from tests.memory.servers import free_port

PATIENCE_SECONDS = 6  # 3 are promised; the machine may be busy
ALL = (pulses.BEAT, pulses.WORKER, pulses.ROUND)


def report_of(client):
    return client.get("/system/").context["report"]


def store_of(report, alias):
    return next(store for store in report.stores if store.alias == alias)


def words(client):
    return client.get("/system/").content.decode()


def test_every_part_is_shown_and_is_well(ada, grace, olga, remember):
    for agent in (ada, grace):
        remember(agent, "ming", "Ming deploys on Fridays")

    report = report_of(olga)

    assert report.findings[0].state == State.OK
    assert (report.state, report.troubles) == (State.OK, 0)
    assert [(store.alias, store.agents) for store in report.stores] == [
        ("default", 0), ("mysql", 1), ("sqlite:memory.db", 1),
    ]  # fmt: skip
    assert all(store.size_bytes and store.milliseconds for store in report.stores)
    assert "All is well" in words(olga)


def test_the_page_polls_itself_and_a_fragment_is_no_page(ada, olga):
    page = words(olga)
    fragment = olga.get("/system/", headers={"HX-Request": "true"}).content.decode()

    assert 'hx-get="/system/" hx-trigger="every 10s"' in page
    assert "<html" not in fragment
    assert "Control database" in fragment


def test_addresses_are_told_without_secrets(ada, grace, olga, settings):
    settings.CELERY_BROKER_URL = f"redis://user:hunter2@127.0.0.1:{free_port()}/0"

    page = words(olga)

    password = configured.DATABASES["mysql"]["PASSWORD"]
    assert "hunter2" not in page
    assert f":{password}@" not in page
    assert "127.0.0.1" in page


# --- stores ----------------------------------------------------------------------------


@pytest.fixture
def own_connections(monkeypatch):
    monkeypatch.setattr(connections, "settings", connections.settings)


def test_a_damaged_file_is_told_with_its_path_and_the_others_are_shown(
    ada, grace, olga, tmp_path, monkeypatch
):
    damaged = tmp_path / "memory.db"
    damaged.write_bytes(b"no database " * 1000)
    monkeypatch.setitem(connections.settings["sqlite:memory.db"], "NAME", str(damaged))

    answer = olga.get("/system/")

    report = answer.context["report"]
    store = store_of(report, "sqlite:memory.db")
    assert store.finding.state == State.DOWN
    assert "not a database" in str(store.finding.reason)
    assert str(configured.MEMORY_DIR / "memory.db") in str(store.finding.mend)
    assert store_of(report, "mysql").is_up
    assert report.state == State.REDUCED
    assert "1 thing needs attention" in answer.content.decode()


def test_a_file_that_is_gone_is_told_as_gone(ada, olga, own_connections):
    MemoryConfig.objects.filter(agent=ada).update(sqlite_path="gone.db")
    path = configured.MEMORY_DIR / "gone.db"
    path.with_name("gone.db.lock").write_text("The store beside this file was made")

    gone = store_of(report_of(olga), "sqlite:gone.db")

    path.with_name("gone.db.lock").unlink()
    assert str(gone.finding.reason) == f"The file {path} is gone."
    assert "backup" in str(gone.finding.mend)
    assert not path.exists()


def test_mysql_that_refuses_is_told_with_what_it_says(ada, grace, olga, monkeypatch):
    monkeypatch.setitem(configured.DATABASES["mysql"], "PORT", free_port())

    report = report_of(olga)

    mysql = store_of(report, "mysql")
    assert mysql.finding.state == State.DOWN
    assert "MySQL says" in str(mysql.finding.reason)
    assert "mysqladmin" in str(mysql.finding.mend)
    assert store_of(report, "sqlite:memory.db").is_up


def test_mysql_with_another_password_is_told_as_that(grace, olga, monkeypatch):
    monkeypatch.setitem(configured.DATABASES["mysql"], "PASSWORD", "hunter2")

    mysql = store_of(report_of(olga), "mysql")

    assert "Access denied" in str(mysql.finding.reason)
    assert "GRANT ALL" in str(mysql.finding.mend)
    assert "hunter2" not in words(olga)


def test_a_silent_mysql_holds_nobody_up(ada, grace, olga, monkeypatch):
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setitem(configured.DATABASES["mysql"], "PORT", server.getsockname()[1])
        began = time.monotonic()

        report = report_of(olga)

    assert time.monotonic() - began < PATIENCE_SECONDS
    assert survey._FIRST_SECONDS + survey._SECONDS < 3
    mysql = store_of(report, "mysql")
    assert mysql.finding.state == State.DOWN
    assert "mysqladmin" in str(mysql.finding.mend)
    assert store_of(report, "sqlite:memory.db").is_up
    assert report.queue.state == report.worker.state == State.OK


def test_mysql_that_agents_need_and_nobody_configured_is_told(grace, olga, monkeypatch):
    monkeypatch.delitem(configured.DATABASES, "mysql")

    report = report_of(olga)

    mysql = store_of(report, "mysql")
    assert (mysql.agents, mysql.finding.state) == (1, State.DOWN)
    assert "MYSQL_URL" in str(mysql.finding.mend)


def test_without_the_list_of_stores_the_control_database_is_told_as_silent(ada, olga, monkeypatch):
    asked = threading.Event()
    monkeypatch.setattr(survey, "_count_agents", lambda: asked.wait(1.5) and None)

    report = report_of(olga)

    asked.set()
    assert report.state == State.DOWN
    assert report.seconds < PATIENCE_SECONDS
    assert [store.alias for store in report.stores] == ["default", "mysql"]


@pytest.fixture(params=["trigger", "row", "version", "engine"])
def broken(request, agent, remember):
    """An agent whose index is broken in one way, and how bad that is."""
    memory = remember(agent, "ming", "Ming deploys on Fridays")
    alias = store_alias(agent)
    connection = connections[alias]
    rows = MemoryTerms.objects.using(alias).filter(pk=memory.pk)
    if request.param == "trigger":
        with connection.cursor() as cursor:
            for statement in fts.drop_statements(connection):
                cursor.execute(statement)
    elif request.param == "row":
        rows.delete()
    elif request.param == "version":
        rows.update(analyzer_version=0)
    elif agent.name == "grace":
        pytest.skip("InnoDB keeps its index by itself")
    else:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {fts.FTS_TABLE}({fts.FTS_TABLE}) VALUES ('delete-all')")
    yield alias, State.DOWN if request.param == "trigger" else State.REDUCED
    fts.rebuild_index(connection)


def test_an_index_that_is_not_whole_is_seen_without_a_scan(broken, olga):
    alias, state = broken

    index = store_of(report_of(olga), alias).index

    assert index.state == state
    assert "reindex_memory" in str(index.mend)


def test_what_is_in_the_trash_is_rightly_not_indexed(agent, olga, remember):
    memory = remember(agent, "ming", "Ming deploys on Fridays")
    memories.trash(agent, "ming", memory.pk, actor=MING, now=NOW)

    assert store_of(report_of(olga), store_alias(agent)).index.state == State.OK


# --- background work -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dead", "told"),
    [
        ({pulses.WORKER, pulses.ROUND}, "worker"),
        ({pulses.BEAT, pulses.ROUND}, "beat"),
        ({pulses.ROUND}, "queue"),
        (set(ALL), "beat worker"),
        (set(), ""),
    ],
)
@pytest.mark.parametrize("how", ["silent", "never"])
def test_it_is_told_which_of_them_is_dead(dead, told, how):
    signs = {name: NOW for name in ALL if name not in dead}
    if how == "silent":
        signs |= dict.fromkeys(dead, NOW - pulses.SILENCE)
    found = Background({}, None, signs)

    findings = {
        "beat": background.of_beat(found, now=NOW),
        "queue": background.of_queue(found, WELL, now=NOW),
        "worker": background.of_worker(found, now=NOW),
    }

    assert [name for name, each in findings.items() if each.state != State.OK] == told.split()
    for name in {"beat", "worker"} & set(told.split()):
        assert f"{name}.log" in str(findings[name].mend)


def test_a_dead_worker_is_on_the_page(ada, olga):
    Pulse.objects.filter(pk=pulses.WORKER).update(at=timezone.now() - pulses.SILENCE)

    assert report_of(olga).worker.state == State.DOWN
    assert "worker.log" in words(olga)


def test_a_job_that_waits_long_is_told(ada, olga):
    Job.objects.create(kind="expire", created_at=timezone.now() - timedelta(minutes=6))
    Job.objects.create(kind="move", state=JobState.FAILED)

    report = report_of(olga)

    assert (report.waiting, report.running, report.failed) == (1, 0, 1)
    assert report.queue.state == State.REDUCED


def test_a_broker_that_does_not_answer_is_told(ada, olga, settings):
    port = free_port()
    settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{port}/0"

    report = report_of(olga)

    assert report.queue.state == State.DOWN
    assert f"127.0.0.1:{port}" in str(report.queue.mend)
    assert report.worker.state == State.OK


def test_a_broker_that_answers_is_well(ada, olga, settings):
    settings.CELERY_BROKER_URL = os.environ["TEST_REDIS_URL"]

    assert report_of(olga).queue.state == State.OK


def test_a_cache_that_fails_is_told_without_its_password(ada, olga, settings):
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": f"redis://user:hunter2@127.0.0.1:{free_port()}/0",
        }
    }

    page = words(olga)

    caches["default"].close()
    assert "CACHE_URL" in page
    assert "hunter2" not in page


# --- the machine -----------------------------------------------------------------------

Usage = namedtuple("Usage", "total used free")
GB = 1024**3


@pytest.mark.parametrize(
    ("free", "state"),
    [(50 * GB, State.OK), (4 * GB, State.REDUCED), (GB // 10, State.DOWN)],
)
def test_a_disk_that_fills_up_is_told(ada, olga, monkeypatch, free, state):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: Usage(100 * GB, 0, free))

    assert report_of(olga).disk_finding.state == state


def test_the_latest_backup_is_shown(ada, olga):
    assert "none yet" in words(olga)
    folder = configured.DATA_DIR / "backups"
    for name, hours in (("old", 30), ("new", 3)):
        (folder / name).mkdir(parents=True)
        then = time.time() - hours * 3600
        os.utime(folder / name, (then, then))

    report, page = report_of(olga), words(olga)

    for name in ("old", "new"):
        (folder / name).rmdir()
    folder.rmdir()
    assert report.disk.backup == "backups/new"
    assert "3 h ago" in page


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("DEBUG", True, "DEBUG is on"),
        ("ALLOWED_HOSTS", ["*"], "ALLOWED_HOSTS holds *"),
        ("SECRET_KEY", "short", "SECRET_KEY is short"),
    ],
)
def test_settings_that_are_not_safe_are_told(ada, olga, settings, name, value, told):
    setattr(settings, name, value)

    with translation.override("en"):
        assert [told in str(each.reason) for each in machine.warnings()] == [True]


def test_what_others_on_the_machine_can_read_is_told(ada, olga, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    (tmp_path / "secret_key").write_text("k" * 50)
    (tmp_path / "secret_key").chmod(0o640)
    tmp_path.chmod(0o755)

    mends = [str(each.mend) for each in machine.warnings()]

    assert mends == [f"chmod 700 {tmp_path}", f"chmod 600 {tmp_path / 'secret_key'}"]
