"""Jobs in processes of their own.

This is a Celery application too (`celery -A tests.memory.job_worker`): the product's, whose keys
in Redis begin with TEST_KEY_PREFIX, since others may use the same server.
"""

import json
import os
from datetime import timedelta

from tests.memory import worker

from agents.models import Agent  # isort: skip  # the worker sets Django up
from config.celery import app
from memory.databases import store_alias
from memory.drafts import parse_draft
from memory.llm.embeddings import EMBEDDED_MODEL
from memory.models import MemoryTerms, MemoryVector, Scope
from memory.services import backlog, job_kinds, jobs, maintenance, memories

if prefix := os.environ.get("TEST_KEY_PREFIX"):
    app.conf.broker_transport_options = {"global_keyprefix": prefix}


def fill(agent, users, count):
    """Save `count` memories for each of some users; yield how many there are."""
    agent = Agent.objects.named(agent)
    for user in range(users):
        drafts = [
            parse_draft({"type": "project", "content": f"note{number} 支付模块第 {number} 次上线"})
            for number in range(count)
        ]
        memories.save_batch(agent, f"user {user}", drafts, now=worker.now())
    yield maintenance.count_memories(agent)


def enqueue(kind, keys):
    """Leave a job for each key; yield their ids."""
    yield [jobs.enqueue(kind, key=key, now=worker.now()).pk for key in keys]


def enqueue_reindex(agent):
    """Leave a reindex; yield its id."""
    yield job_kinds.enqueue_reindex(Agent.objects.named(agent), now=worker.now()).pk


def send(job_id, times):
    """Send a job's message some more times."""
    for _ in range(times):
        jobs.send(job_id)
    yield None


def call(name, arguments):
    """Send a task as beat does."""
    app.send_task(name, arguments)
    yield None


def reap_and_wear_out(agent, after_minutes):
    """Reap as if so many minutes had gone by, each time; yield the ids of what was sent again.

    Every index row of the agent is marked as made by an analyzer of old.
    """
    for scope in Scope.objects.for_agent(Agent.objects.named(agent)):
        MemoryTerms.objects.of_scope(scope).update(analyzer_version=0)
    yield [jobs.reap(now=worker.now() + timedelta(minutes=minutes)) for minutes in after_minutes]


def look_over(agent):
    """Yield which users' rows are worn out still, each with its scope, and what is wrong."""
    agent = Agent.objects.named(agent)
    worn = [
        [scope.pk, MemoryTerms.objects.of_scope(scope).filter(analyzer_version=0).count()]
        for scope in Scope.objects.for_agent(agent).order_by("pk")
    ]
    faults = [str(fault) for fault in maintenance.check(agent)]
    yield {"worn": worn, "faults": faults}


def leave_to_embed(agent, users):
    """Let memories of some of an agent's users be all that waits; yield how many."""
    for other in Agent.objects.select_related("memory_config"):
        for number, scope in enumerate(Scope.objects.for_agent(other).order_by("pk")):
            waits = other.name == agent and number < users
            MemoryVector.objects.of_scope(scope).update(
                model="" if waits else EMBEDDED_MODEL,
                dimension=0 if waits else 512,
                vector=b"" if waits else bytes(1024),
                stamp=0,
            )
    rows = backlog.of_store(store_alias(Agent.objects.named(agent)))
    yield rows.pending(EMBEDDED_MODEL).count()


def look_at_vectors(agent):
    """Yield the stamp of each vector made since `leave_to_embed`, and what is wrong."""
    agent = Agent.objects.named(agent)
    stamps = {}
    for scope in Scope.objects.for_agent(agent):
        made = MemoryVector.objects.of_scope(scope).filter(model=EMBEDDED_MODEL, stamp__gt=0)
        stamps |= dict(made.values_list("pk", "stamp"))
    yield {"stamps": stamps, "faults": [str(fault) for fault in maintenance.check(agent)]}


def work(task, arguments):
    """Do a task; print what it yields."""
    for value in globals()[task](**arguments):
        print(json.dumps(value), flush=True)
