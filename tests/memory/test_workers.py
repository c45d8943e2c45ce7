"""Jobs done by real Celery workers on both brokers, some of which die."""

import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress

import pytest
import redis

from tests.memory.installation import ROOT, Process

PATIENCE_SECONDS = 60
CELERY = [sys.executable, "-m", "celery", "-A", "tests.memory.job_worker"]
ENDED = {"done", "failed", "cancelled"}
USERS, COUNT = 8, 200


class Broker:
    """The messages that wait in a folder or in Redis."""

    def __init__(self, installed, url):
        self._messages = installed.data_dir / "queue" / "messages"
        self._prefix = f"hippo-test-{secrets.token_hex(4)}:"
        self._redis = redis.Redis.from_url(url) if url else None
        self.env = {"BROKER_URL": url, "TEST_KEY_PREFIX": self._prefix} if url else {}

    def count(self):
        """Return how many messages wait."""
        if self._redis:
            return self._redis.llen(f"{self._prefix}celery")
        return len(list(self._messages.glob("*.celery.msg")))

    def lose(self):
        """Lose all messages."""
        if self._redis:
            self._redis.delete(f"{self._prefix}celery")
        else:
            for message in self._messages.glob("*.celery.msg"):
                message.unlink()

    def close(self):
        """Take away what is left."""
        if not self._redis:
            self.lose()
            return
        with self._redis as server:
            for key in server.scan_iter(f"{self._prefix}*"):
                server.delete(key)


@pytest.fixture(params=["filesystem", "redis"])
def broker(request, installation):
    url = os.environ.get("TEST_REDIS_URL") if request.param == "redis" else ""
    assert url is not None, "Run the tests with ./run test: it starts Redis, sets TEST_REDIS_URL."
    with closing(Broker(installation, url)) as broker:
        yield broker


@pytest.fixture
def office(installation, broker):
    return Office(installation, broker)


