"""A process with the product's own settings: `python -m tests.memory.worker TASK JSON`.

A task is a generator; what it yields is printed at once, one JSON value a line. After
"ready" a task waits for a line on stdin. A task that hangs ends itself with a traceback.
"""

import faulthandler
import json
import os
import random
import signal
import sys
import threading
import time
import warnings
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import count, cycle

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connections, transaction  # noqa: E402

from agents.models import Agent, MemoryConfig  # noqa: E402
from memory import databases  # noqa: E402
from memory.drafts import parse_draft  # noqa: E402
from memory.errors import HippoError, StoreNotOpen  # noqa: E402
from memory.models import ActorKind, Job, Memory, MemoryTerms, Scope, Store  # noqa: E402
from memory.retrieval.lexical import SearchRequest  # noqa: E402
from memory.retrieval.search import search  # noqa: E402
from memory.services import job_kinds, jobs, maintenance, memories  # noqa: E402
from memory.services.moves import moving  # noqa: E402
from memory.services.writing import Actor  # noqa: E402
from tests.memory import traffic  # noqa: E402

MING = Actor(ActorKind.USER, "ming")


def now():
    return datetime.now(UTC)


def pause():
    """Wait until the test lets this process go on."""
    sys.stdin.readline()


def draft(content, **fields):
    return parse_draft({"type": "project", "content": content, **fields})


def names_found(agent, user_id, query):
    hits = search(agent, user_id, SearchRequest(query), now=now()).hits
    return [hit.memory.name for hit in hits]


# --- setting up ------------------------------------------------------------------------


def prepare(agents, with_mysql=True):
    """Migrate `default` and MySQL; create agents: {name: [backend, sqlite_path]}."""
    call_command("migrate", verbosity=0)
    if with_mysql:
        databases.migrate_store(databases.mysql_alias())
    yield from create_agents(agents)


def create_agents(agents):
    """Create agents, whatever their path is, past the validators of the form."""
    for name, (backend, path) in agents.items():
        agent = Agent.objects.create_agent(name, backend=backend)
        if path:
            MemoryConfig.objects.filter(agent=agent).update(sqlite_path=path)
    yield list(agents)


def migrate_at_once(alias):
    """Migrate a store together with others."""
    yield "ready"
    pause()
    databases.migrate_store(alias)
    yield sorted(connections[alias].introspection.table_names())


# --- one life --------------------------------------------------------------------------


def live(agent, user_id="ming"):
    """Save, find, trash and restore one memory; yield what was found after each."""
    agent = Agent.objects.named(agent)
    memory = memories.save(agent, user_id, draft("支付模块周五上线"), now=now())
    saved = names_found(agent, user_id, "支付")
    memories.trash(agent, user_id, memory.pk, actor=MING, now=now())
    trashed = names_found(agent, user_id, "支付")
    memories.restore(agent, user_id, memory.pk, actor=MING, now=now())
    restored = names_found(agent, user_id, "支付")
    yield {
        "alias": memory._state.db,
        "file": str(connections[memory._state.db].settings_dict["NAME"]),
        "saved": saved,
        "trashed": trashed,
        "restored": restored,
    }


def try_agents(agents):
    """Save once as each agent; yield {name: None, or the error that refused it}."""
    outcome = {}
    for name in agents:
        try:
            memories.save(Agent.objects.named(name), "ming", draft("Ming deploys"), now=now())
            outcome[name] = None
        except Exception as error:  # noqa: BLE001
            outcome[name] = [type(error).__name__, str(error)]
    yield outcome


def obstacle():
    """Yield why MySQL cannot be used here."""
    yield databases.mysql_obstacle()


# --- at once ---------------------------------------------------------------------------


def first_saves(agents, threads):
    """For each agent, once let go: save as a new user in some threads at once; yield errors."""
    for name in agents:
        errors = []

        def save(number, name=name, errors=errors):
            try:
                agent = Agent.objects.named(name)
                content = f"Note {number} of process {os.getpid()}"
                memories.save(agent, "ming", draft(content), now=now())
            except Exception as error:  # noqa: BLE001
                errors.append(f"{type(error).__name__}: {error}")
            finally:
                connections.close_all()

        yield "ready"
        pause()
        traffic.run([threading.Thread(target=save, args=[number]) for number in range(threads)])
        yield errors


def mixed(agents, process, writers, readers, seconds, steady):
    """Write and read as all agents at once for a while; yield what came of it, by agent."""
    yield "ready"
    pause()
    yield traffic.mixed(agents, process, writers, readers, seconds, steady)


def reindex(agents, seconds):
    """Reindex again and again; yield what went wrong."""
    yield "ready"
    pause()
    yield traffic.repeat(maintenance.reindex, agents, seconds)


