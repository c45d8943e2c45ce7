"""Signs of life, by beat and worker as they run."""

import json
import sqlite3
import time
from contextlib import closing

import pytest
from django.db import DatabaseError

from memory.models import Pulse
from memory.services.health import pulses
from memory.tasks import reap_jobs
from tests.memory.installation import Installation
from tests.memory.servers import Server, running, worker

PATIENCE_SECONDS = 40


@pytest.mark.django_db(transaction=True)
def test_a_sign_of_life_takes_the_place_of_the_one_before():
    pulses.note(pulses.BEAT)
    first = pulses.latest()[pulses.BEAT]
    pulses.note(pulses.BEAT)

    assert list(pulses.latest()) == [pulses.BEAT]
    assert pulses.latest()[pulses.BEAT] > first


@pytest.mark.django_db(transaction=True)
def test_what_beat_sends_leaves_a_sign_when_it_is_done():
    reap_jobs()

    assert pulses.ROUND in pulses.latest()


@pytest.mark.django_db
def test_a_control_database_that_fails_ends_nothing(monkeypatch, caplog):
    def fail(*args, **kwargs):
        raise DatabaseError("gone")

    monkeypatch.setattr(Pulse.objects, "filter", fail)

    pulses.note(pulses.WORKER)

    assert "no sign of life of worker" in caplog.text


def test_beat_and_worker_give_signs_of_life_and_log_as_the_settings_say(tmp_path):
    installed = Installation(tmp_path, LOG_FORMAT="json")
    assert installed.manage("migrate_stores")[0] == 0
    assert installed.manage("jobs", "--run", "expire")[0] == 0
    beat = Server(
        "beat", installed, "celery", "-q", "-A", "config", "beat", "--loglevel", "warning",
        "--schedule", str(tmp_path / "beat-schedule"), "--pidfile=",
    )  # fmt: skip
    doing = worker(installed)

    with running(beat, doing):
        until = time.monotonic() + PATIENCE_SECONDS
        found = set()
        while not found >= {"beat", "worker", "job done"}:
            assert time.monotonic() < until, (found, beat.logged(), doing.logged())
            time.sleep(0.3)
            with closing(sqlite3.connect(tmp_path / "hippo.sqlite3")) as control:
                found = {name for (name,) in control.execute("SELECT name FROM memory_pulse")}
                if control.execute("SELECT 1 FROM memory_job WHERE state = 'done'").fetchone():
                    found.add("job done")

    lines = [json.loads(line) for line in doing.logged().splitlines() if line.startswith("{")]
    done = [line for line in lines if line["message"].endswith(": done")]
    assert done
    assert all({"job", "kind", "time", "level", "logger"} <= line.keys() for line in done)
    assert {line["kind"] for line in done} >= {"expire"}
