"""Web server and worker killed by SIGKILL at random moments, while clients save and jobs run.

On both engines at once, over each broker. HIPPO_TEST_ROUNDS sets the number of kills;
pytest-randomly seeds the moments: `-p randomly -p "randomly_seed=…"` repeats them.
"""

import json
import math
import os
import random
import re
import sys
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, contextmanager

import pytest

from tests.memory import servers
from tests.memory.installation import Installation, Process, fresh_mysql
from tests.memory.kill_clients import PATIENCE_SECONDS, USER, Client
from tests.memory.test_concurrency import inconsistencies

BROKERS = ["filesystem", "redis"]
ROUNDS = math.ceil(int(os.environ.get("HIPPO_TEST_ROUNDS", "50")) / len(BROKERS))
ENOUGH_ROUNDS = 10
CLIENTS = 2
MOST_ATTEMPTS = 4
"""A job that began so often is let end: after one more kill it would have failed, as it should."""
QUIET_SECONDS, MOST_FAULTS = 3, 20
AGENTS = {"ada": ["sqlite", ""], "grace": ["mysql", ""]}


class Keeper(Process):
    """The process that leaves jobs to be done, and does what the reaper will."""

    def ask(self, name, *arguments):
        """Let it carry out a command and return what that gives."""
        self._popen.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._popen.stdin.flush()
        return self.read()


def wait_for(is_so, *, what):
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < until, f"{what} did not come about in time"
        time.sleep(0.02)


class Siege:
    """An installation at work: clients save, jobs run, and both servers may be killed."""

    def __init__(self, installed, dice):
        self._dice, self._reaps = dice, 0
        command = [sys.executable, "-m", "tests.memory.kill_worker"]
        self.keeper = Keeper(command, installed.env)
        port = servers.free_port()
        self.web, self.worker = servers.web(installed, port), servers.worker(installed)
        self.clients = [
            Client(port, agent, key, number, dice.getrandbits(32))
            for agent, key in self.keeper.ask("issue_keys").items()
            for number in range(CLIENTS)
        ]
        self.jobs, self.due = [], {name: {"expire": [], "purge_trash": []} for name in AGENTS}

    @contextmanager
    def under_way(self):
        """Run servers and clients; at the end let what was asked for be answered and done."""
        with self.keeper, servers.running(self.web, self.worker):
            for client in self.clients:
                client.start()
            try:
                yield
            finally:
                for client in self.clients:
                    client.stopped.set()
            for client in self.clients:
                client.join(2 * PATIENCE_SECONDS)
                assert not client.is_alive()
            self._let_jobs_go_on(until=lambda jobs: not jobs["active"])
            self.jobs_ended = self.keeper.ask("jobs_ended")

    def kill_once(self, number):
        """Leave jobs to be done, kill one server or both at a random moment, start them again."""
        for name, due in self.keeper.ask("lay_due", number).items():
            for kind, ids in due.items():
                self.due[name][kind] += ids
        self.jobs += self.keeper.ask("enqueue", number)
        victims = self._dice.choice([[self.web], [self.worker], [self.web, self.worker]])
        if self._dice.random() < 0.7:  # else whatever they are at, be it starting
            self._wait_until_busy(victims)
        self._let_jobs_go_on(until=lambda jobs: jobs["attempts"] < MOST_ATTEMPTS)
        time.sleep(self._dice.uniform(0, 0.5))
        if self.web in victims and self._dice.random() < 0.5:
            # committed, and hardly answered yet
            self.keeper.ask("kill_at_commit", self._dice.choice([*AGENTS]), self.web.pid)
        for server in victims:
            server.kill()
        # now and then of a worker that lives: then two have the job, and one of them may write
        if self.worker in victims or self._dice.random() < 0.3:
            self._reap()
        for server in victims:
            server.start()

    def _wait_until_busy(self, victims):
        if self.web in victims:
            before = self._acknowledged()
            wait_for(lambda: self._acknowledged() > before + CLIENTS, what="an answer")
        if self.worker in victims:
            self._let_jobs_go_on(until=lambda jobs: jobs["running"] or not jobs["active"])

    def _reap(self):
        # what was sent again bears the moment at which that was done, which is not yet
        self._reaps += 1
        self.keeper.ask("reap", self._reaps)

    def _acknowledged(self):
        return sum(len(client.saved) for client in self.clients)

    def _let_jobs_go_on(self, *, until):
        """Wait for the jobs; reap where nothing runs, as one may wait for another try."""
        quiet_since = time.monotonic()

        def is_so():
            nonlocal quiet_since
            jobs, moment = self.keeper.ask("look"), time.monotonic()
            if jobs["running"]:
                quiet_since = moment
            elif jobs["active"] and moment > quiet_since + QUIET_SECONDS:
                self._reap()
                quiet_since = moment
            return until(jobs)

        wait_for(is_so, what="the end of the jobs")