def optimize(agents, seconds):
    """Optimise again and again; yield what went wrong."""
    yield "ready"
    pause()
    yield traffic.repeat(
        lambda agent: maintenance.optimize(databases.store_alias(agent)), agents, seconds
    )


def lay_steady(agent, count):
    """Save memories that the traffic changes but never deletes; yield their ids."""
    drafts = [draft(f"steady{number} 支付模块的第 {number} 条笔记") for number in range(count)]
    saved = memories.save_batch(Agent.objects.named(agent), "ming", drafts, now=now())
    yield [memory.pk for memory in saved]


def hammer(agent, process):
    """Save without end until the store is frozen and the test says stop; yield the saves."""
    agent = Agent.objects.named(agent)
    stopped = threading.Event()
    saved, refused, errors = [], [], []

    def write(number):
        for serial in count():
            if stopped.is_set():
                break
            # now and then a user who never was here
            user_id = f"new-{process}-{number}-{serial}" if serial % 4 == 0 else "ming"
            content = f"Note {serial} of writer {process}-{number}"
            try:
                made = memories.save(agent, user_id, draft(content), now=now())
                saved.append([made.pk, user_id, content])
            except StoreNotOpen:
                refused.append(serial)
            except Exception as error:  # noqa: BLE001
                errors.append(f"{type(error).__name__}: {error}")
        connections.close_all()

    yield "ready"
    pause()
    threads = [threading.Thread(target=write, args=[number]) for number in range(2)]
    for thread in threads:
        thread.start()
    pause()
    stopped.set()
    for thread in threads:
        thread.join()
    yield {"saved": saved, "refused": len(refused), "errors": errors}


def freeze(agent, state="frozen", settle_seconds=0.0):
    """Set the state of an agent's store once let go; yield its ids then and a while later."""
    agent = Agent.objects.named(agent)
    alias = databases.store_alias(agent)
    yield "ready"
    pause()
    with transaction.atomic(using=alias):
        Store.objects.using(alias).update_or_create(agent_id=agent.pk, defaults={"state": state})
        Scope.objects.for_agent(agent).update(state=state)
    ids = [sorted(Memory.objects.for_agent(agent).values_list("id", flat=True))]
    time.sleep(settle_seconds)
    ids.append(sorted(Memory.objects.for_agent(agent).values_list("id", flat=True)))
    yield ids


def move(agent, backend, sqlite_path="", die_at=None):
    """Move an agent's memories once let go; yield what became of the job.

    `die_at` kills the process at that statement on `default`.
    """
    agent = Agent.objects.named(agent)
    yield "ready"
    pause()
    moving.enqueue(agent, backend=backend, sqlite_path=sqlite_path, now=now())
    with dying({"default"}, at=die_at):
        yield go_on_moving(agent)


def go_on_moving(agent):
    """Do the agent's move, whatever run had it last; return what became of the job."""
    job = Job.objects.filter(key=f"move {agent.pk}").latest("pk")
    jobs.reap(now=now() + 2 * jobs.SILENCE)
    with suppress(HippoError):
        job_kinds.perform(job.pk)
    job.refresh_from_db()
    return {"state": job.state, "error": job.error, "result": job.result}


def silence(agent):
    """Let the agent's move look as if its run had been dead for a while."""
    silent = now() - 2 * jobs.SILENCE
    key = f"move {Agent.objects.named(agent).pk}"
    yield Job.objects.filter(key=key).update(heartbeat_at=silent)


# --- until killed ----------------------------------------------------------------------


def save_one_by_one(agent, user_id, count):
    """Save memories; yield the id and content of each after the call returned."""
    agent = Agent.objects.named(agent)
    yield "ready"
    for number in range(count):
        content = f"note{number} of {user_id}: 支付模块第 {number} 次上线。" + "稳定 steady " * 20
        yield [memories.save(agent, user_id, draft(content), now=now()).pk, content]


def save_batches(agent, user_id, count, size):
    """Save batches; yield the ids of each after the call returned."""
    agent = Agent.objects.named(agent)
    yield "ready"
    for number in range(count):
        drafts = [
            draft(f"b{number}p{part} of {user_id}: 支付模块", tags=[f"batch-{number}"])
            for part in range(size)
        ]
        yield [memory.pk for memory in memories.save_batch(agent, user_id, drafts, now=now())]


def update_again(agent, user_id, count):
    """Change one memory again and again, now and then by way of the trash; yield versions."""
    agent = Agent.objects.named(agent)
    yield "ready"
    memory = memories.save(agent, user_id, draft("text1 of the note"), now=now())
    yield memory.pk
    while memory.version < count:
        done = {"actor": MING, "now": now()}
        if memory.version % 5 == 0:
            memory = memories.trash(agent, user_id, memory.pk, **done)
            memory = memories.restore(agent, user_id, memory.pk, **done)
        changes = {"content": f"text{memory.version + 1} of the note"}
        memory = memories.update(agent, user_id, memory.pk, changes, **done)
        yield memory.version


