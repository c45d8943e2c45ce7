"""Backups in processes of their own: `python -m tests.memory.backup_worker TASK JSON`."""

import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from tests.memory import worker

from django.conf import settings  # isort: skip  # the worker sets Django up
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from agents.models import Agent
from memory import databases
from memory.errors import HippoError, StoreNotOpen
from memory.models import Job, Store
from memory.services import jobs, maintenance, memories
from memory.services.backups import manifest, restoring, taking
from memory.services.moves import agreement

USER = "ming"
ODD = "O'Neil \\ \"说\"\n第二行\r\t%s 😀 \x1a \u2028 ', (1); -- 支付"
"""What a dump must quote."""


def prepare(agents, number=0, with_mysql=True):
    """Set an installation up, save some memories of every agent, and yield what all hold."""
    list(worker.prepare(agents, with_mysql))
    for name in agents:
        agent = Agent.objects.named(name)
        drafts = [
            worker.draft(f"{name}{n} {ODD}", metadata={"big": 2**60 + n, "part": 0.1 + 0.2})
            for n in range(number)
        ]
        for memory in memories.save_batch(agent, "bob", drafts, now=worker.now()):
            changes = {"importance": 1 / 3}
            memories.update(agent, "bob", memory.pk, changes, actor=worker.MING, now=worker.now())
    yield from look(agents)


def look(agents):
    """Yield by agent the figures and the checksum over every field, and what is wrong."""
    yield {
        name: {
            **agreement.tally(Agent.objects.named(name)).summary(),
            "faults": [str(fault) for fault in maintenance.check(Agent.objects.named(name))],
        }
        for name in agents
    }


def save_without_end(agents, makes_agents=False):
    """Save one memory after another in a thread for each agent, waiting out moves.

    Prints each as soon as it is acknowledged. `makes_agents`: new ones save now and then.
    """
    yield "ready"
    worker.pause()
    printing = threading.Lock()

    def save(name):
        for number in count():
            if makes_agents and number % 5 == 0:
                _create_agent(f"{name}{number}", Agent.objects.named(name).memory_config.backend)
                new = Agent.objects.named(f"{name}{number}")
                memories.save(new, USER, worker.draft("It is new"), now=worker.now())
            content = f"note{number} of {name}: 支付模块第 {number} 次上线"
            while True:
                try:
                    agent = Agent.objects.named(name)
                    saved = memories.save(agent, USER, worker.draft(content), now=worker.now())
                    break
                except StoreNotOpen:
                    time.sleep(0.01)
            with printing:
                print(json.dumps([name, saved.pk, content]), flush=True)
            time.sleep(0.02)  # it need not be all that the machine does

    worker.traffic.run([threading.Thread(target=save, args=[name]) for name in agents])


def take(times, folder=""):
    """Take backups one by one, each once let go; yield where it is."""
    yield "ready"
    for _ in range(times):
        worker.pause()
        path, _ = taking.take(_folder(folder), keep=None, is_checked=True, now=timezone.now())
        yield str(path)


def commands(lines):
    """Run management commands, and a few things beside; yield what each printed and its error."""
    beside = {"limit": _limit, "agent": _create_agent, "remove": os.remove}
    for line in lines:
        out, error = io.StringIO(), ""
        if line[0] in beside:
            beside[line[0]](*line[1:])
            continue
        try:
            call_command(*line, stdout=out, stderr=out)
        except CommandError as refused:
            error = str(refused)
        yield [out.getvalue(), error]


