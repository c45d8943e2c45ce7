"""What leaves jobs to be done while web and worker are killed, with the product's settings.

`python -m tests.memory.kill_worker` carries out what it reads: a line of JSON a command.
"""

import faulthandler
import json
import os
import signal
import sys
import time
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connections  # noqa: E402

from agents.auth import issue_key  # noqa: E402
from agents.models import Agent  # noqa: E402
from memory.databases import store_alias  # noqa: E402
from memory.filters import MemoryFilter  # noqa: E402
from memory.models import Job, JobState  # noqa: E402
from memory.services import jobs, memories  # noqa: E402
from tests.memory.kill_clients import PATIENCE_SECONDS  # noqa: E402
from tests.memory.worker import MING, draft, now  # noqa: E402

USERS, DUE_EACH = 2, 10
_ACTIVE = (JobState.PENDING, JobState.RUNNING)


def agents():
    return list(Agent.objects.select_related("memory_config").order_by("pk"))


def issue_keys():
    """Return a new key of each agent."""
    return {agent.name: issue_key(agent)[1] for agent in agents()}


def lay_due(number):
    """Save what is due to expire, and what is due to be erased; return the ids by agent."""
    return {agent.name: _lay_due(agent, number) for agent in agents()}


def _lay_due(agent, number):
    moment, tag, ids = now(), f"round-{number}", {"expire": [], "purge_trash": []}
    for user in range(USERS):
        texts = [f"r{number}u{user}n{each}" for each in range(DUE_EACH)]
        past = moment - timedelta(hours=1)
        drafts = [draft(f"e{text} 茶会改到周五", expires_at=past) for text in texts]
        drafts += [draft(f"p{text} old tea notes", tags=[tag]) for text in texts]
        saved = memories.save_batch(agent, f"due-{user}", drafts, now=moment)
        ids["expire"] += [memory.pk for memory in saved[:DUE_EACH]]
        ids["purge_trash"] += [memory.pk for memory in saved[DUE_EACH:]]
        # the trash remembers since when by this moment
        memories.trash_matching(
            agent, f"due-{user}", MemoryFilter(tags=(tag,)), actor=MING,
            now=moment - timedelta(days=60),
        )  # fmt: skip
    return ids


def enqueue(number):
    """Leave a round's jobs to be done, each under a key of its own; return their ids."""
    left = [
        jobs.enqueue(
            "reindex", {"agent_id": agent.pk}, key=f"reindex {agent.name} {number}", now=now()
        )
        for agent in agents()
    ]
    left += [
        jobs.enqueue(kind, key=f"{kind} {number}", now=now())
        for kind in ("expire", "purge_trash", "optimize_indexes")
    ]
    return [job.pk for job in left]


def reap(times):
    """Do what the reaper will when `SILENCE` has passed so often; return the jobs it sent again."""
    return jobs.reap(now=now() + times * (jobs.SILENCE + timedelta(minutes=1)))


def kill_at_commit(name, group):
    """Kill a web server as soon as one more memory of an agent's is committed."""
    alias = store_alias(Agent.objects.named(name))
    until, before = time.monotonic() + PATIENCE_SECONDS, _newest_memory(alias)
    while _newest_memory(alias) == before:
        assert time.monotonic() < until, f"no memory of {name} was committed"
        time.sleep(0.0002)  # who sleeps is woken at once
    os.killpg(group, signal.SIGKILL)


def _newest_memory(alias):
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT max(id) FROM memory_memory")
        return cursor.fetchone()[0]


def look():
    """Return how many jobs wait or run, how many run, and the most runs that one of them had."""
    active = Job.objects.filter(state__in=_ACTIVE).values_list("state", "attempts")
    return {
        "active": len(active),
        "running": sum(state == JobState.RUNNING for state, _ in active),
        "attempts": max((attempts for _, attempts in active), default=0),
    }


def jobs_ended():
    """Return all jobs as they are."""
    return list(
        Job.objects.order_by("pk").values("id", "kind", "state", "attempts", "result", "error")
    )


def main():
    """Carry out [name, arguments…] again and again; print what each gives."""
    faulthandler.dump_traceback_later(600, exit=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(globals()[name](*arguments)), flush=True)


if __name__ == "__main__":
    main()
