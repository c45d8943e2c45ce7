"""Writers and readers of many memories at once, each of which keeps its own books."""

import random
import threading
import time
import traceback
from collections import Counter
from datetime import UTC, datetime

from django.db import connections

from agents.models import Agent
from memory.drafts import parse_draft
from memory.errors import UnknownMemory, VersionConflict
from memory.filters import MemoryFilter
from memory.models import ActorKind
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services import memories
from memory.services.writing import Actor

WORDS = "支付 模块 上线 部署 周五 deploys Fridays rollback release notes 数据库 迁移".split()


def now():
    return datetime.now(UTC)


def run(threads):
    """Start threads and wait for all."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def repeat(work, agents, seconds):
    """Do `work` for one agent after another, with pauses, for a while; return the errors."""
    errors = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for name in agents:
            try:
                work(Agent.objects.named(name))
            except Exception:  # noqa: BLE001
                errors.append(f"{name}: {traceback.format_exc()}")
        time.sleep(0.5)
    return errors


class Client:
    """What writers and readers share: an agent, a clock, counts and a list of errors."""

    def __init__(self, agent, name, steady, deadline):
        self.agent_name, self.name, self.steady, self.deadline = agent, name, steady, deadline
        self.random = random.Random(name)
        self.done = Counter()
        self.touches = Counter()
        self.errors = []

    def run(self):
        """Do one thing after another until time is up."""
        self.agent = Agent.objects.named(self.agent_name)
        names, weights = zip(*self.weights.items(), strict=True)
        while time.monotonic() < self.deadline:
            name = self.random.choices(names, weights)[0]
            try:
                getattr(self, name)()
                self.done[name] += 1
            except Exception:  # noqa: BLE001
                self.errors.append(f"{self.name} {name}: {traceback.format_exc()}")
        connections.close_all()

    def expect(self, is_so, what):
        """Note what is not as it should be."""
        if not is_so:
            self.errors.append(f"{self.name}: {what}")

    def touch_steady(self):
        """Touch several memories that others are changing, in any order."""
        ids = self.random.sample(self.steady, 4)
        touched = memories.touch(self.agent, "ming", ids, now=now())
        self.expect(touched == len(ids), f"touched {touched} of {ids}")
        self.touches.update(ids)


class Writer(Client):
    """Writes memories of its own, in a scope shared with all and one of its own."""

    weights = {
        "save": 30,
        "save_batch": 8,
        "update": 20,
        "reinforce": 5,
        "trash": 8,
        "trash_matching": 2,
        "restore": 6,
        "purge": 5,
        "touch_steady": 8,
        "update_steady": 8,
    }

    def __init__(self, *args):
        super().__init__(*args)
        self.actor = Actor(ActorKind.AGENT, self.name)
        self.books = {}
        self.purged = []
        self.steady_updates = []
        self.serial = 0

    def _draft(self):
        self.serial += 1
        content = f"{self.name}n{self.serial} {' '.join(self.random.choices(WORDS, k=12))}"
        return parse_draft(
            {"type": "project", "content": content, "tags": [f"{self.name}-{self.serial % 4}"]}
        )

    def _user_id(self):
        return self.random.choice(["ming", f"user of {self.name}"])

    def _enter(self, user_id, draft, memory):
        self.books[memory.pk] = {
            "user_id": user_id,
            "content": draft.content,
            "tag": draft.tags[0],
            "status": "active",
            "version": memory.version,
        }

    def _pick(self, status):
        ids = [memory_id for memory_id, row in self.books.items() if row["status"] == status]
        memory_id = self.random.choice(ids) if ids else None
        return memory_id, self.books.get(memory_id)

    def _by(self):
        return {"actor": self.actor, "now": now()}

    def save(self):
        user_id, draft = self._user_id(), self._draft()
        memory = memories.save(self.agent, user_id, draft, now=now())
        self._enter(user_id, draft, memory)
        if self.serial % 5 == 0:  # what was saved is found at once
            self.expect(self._finds(user_id, memory.pk, draft.content), f"{memory.pk} not found")

    def save_batch(self):
        user_id, drafts = self._user_id(), [self._draft() for _ in range(3)]
        saved = memories.save_batch(self.agent, user_id, drafts, now=now())
        for draft, memory in zip(drafts, saved, strict=True):
            self._enter(user_id, draft, memory)

    def update(self):
        memory_id, row = self._pick("active")
        if memory_id:
            content = self._draft().content
            memory = memories.update(
                self.agent, row["user_id"], memory_id, {"content": content}, **self._by()
            )
            row["version"] += 1
            row["content"] = content
            self.expect(memory.version == row["version"], f"{memory_id} v{memory.version} {row}")

    def reinforce(self):
        memory_id, row = self._pick("active")
        if memory_id:
            memory = memories.reinforce(self.agent, row["user_id"], memory_id, 0.01, **self._by())
            self.expect(memory.version - row["version"] in {0, 1}, f"{memory_id} {row}")
            row["version"] = memory.version

    def trash(self):
        memory_id, row = self._pick("active")
        if memory_id:
            memories.trash(self.agent, row["user_id"], memory_id, **self._by())
            row["version"] += 1
            row["status"] = "trashed"
            if memory_id % 4 == 0:
                found = self._finds(row["user_id"], memory_id, row["content"])
                self.expect(not found, f"{memory_id} found in the trash")

    def trash_matching(self):
        user_id, tag = self._user_id(), f"{self.name}-{self.random.randrange(4)}"
        meant = [
            row
            for row in self.books.values()
            if (row["user_id"], row["tag"], row["status"]) == (user_id, tag, "active")
        ]
        trashed = memories.trash_matching(
            self.agent, user_id, MemoryFilter(tags=(tag,)), **self._by()
        )
        self.expect(trashed == len(meant), f"trashed {trashed} of {len(meant)} tagged {tag}")
        for row in meant:
            row["version"] += 1
            row["status"] = "trashed"

    def restore(self):
        memory_id, row = self._pick("trashed")
        if memory_id:
            memories.restore(self.agent, row["user_id"], memory_id, **self._by())
            row["version"] += 1
            row["status"] = "active"

    def purge(self):
        memory_id, row = self._pick(self.random.choice(["active", "trashed"]))
        if memory_id:
            memories.purge(self.agent, row["user_id"], memory_id)
            del self.books[memory_id]
            self.purged.append(memory_id)

    def update_steady(self):
        """Change what others are changing; only one of those that read a version may."""
        memory_id = self.random.choice(self.steady)
        version = memories.get(self.agent, "ming", memory_id).version
        content = f"steady{memory_id} by {self.name} 支付模块"
        try:
            memory = memories.update(
                self.agent,
                "ming",
                memory_id,
                {"content": f"{content} v{version + 1}"},
                expected_version=version,
                **self._by(),
            )
        except VersionConflict:
            self.done["conflict"] += 1
        else:
            self.expect(memory.version == version + 1, f"{memory_id}: {version} → {memory.version}")
            self.steady_updates.append([memory_id, memory.version, memory.content])

    def _finds(self, user_id, memory_id, content):
        request = SearchRequest(content.split()[0])
        hits = search(self.agent, user_id, request, now=now()).hits
        return memory_id in {hit.memory.pk for hit in hits}


class Reader(Client):
    """Reads what writers are changing and checks that no answer is half of something."""

    weights = {"search": 10, "list": 4, "walk": 1, "get": 10, "history": 5, "touch_steady": 5}

    def _check(self, found):
        ids = [memory.pk for memory in found]
        self.expect(len(ids) == len(set(ids)), f"doubled: {ids}")
        for memory in found:
            self.expect(memory.status == "active", f"{memory.pk} is {memory.status}")
            self.expect(memory.content, f"{memory.pk} is empty")

    def search(self):
        request = SearchRequest(self.random.choice(WORDS))
        hits = search(self.agent, "ming", request, now=now()).hits
        self._check([hit.memory for hit in hits])
        self.expect(all(0 <= hit.score <= 1 for hit in hits), "a score out of range")
        if hits and self.random.random() < 0.5:  # as a recall does
            ids = [hit.memory.pk for hit in hits]
            memories.touch(self.agent, "ming", ids, now=now())
            self.touches.update(ids)

    def list(self):
        self._check(memories.list_page(self.agent, "ming", limit=50).memories)

    def walk(self):
        """Walk all pages: what was there all the while is met once."""
        met, cursor = [], ""
        while True:
            page = memories.list_page(self.agent, "ming", cursor=cursor, limit=200)
            met.extend(memory.pk for memory in page.memories)
            cursor = page.next
            if not cursor:
                break
        self.expect(len(met) == len(set(met)), "a walk met a memory twice")
        self.expect(set(self.steady) <= set(met), "a walk missed a memory")

    def get(self):
        memory_id = self.random.choice(self.steady)
        memory = memories.get(self.agent, "ming", memory_id)
        self.expect(memory.content.startswith("steady"), memory.content)
        others = f"user of {self.name}"
        try:
            memories.get(self.agent, others, memory_id)
        except UnknownMemory:
            return
        self.expect(False, f"{others} read ming's {memory_id}")

    def history(self):
        memory_id = self.random.choice(self.steady)
        versions = [each.version for each in memories.history(self.agent, "ming", memory_id)]
        self.expect(versions == list(range(len(versions), 0, -1)), f"history {versions}")


def mixed(agents, process, writers, readers, seconds, steady):
    """Run writers and readers of every agent; return their books by agent."""
    deadline = time.monotonic() + seconds
    books = {}
    threads = []
    for agent in agents:
        args = steady[agent], deadline
        clients = [Writer(agent, f"w{process}x{n}", *args) for n in range(writers)]
        clients += [Reader(agent, f"r{process}x{n}", *args) for n in range(readers)]
        books[agent] = clients
        threads += [threading.Thread(target=client.run) for client in clients]
    run(threads)
    return {agent: _summary(clients) for agent, clients in books.items()}


def _summary(clients):
    writers = [client for client in clients if isinstance(client, Writer)]
    touches = sum((client.touches for client in clients), Counter())
    return {
        "books": {memory_id: row for w in writers for memory_id, row in w.books.items()},
        "purged": [memory_id for w in writers for memory_id in w.purged],
        "steady_updates": [update for w in writers for update in w.steady_updates],
        "touches": touches,
        "done": sum((client.done for client in clients), Counter()),
        "errors": [error for client in clients for error in client.errors],
    }