def states(installed):
    """Return what there is of each agent, looked up for both at once."""
    with ExitStack() as stack:
        processes = [stack.enter_context(installed.start("inspect", agent=name)) for name in AGENTS]
        return dict(zip(AGENTS, [process.rest()[-1] for process in processes], strict=True))


def faults_of_saves(clients, state):
    """Yield each memory that was acknowledged and is not there as it was, or that is doubled."""
    found = defaultdict(list)
    for row in state["memories"]:
        if row["user_id"] == USER:
            found[row["content"].split()[0]].append(row)
    for client in clients:
        yield from client.faults
        for text, memory_id in client.saved.items():
            rows = found.pop(text.split()[0], [])
            if [(row["id"], row["content"]) for row in rows] != [(memory_id, text)]:
                yield f"{text} was saved as {memory_id}; there is {rows}"
        for texts in client.given_up:
            counts = [len(found.pop(text.split()[0], [])) for text in texts]
            if counts not in ([0] * len(texts), [1] * len(texts)):
                yield f"{texts} were given up and are there {counts} times"
        rows = found.pop(client.own["content"].split()[0], [])
        if [own_memory(row) for row in rows] != [client.own]:
            yield f"{client.own} was the last to be acknowledged; there is {rows}"
    if found:
        yield f"nobody saved {found}"


def own_memory(row):
    """Return a row as its client keeps its books."""
    kept = {name: row[name] for name in ("id", "content", "version")}
    return kept | {"uses": row["access_count"]}


def faults_of_upkeep(due, state):
    """Yield each memory to which what was due was not done, or was done twice."""
    rows = {row["id"]: row for row in state["memories"]}
    for memory_id in due["expire"]:
        row = rows.get(memory_id)
        if row is None or (row["status"], row["version"]) != ("trashed", 2):
            yield f"{memory_id} was to be moved to the trash, once: {row}"
    for memory_id in due["purge_trash"]:
        if memory_id in rows:
            yield f"{memory_id} was to be erased: {rows[memory_id]}"


def faults_of_jobs(siege):
    """Yield each job that was lost, did not end well, or ended twice."""
    jobs = siege.jobs_ended
    if [job["id"] for job in jobs] != siege.jobs:
        yield f"of the jobs {siege.jobs} there are {[job['id'] for job in jobs]}"
    yield from (f"this job is not done: {job}" for job in jobs if job["state"] != "done")
    ends = Counter(re.findall(r"job (\d+) \(\w+\): done", siege.worker.logged()))
    yield from (f"job {job} was done {times} times" for job, times in ends.items() if times > 1)
    for kind, result in (("expire", "trashed"), ("purge_trash", "erased")):
        done = sum(job["result"].get(result, 0) for job in jobs if job["kind"] == kind)
        most = sum(len(due[kind]) for due in siege.due.values())
        # a run that was killed told nobody what it had done
        if done > most:
            yield f"{kind} did {done} of {most}"


@pytest.fixture(params=BROKERS)
def installed(request, tmp_path):
    """An installation whose broker and cache are its own."""
    with ExitStack() as stack:
        variables = {"MYSQL_URL": stack.enter_context(fresh_mysql())}
        if request.param == "redis":
            url = stack.enter_context(servers.fresh_redis())
            variables |= {"BROKER_URL": url, "CACHE_URL": url}
        # a limit that is never reached: the cache has its part in each request
        variables |= {"LOG_LEVEL": "INFO", "API_RATE_PER_MINUTE": "1000000"}
        installed = Installation(tmp_path, **variables)
        installed.run("prepare", agents=AGENTS)
        yield installed


def test_kills_lose_and_double_no_memory_and_no_job(installed, pytestconfig):
    print("seed", pytestconfig.getoption("randomly_seed", None))
    siege = Siege(installed, random.Random(random.getrandbits(32)))

    with siege.under_way():
        for number in range(ROUNDS):
            siege.kill_once(number)

    faults = list(faults_of_jobs(siege))
    for name, state in states(installed).items():
        clients = [client for client in siege.clients if client.agent == name]
        faults += faults_of_saves(clients, state)
        faults += faults_of_upkeep(siege.due[name], state)
        faults += inconsistencies(state)
        counts = sum((client.counts for client in clients), Counter())
        print(name, len(state["memories"]), "memories after", dict(counts))
        if ROUNDS >= ENOUGH_ROUNDS and not counts["cut off"]:
            faults.append(f"no kill met a request of {name}")
    runs = Counter(job["attempts"] for job in siege.jobs_ended)
    print("kills", {each.name: each.kills for each in (siege.web, siege.worker)})
    print("jobs by how often they were begun", dict(runs))
    if ROUNDS >= ENOUGH_ROUNDS and set(runs) == {1}:
        faults.append("no kill met a job")
    assert not faults, "\n".join(faults[:MOST_FAULTS])