def _limit(most_bytes):
    """Let no file grow beyond so many bytes: as on a disk that is full."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes or hard, hard))


def _create_agent(name, backend):
    Agent.objects.create_agent(name, backend=backend)


def killed_takes(kills):
    """Take backups that are killed at random moments; yield what looks like one afterwards."""
    took, _ = _timed(_take)
    killed = left = 0
    for _ in range(kills):
        killed += _killed(_take, took)
        left += bool(manifest.unfinished(_folder()))
        for path in manifest.complete(_folder()):
            manifest.verify(path, manifest.read(path))
            shutil.rmtree(path)
    path = _take()
    yield {
        "killed": killed,
        "left": left,
        "left_afterwards": len(manifest.unfinished(_folder())),
        "folder": str(path),
    }


def killed_restores(folder, kills, agents, replace=False):
    """Restore again and again, killed at random moments, and then to the end.

    Yields how many were killed, how often the product would have started on a half, and what
    all agents hold in the end.
    """

    def work():
        restoring.restore(Path(folder), replace=replace, now=timezone.now())

    control = Path(settings.DATA_DIR) / "hippo.sqlite3"
    killed = started = 0
    for number in range(1, kills + 1):
        # the first are killed before any machine is done
        if not _killed(work, 0.05 * number):
            break
        killed += 1
        with suppress(HippoError):
            restoring.require_none_unfinished()
            started += control.exists() and not replace
    else:
        work()
    call_command("migrate_stores", stdout=io.StringIO())
    [found] = look(agents)
    yield {"killed": killed, "started": started, "agents": found}


def held_move(agent, backend, stops):
    """Move an agent; before each statement of `stops` print it and stand still till let go.

    A stop is such as "UPDATE `memory_store` in mysql 2": the second of its kind there.
    """
    agent = Agent.objects.named(agent)
    aliases = {databases.store_alias(agent), databases.Place(backend, "").alias(), "default"}
    yield "ready"
    worker.pause()
    worker.moving.enqueue(agent, backend=backend, sqlite_path="", now=worker.now())
    seen = Counter()

    def stand_still(execute, sql, parameters, many, context):
        verb, *words = sql.replace('"', "`").split()[:3]
        kind = f"{verb} {words[verb == 'INSERT']} in {context['connection'].alias}"
        seen[kind] += 1
        if f"{kind} {seen[kind]}" in stops:
            print(json.dumps(f"{kind} {seen[kind]}"), flush=True)
            worker.pause()
        return execute(sql, parameters, many, context)

    with worker.ExitStack() as stack:
        for alias in aliases:
            stack.enter_context(connections[alias].execute_wrapper(stand_still))
        outcome = worker.go_on_moving(agent)
    yield outcome


def restored(folder, agents):
    """Restore a backup by the command, let its moves go on, and yield what each agent has."""
    out = io.StringIO()
    call_command("restore", folder, stdout=out, stderr=out)
    for job in Job.objects.filter(kind="move", active_key__isnull=False):
        jobs.reap(now=worker.now() + 2 * jobs.SILENCE)
        worker.job_kinds.perform(job.pk)
    found = {}
    for name in agents:
        agent = Agent.objects.named(name)
        store = Store.objects.using(databases.store_alias(agent)).get(agent_id=agent.pk)
        found[name] = {
            "alias": databases.store_alias(agent),
            "state": store.state,
            "faults": [str(fault) for fault in maintenance.check(agent)],
            "memories": [
                [memory.pk, memory.content]
                for memory in memories.walk(agent)
                if memory.scope.user_id == USER
            ],
        }
        memories.save(agent, "bob", worker.draft("It takes writes"), now=worker.now())
    yield {"said": out.getvalue(), "agents": found}


def _folder(name=""):
    return Path(name or settings.DATA_DIR / "backups")


def _take():
    path, _ = taking.take(_folder(), keep=None, is_checked=True, now=timezone.now())
    return path


def _timed(work):
    begun = time.monotonic()
    value = work()
    return time.monotonic() - begun, value


def _killed(work, seconds):
    """Do `work` in a child that is killed within so many seconds; return whether it was."""
    connections.close_all()
    with _no_warning_of_threads():
        pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    time.sleep(random.uniform(0, seconds))
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


@contextmanager
def _no_warning_of_threads():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def main():
    task, arguments = sys.argv[1:]
    worker.faulthandler.dump_traceback_later(120, exit=True)
    for value in globals()[task](**json.loads(arguments)):
        print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
