"""The parts of bench_pages: two people with few and many memories, and what they look at."""

from __future__ import annotations

import html
import http.client
import json
import random
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth import get_user_model, login
from django.http import HttpRequest
from django.utils import timezone

from agents.models import Agent, Identity
from memory.databases import store_alias
from memory.management import bench, bench_server
from memory.models import MemoryType, Scope, Status

NEEDLES = 150
NEEDLE = "kumquat"
"""Occurs in as many memories of either person; no other word begins with its first two letters."""
PEOPLE = ("small", "big")
_CHUNK = 2_000
_DEEP = 50
_MORE = re.compile(r'hx-get="([^"]*cursor=[^"]*)"')

LISTS = {
    "list": "",
    "filter: type": "?type=project",
    "filter: importance": "?importance=0.8",
    "filter: source, 2 %": "?source=web",
    "filter: tag, 0.1 %": "?tag=rare",
    "order: oldest": "?sort=oldest",
    "order: changed": "?sort=changed",
    "order: important": "?sort=important",
    "order: recalled": "?sort=recalled",
}
"""What the list is narrowed to, and its orders."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request: how long it took, the queries it made, the rows it shows."""

    milliseconds: float
    queries: int
    rows: int
    more: str
    """The address of the following page, or ''."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The sessions of the people, and words to type by kind."""

    sessions: dict[str, str]
    words: dict[str, list[str]]


@dataclass(slots=True)
class Times:
    """The answers to one request, made many times."""

    answers: list[Answer] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Return the median in milliseconds."""
        return statistics.median(answer.milliseconds for answer in self.answers)

    @property
    def p95(self) -> float:
        """Return what 95 of a hundred stay below, in milliseconds."""
        return statistics.quantiles([each.milliseconds for each in self.answers], n=20)[-1]

    @property
    def queries(self) -> int:
        """Return the most queries that one of them made."""
        return max(answer.queries for answer in self.answers)

    @property
    def rows(self) -> int:
        """Return the most rows that one of them shows."""
        return max(answer.rows for answer in self.answers)


class Visitor:
    """Somebody who is logged in, on one keep-alive connection."""

    def __init__(self, port: int, session: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {
            "Cookie": f"{settings.SESSION_COOKIE_NAME}={session}",
            "Accept-Language": "en",
        }

    def get(self, path: str, *, target: str = "") -> Answer:
        """Ask for a page, or for the fragment that htmx puts into `target`.

        Raises RuntimeError for any status but 200.
        """
        fragment = {"HX-Request": "true", "HX-Target": target} if target else {}
        started = time.perf_counter()
        self._connection.request("GET", path, headers={**self._headers, **fragment})
        response = self._connection.getresponse()
        body = response.read()
        elapsed = (time.perf_counter() - started) * 1000
        if response.status != 200:
            raise RuntimeError(f"GET {path}: {response.status} {body[:300]!r}")
        text = body.decode()
        more = _MORE.search(text)
        return Answer(
            elapsed,
            int(response.headers["X-Queries"]),
            text.count('id="row-'),
            html.unescape(more[1]) if more else "",
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def deep_page(self) -> str:
        """Return the address of the 50th page of the list, or of the last full one."""
        path, page = "", self.get("/memories/", target="list")
        full = page.rows
        for _ in range(_DEEP - 1):
            following = self.get(page.more, target="next") if page.more else page
            if not page.more or following.rows < full:
                break
            path, page = page.more, following
        return path


def typed(word: str) -> list[str]:
    """Return what stands in the search field while a word is typed."""
    return [word[:length] for length in range(1, len(word) + 1)]


def search_path(query: str) -> str:
    """Return the address that a keystroke asks for."""
    return f"/memories/?q={quote(query)}"


def compare(
    visitors: Sequence[Visitor], paths: Sequence[str], *, target: str, rounds: int
) -> list[Times]:
    """Ask for each visitor's path in turn, after a round that is not counted."""
    times = [Times() for _ in visitors]
    for number in range(rounds + 1):
        for visitor, path, own in zip(visitors, paths, times, strict=True):
            answer = visitor.get(path, target=target)
            if number:
                own.answers.append(answer)
    return times


def prepare(environment: dict[str, str], backend: str, sizes: Sequence[int]) -> Filled:
    """Fill an installation, with the agent and the two people."""
    bench_server.create_agent(environment, backend)
    code = f"from memory.management import bench_pages; bench_pages.fill({list(sizes)})"
    return Filled(**json.loads(bench_server.manage(environment, "shell", "-c", code)[-1]))


def fill(sizes: Sequence[int]) -> None:
    """Fill this installation and print what `prepare` returns; for a process of its own."""
    now = timezone.now()
    corpus = bench.make_corpus(now)
    agent = Agent.objects.named(bench_server.AGENT)
    needles = [
        bench.make_text(f"{text.content} {NEEDLE}", now=now) for text, _ in corpus.texts[:NEEDLES]
    ]
    alias = store_alias(agent)
    sessions = {}
    with bench.bulk_load(alias):
        for name, size in zip(PEOPLE, sizes, strict=True):
            scope = Scope.objects.using(alias).create(agent_id=agent.pk, user_id=name)
            for rows in _memories(scope, size, corpus, needles, now=now):
                bench.keep(scope, rows)
            sessions[name] = log_in(name)
    rare, common = corpus.queries["rare word"], corpus.queries["common word"]
    words = {
        "common English": common[1:5],
        "common Chinese": common[12:16],
        "rare English": rare[:4],
        "rare Chinese": rare[10:14],
    }
    print(json.dumps({"sessions": sessions, "words": words}))  # noqa: T201


def _memories(
    scope: Scope, size: int, corpus: bench.Corpus, needles: list[bench.Text], *, now: datetime
) -> Iterator[list[bench.Text]]:
    """Yield a scope's memories in chunks, newest first, the needles evenly among them."""
    draw = random.Random(11)  # noqa: S311
    apart = size // NEEDLES
    for start in range(0, size, _CHUNK):
        numbers = range(start, min(start + _CHUNK, size))
        is_needle = [n % apart == 0 and n // apart < NEEDLES for n in numbers]
        texts = [
            needles[number // apart] if is_one else draw.choice(corpus.texts)
            for number, is_one in zip(numbers, is_needle, strict=True)
        ]
        rows = bench.copies(scope, texts, now=now, age_minutes=start)
        for number, is_one, (memory, _) in zip(numbers, is_needle, rows, strict=True):
            memory.type = draw.choice(MemoryType.values)
            memory.importance = draw.random()
            memory.access_count = int(draw.expovariate(0.2))
            memory.source = "web" if draw.random() < 0.02 else "agent"
            memory.tags = ["rare"] if number % 1_000 == 500 else []
            memory.updated_at = memory.created_at + timedelta(minutes=draw.randrange(10_000))
            if not is_one and draw.random() < 0.02:
                memory.status = Status.TRASHED
        yield rows


def log_in(name: str) -> str:
    """Create an account that owns the memories of the user of its name; return its session."""
    account = get_user_model().objects.create_user(name)
    Identity.objects.create(account=account, user_id=name)
    return session_of(account)


def session_of(account: Any) -> str:
    """Return the key of a new session of an account."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore()
    login(request, account, backend=settings.AUTHENTICATION_BACKENDS[0])
    request.session.save()
    return str(request.session.session_key)
