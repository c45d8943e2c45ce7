"""Background work, by hand and by real workers on both brokers."""

import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager

import pytest
import redis
from django.conf import settings
from django.db import connections

from config.celery import app
from memory import fts
from memory.databases import known_aliases, store_alias
from memory.services import maintenance, memories
from memory.tasks import optimize_indexes
from tests.conftest import MING, NOW, make_agent
from tests.memory.installation import ROOT, Installation

PATIENCE_SECONDS = 60
SEGMENTS = f"SELECT count(DISTINCT segid) FROM {fts.FTS_TABLE}_idx"


# --- by hand ---------------------------------------------------------------------------


def test_indexes_of_all_stores_are_optimized(ada, grace, remember, names_found, monkeypatch):
    optimize, done = maintenance.optimize, []
    for agent in (ada, grace):
        trashed = remember(agent, "ming", "no more tea", name="Trash")
        memories.trash(agent, "ming", trashed.pk, actor=MING, now=NOW)
        optimize(store_alias(agent))
        for number in range(2):  # a segment each
            remember(agent, "ming", f"tea number {number}", name=f"Tea {number}")
    alias = store_alias(ada)
    with connections[alias].cursor() as cursor:
        assert cursor.execute(SEGMENTS).fetchone()[0] > 1
    monkeypatch.setattr(
        maintenance, "optimize", lambda alias: done.append(alias) or optimize(alias)
    )

    optimize_indexes()

    assert done == ["default", "mysql", "sqlite:memory.db"] == known_aliases()
    with connections[alias].cursor() as cursor:
        assert cursor.execute(SEGMENTS).fetchone()[0] == 1
    for agent in (ada, grace):
        assert set(names_found(agent, "ming", "tea")) == {"Tea 0", "Tea 1"}
        assert list(maintenance.check(agent)) == []


def test_agents_of_one_file_are_optimized_once(ada, monkeypatch):
    make_agent("eve", "sqlite")
    done = []
    monkeypatch.setattr(maintenance, "optimize", done.append)

    optimize_indexes()

    assert sorted(done) == ["default", "mysql", "sqlite:memory.db"]


def test_every_task_of_the_schedule_is_one_that_workers_know():
    app.loader.import_default_modules()

    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert scheduled
    assert scheduled <= set(app.tasks)
    assert all(entry["schedule"] > 0 for entry in settings.CELERY_BEAT_SCHEDULE.values())


# --- by a worker -----------------------------------------------------------------------


@contextmanager
def worker(installed, *options):
    """A real worker, stopped as an operator stops it; its log is shown where the test fails."""
    command = [sys.executable, "-m", "celery", "-A", "config", "worker", "--loglevel", "INFO",
               "--without-gossip", "--without-mingle", *options]  # fmt: skip
    log = installed.data_dir / "worker.log"
    with log.open("w") as file:
        process = subprocess.Popen(command, cwd=ROOT, env=installed.env, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        print(log.read_text())


def send(installed, *options):
    """Send the task from a process of its own."""
    command = [sys.executable, "-m", "celery", "-A", "config", "call", optimize_indexes.name]
    subprocess.run(
        [*command, *options], cwd=ROOT, env=installed.env, check=True, timeout=60,
        capture_output=True,
    )  # fmt: skip


def count_segments(installed):
    with closing(sqlite3.connect(installed.memory_dir / "memory.db")) as store:
        return store.execute(SEGMENTS).fetchone()[0]


def wait_for(is_done, process):
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_done():
        assert process.poll() is None, "the worker has ended"
        assert time.monotonic() < until, "the task was not done in time"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """An installation whose broker is the folder that it is by default."""
    installed = Installation(tmp_path_factory.mktemp("data"))
    installed.run("prepare", agents={"ada": ["sqlite", ""]}, with_mysql=False)
    # celery's own libraries need not be free of warnings
    installed.env["PYTHONWARNINGS"] = "default"
    return installed


@pytest.fixture
def installed(prepared):
    """The installation with an index of many segments."""
    with prepared.start("save_one_by_one", agent="ada", user_id="ming", count=3) as process:
        process.rest()
    assert count_segments(prepared) > 1
    return prepared


@pytest.fixture
def redis_url():
    """The test's Redis, which must be there."""
    url = os.environ.get("TEST_REDIS_URL")
    assert url, "Run the tests with ./run test: it starts Redis and sets TEST_REDIS_URL."
    return url


def test_worker_on_redis_does_what_was_sent_before_it_began(installed, redis_url, monkeypatch):
    monkeypatch.setitem(installed.env, "BROKER_URL", redis_url)
    queue = f"test-{secrets.token_hex(4)}"  # another run may use the same server
    with closing(redis.Redis.from_url(redis_url)) as server:
        try:
            send(installed, "--queue", queue)
            assert server.llen(queue) == 1

            with worker(installed, "-P", "solo", "-Q", queue) as process:
                wait_for(lambda: count_segments(installed) == 1, process)

            assert server.llen(queue) == 0
        finally:
            server.delete(queue, f"_kombu.binding.{queue}")
    assert process.returncode == 0


def test_worker_on_the_file_system_does_what_was_sent_before_it_began(installed):
    messages = installed.data_dir / "queue" / "messages"
    send(installed)
    assert len(list(messages.glob("*.msg"))) == 1

    with worker(installed, "-P", "threads", "--concurrency", "2") as process:
        wait_for(lambda: count_segments(installed) == 1, process)

    assert list(messages.glob("*.msg")) == []
    assert process.returncode == 0