def killed_moves(agent, places, kills, seed):
    """Move an agent from place to place; kill each move at some statement and go on with it.

    Yields for each what the agent's present store held when it was dead, and afterwards.
    """
    agent = Agent.objects.named(agent)
    draw = random.Random(seed)
    aliases = {"default", *(databases.Place(*place).alias() for place in places)}
    for alias in aliases:
        databases.migrate_store(alias)
    turns = cycle(places)
    backend, path = next(turns)
    moving.enqueue(agent, backend=backend, sqlite_path=path, now=now())
    with dying(aliases, at=None) as statements:
        yield go_on_moving(agent)
    total = statements[0]
    for number in range(kills):
        backend, path = next(turns)
        moving.enqueue(agent, backend=backend, sqlite_path=path, now=now())
        # half of them where it is decided
        at = draw.randint(1, total) if number % 2 else draw.randint(total * 2 // 3, total)
        connections.close_all()
        with warnings.catch_warnings():
            # the thread that would print a traceback after a hang does not matter to a fork
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            with dying(aliases, at=at):
                go_on_moving(agent)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        dead = held(agent)
        yield {
            "at": f"{at} of {total}",
            "was_killed": os.WIFSIGNALED(status),
            "dead": dead,
            "job": go_on_moving(agent),
            "after": held(agent),
        }


@contextmanager
def dying(aliases, at):
    """Count statements on `aliases`, in a list of one number; die by SIGKILL at the one `at`."""
    statements = [0]

    def count_statement(execute, *args):
        statements[0] += 1
        if statements[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(*args)

    with ExitStack() as stack:
        for alias in aliases:
            stack.enter_context(connections[alias].execute_wrapper(count_statement))
        yield statements


def held(agent):
    """Return what the store that an agent uses now holds, and what is wrong with it."""
    agent = Agent.objects.named(agent.name)
    alias = databases.store_alias(agent)
    stores = Store.objects.using(alias).filter(agent_id=agent.pk)
    return {
        "alias": alias,
        "state": stores.get().state,
        "memories": [
            [memory.pk, memory.scope.user_id, memory.content, memory.version,
             memory.revisions.count()]
            for memory in memories.walk(agent)
        ],
        "faults": [str(fault) for fault in maintenance.check(agent)],
    }  # fmt: skip


def open_store(agent):
    """Make an agent's store; yield as soon as it is about to be made, and when it is."""
    agent = Agent.objects.named(agent)
    yield "ready"
    databases.store_alias(agent)
    yield "open"


# --- afterwards ------------------------------------------------------------------------


def inspect(agent, tokens=True):
    """Yield an agent's rows as they are, and what is wrong with its index.

    Of each memory's content the first word is a token that it alone has; `found` says
    whether searching for it gives the memory.
    """
    agent = Agent.objects.named(agent)
    alias = databases.store_alias(agent)
    indexed = dict(MemoryTerms.objects.using(alias).values_list("memory_id", "content_terms"))
    rows = []
    for memory in memories.walk(agent):
        row = {
            "id": memory.pk,
            "user_id": memory.scope.user_id,
            "content": memory.content,
            "tags": memory.tags,
            "status": memory.status,
            "version": memory.version,
            "access_count": memory.access_count,
            "content_terms": indexed.get(memory.pk),
            "revisions": sorted(
                [revision.version, revision.state["content"], revision.state["status"]]
                for revision in memory.revisions.all()
            ),
        }
        if tokens:
            request = SearchRequest(memory.content.split()[0])
            hits = search(agent, memory.scope.user_id, request, now=now()).hits
            row["found"] = memory.pk in {hit.memory.pk for hit in hits}
        rows.append(row)
    scopes = Scope.objects.for_agent(agent).values("user_id", "memory_count", "content_terms")
    yield {
        "memories": rows,
        "scopes": list(scopes),
        "faults": [str(fault) for fault in maintenance.check(agent)],
    }


def confine(agent, paths):
    """Try each path as an agent's file; yield {path: [error's name, its words], or None}."""
    outcome = {}
    for path in paths:
        MemoryConfig.objects.filter(agent__name=agent).update(sqlite_path=path)
        try:
            memories.save(Agent.objects.named(agent), "ming", draft("Ming deploys"), now=now())
            outcome[path] = None
        except Exception as error:  # noqa: BLE001
            outcome[path] = [type(error).__name__, str(error)]
    yield outcome


def work(task, arguments):
    """Do a task; print what it yields."""
    faulthandler.dump_traceback_later(240, exit=True)
    for value in globals()[task](**arguments):
        print(json.dumps(value), flush=True)


if __name__ == "__main__":
    task, arguments = sys.argv[1:]
    work(task, json.loads(arguments))