class Office:
    """An installation with a broker: jobs are left there and looked at."""

    def __init__(self, installation, broker):
        self.broker = broker
        self._data_dir = installation.data_dir
        # celery's own libraries need not be free of warnings
        self._env = {**installation.env, **broker.env, "PYTHONWARNINGS": "default"}

    def use(self, **variables):
        """Set variables of the environment of all that is run from now on."""
        self._env = {**self._env, **variables}

    def run(self, task, **arguments):
        """Run a task of job_worker and return what it yields."""
        with Process(("tests.memory.job_worker", task, arguments), self._env) as process:
            return process.rest()[-1]

    def rows(self, *ids):
        """Return the rows of jobs, by default all, by their number."""
        with closing(sqlite3.connect(self._data_dir / "hippo.sqlite3", timeout=30)) as control:
            control.row_factory = sqlite3.Row
            rows = {row["id"]: dict(row) for row in control.execute("SELECT * FROM memory_job")}
        return {job_id: row for job_id, row in rows.items() if not ids or job_id in ids}

    def silence(self, job_id):
        """Let a job have been silent for long."""
        with closing(sqlite3.connect(self._data_dir / "hippo.sqlite3", timeout=30)) as control:
            control.execute(
                "UPDATE memory_job SET heartbeat_at = '2026-01-01' WHERE id = ?", [job_id]
            )
            control.commit()

    @contextmanager
    def workers(self, count, *options):
        """Start workers; stop them at the end as an operator does, and show their logs."""
        logs = [self._data_dir / f"worker {number}.log" for number in range(count)]
        processes = []
        for number, log in enumerate(logs):
            command = [*CELERY, "worker", "--loglevel", "INFO", "-n", f"worker{number}@test",
                       "--without-gossip", "--without-mingle", *options]  # fmt: skip
            with log.open("w") as file:
                processes.append(
                    subprocess.Popen(command, cwd=ROOT, env=self._env, stdout=file, stderr=file)
                )
        try:
            yield processes
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=30)
                process.kill()
                process.wait()
            for log in logs:
                print(log.read_text())

    def wait_for(self, is_so, processes):
        """Wait until the jobs' rows are as they should be, and return them."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not is_so(rows := self.rows()):
            assert [process.poll() for process in processes] == [None] * len(processes)
            assert time.monotonic() < until, rows
            time.sleep(0.05)
        return rows

    def wait_for_end(self, ids, processes):
        """Wait until jobs have ended and return their rows."""
        rows = self.wait_for(lambda rows: {rows[each]["state"] for each in ids} <= ENDED, processes)
        return [rows[each] for each in ids]


# --- what was sent ---------------------------------------------------------------------


def test_what_was_sent_before_two_workers_began_is_done_once(office):
    ids = office.run("enqueue", kind="expire", keys=[f"expire {number}" for number in range(20)])
    ids += office.run("enqueue", kind="optimize_indexes", keys=["optimize"])
    office.run("send", job_id=ids[0], times=10)
    assert office.broker.count() == len(ids) + 10

    with office.workers(2, "-P", "threads", "--concurrency", "2") as processes:
        rows = office.wait_for_end(ids, processes)
        office.wait_for(lambda _: office.broker.count() == 0, processes)

    assert {(row["state"], row["attempts"], row["error"]) for row in rows} == {("done", 1, "")}
    results = [json.loads(row["result"]) for row in rows]
    assert results[:-1] == [{"trashed": 0}] * 20
    assert results[-1] == {"optimized": ["default", "mysql", "sqlite:memory.db"]}
    assert list(office.rows(*ids).values()) == rows  # the later messages changed nothing
    assert [process.returncode for process in processes] == [0, 0]


def is_done_after(rows, first):
    return any(row["state"] == "done" for job_id, row in rows.items() if job_id > first)


@pytest.mark.parametrize("broker", ["filesystem"], indirect=True)
def test_what_beat_sends_is_done_and_a_lost_message_is_sent_again(office):
    (lost,) = office.run("enqueue", kind="purge_trash", keys=["lost"])
    office.broker.lose()
    office.silence(lost)

    with office.workers(1, "-P", "threads", "--concurrency", "2") as processes:
        office.run("call", name="memory.tasks.enqueue_job", arguments=["expire"])
        rows = office.wait_for(lambda rows: is_done_after(rows, lost), processes)
        assert rows[lost]["state"] == "pending"
        office.run("call", name="memory.tasks.reap_jobs", arguments=[])
        (job,) = office.wait_for_end([lost], processes)

    assert (job["state"], job["attempts"]) == ("done", 1)


# --- workers that die ------------------------------------------------------------------


@pytest.fixture(scope="module")
def filled(installation):
    """Agents of this module with memories of many users."""
    installation.run("create_agents", agents={"eve": ["sqlite", ""], "mia": ["mysql", ""]})
    office = Office(installation, Broker(installation, ""))
    for agent in ("eve", "mia"):
        assert office.run("fill", agent=agent, users=USERS, count=COUNT) == USERS * COUNT


@pytest.mark.parametrize(
    ("broker", "agent"), [("filesystem", "eve"), ("redis", "mia")], indirect=["broker"]
)
def test_a_reindex_whose_worker_was_killed_goes_on_from_its_checkpoint(filled, office, agent):
    job_id = office.run("enqueue_reindex", agent=agent)
    with office.workers(1, "-P", "solo") as processes:
        office.wait_for(lambda rows: rows[job_id]["checkpoint"] != "{}", processes)
        processes[0].kill()
        processes[0].wait()
    dead = office.rows(job_id)[job_id]
    checkpoint = json.loads(dead["checkpoint"])
    assert (dead["state"], dead["attempts"]) == ("running", 1)
    assert 0 < checkpoint["done"] < USERS * COUNT
    reaped = office.run("reap_and_wear_out", agent=agent, after_minutes=[0.5, 2])
    assert [job_id in each for each in reaped] == [False, True]
    with office.workers(1, "-P", "solo") as processes:
        (job,) = office.wait_for_end([job_id], processes)

    assert (job["state"], job["attempts"], job["error"]) == ("done", 2, "")
    assert (job["done"], job["total"]) == (USERS * COUNT, USERS * COUNT)
    assert json.loads(job["result"]) == {"reindexed": USERS * COUNT}
    found = office.run("look_over", agent=agent)
    assert found["faults"] == []
    assert found["worn"] == [
        [scope, COUNT if scope <= checkpoint["scope"] else 0] for scope, _ in found["worn"]
    ]


@pytest.mark.parametrize(
    ("broker", "agent"), [("filesystem", "eve"), ("redis", "mia")], indirect=["broker"]
)
def test_embedding_whose_worker_was_killed_goes_on_and_makes_each_vector_once(
    filled, office, agent
):
    office.use(EMBEDDINGS="embedded")
    assert office.run("leave_to_embed", agent=agent, users=3) == 3 * COUNT
    (job_id,) = office.run("enqueue", kind="embed", keys=["embed"])
    with office.workers(1, "-P", "solo") as processes:
        office.wait_for(lambda rows: rows[job_id]["done"] > 0, processes)
        processes[0].kill()
        processes[0].wait()
    dead = office.run("look_at_vectors", agent=agent)
    assert office.rows(job_id)[job_id]["state"] == "running"
    office.silence(job_id)
    office.run("call", name="memory.tasks.reap_jobs", arguments=[])
    with office.workers(1, "-P", "solo") as processes:
        (job,) = office.wait_for_end([job_id], processes)

    found = office.run("look_at_vectors", agent=agent)
    assert (job["state"], job["attempts"], job["error"]) == ("done", 2, "")
    assert 0 < len(dead["stamps"]) < 3 * COUNT
    assert len(found["stamps"]) == 3 * COUNT
    assert found["stamps"].items() >= dead["stamps"].items()  # none was made a second time
    assert found["faults"] == []
