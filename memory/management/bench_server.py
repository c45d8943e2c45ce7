"""A throw-away installation behind gunicorn, and clients that call it over loopback."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db import connections

from agents.models import Backend
from memory.databases import mysql_alias
from memory.management import bench

THREADS = 16
AGENT = "bench"
_USER = "ming"
_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Server:
    """Where it listens, and the key of its agent."""

    port: int
    key: str


@dataclass(slots=True)
class Load:
    """What came of many clients at once: answers, seconds they took, and errors."""

    milliseconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Client:
    """One keep-alive connection."""

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self._headers = {
            "Authorization": f"Bearer {server.key}",
            "Content-Type": "application/json",
        }

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the parsed answer. Raises RuntimeError for any status but 2xx."""
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, self._headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:300]!r}")
        return json.loads(data) if data else None

    def agent(self, method: str, path: str, body: Any = None) -> Any:
        """Call an address of the agent's; a body gets the user_id."""
        if body is not None:
            body = {"user_id": _USER, **body}
        return self.call(method, f"/api/v1/agents/{AGENT}/{path}", body)

    def bare(self) -> Any:
        """Call the view that does the least."""
        return self.call("GET", "/api/bare/")

    def recall(self, query: str) -> Any:
        """Search for ten memories."""
        return self.agent("POST", "search/", {"query": query, "min_score": 0})

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextmanager
def installed(backend: str) -> Iterator[dict[str, str]]:
    """Yield the environment of an installation of its own."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hippo-bench-"))
        environment = {
            **os.environ,
            "DATA_DIR": folder,
            "API_RATE_PER_MINUTE": "0",
            "LOG_LEVEL": "ERROR",
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        # a server that has no static files warns of it, which is no concern here
        for name in ("DATABASE_URL", "MYSQL_URL", "PYTHONWARNINGS"):
            environment.pop(name, None)
        if backend == Backend.MYSQL:
            stack.enter_context(bench.throw_away_store(backend))
            environment["MYSQL_URL"] = _mysql_url()
        manage(environment, "migrate_stores")
        yield environment


@contextmanager
def served(environment: dict[str, str], application: str, *, threads: int) -> Iterator[int]:
    """Yield the port of one worker process that serves the application."""
    port = _free_port()
    command = [
        sys.executable, "-m", "gunicorn", f"memory.management.{application}",
        "--bind", f"127.0.0.1:{port}", "--worker-class", "gthread", "--workers", "1",
        "--threads", str(threads), "--keep-alive", str(_PATIENCE_SECONDS),
        "--no-control-socket", "--log-level", "warning",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment)  # noqa: S603
    try:
        _await(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def manage(environment: dict[str, str], *arguments: str) -> list[str]:
    """Run a management command there; return the lines that it printed."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.splitlines()


def create_agent(environment: dict[str, str], backend: str) -> str:
    """Create the agent `AGENT` there; return its key."""
    return manage(environment, "create_agent", AGENT, "--backend", backend, "--language", "en")[-1]


@contextmanager
def running(backend: str, corpus: bench.Corpus) -> Iterator[Server]:
    """Run an installation of its own with one scope of `bench.SCOPE_SIZE` memories."""
    with installed(backend) as environment:
        key = create_agent(environment, backend)
        with served(environment, "bench_wsgi:application", threads=THREADS) as port:
            server = Server(port, key)
            _fill(server, corpus)
            yield server


def press(server: Server, queries: Sequence[str], seconds: float) -> Load:
    """Let `THREADS` clients call for a while: of ten calls one saves, one lists, one prefetches."""
    until = time.monotonic() + seconds
    load = Load()

    def work(number: int) -> None:
        client = Client(server)
        for serial, query in enumerate(cycle(queries)):
            if time.monotonic() > until:
                break
            started = time.perf_counter()
            try:
                _one_of_ten(client, f"{number}-{serial}", (number + serial) % 10, query)
            except (RuntimeError, OSError, http.client.HTTPException) as error:
                load.errors.append(f"{type(error).__name__}: {error}")
                client = Client(server)
            load.milliseconds.append((time.perf_counter() - started) * 1000)
        client.close()

    threads = [threading.Thread(target=work, args=[number]) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return load


def _one_of_ten(client: Client, name: str, turn: int, query: str) -> None:
    if turn == 0:
        memory = {"type": "project", "name": f"note {name}", "content": f"{query} ({name})"}
        client.agent("POST", "memories/", memory)
    elif turn == 1:
        client.agent("GET", f"memories/?user_id={quote(_USER)}&limit=20")
    elif turn == 2:
        client.agent("POST", "prefetch/", {"message": query})
    else:
        client.recall(query)


def _fill(server: Server, corpus: bench.Corpus) -> None:
    client = Client(server)
    texts = [memory for memory, _ in corpus.texts[: bench.SCOPE_SIZE]]
    for start in range(0, len(texts), 200):
        memories = [
            {"type": memory.type, "name": memory.name, "content": memory.content}
            for memory in texts[start : start + 200]
        ]
        client.agent("POST", "memories/batch/", {"memories": memories})
    client.close()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return once the server answers. Raises RuntimeError where it has ended."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_SECONDS)
        try:
            connection.request("GET", "/healthz")
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            if process.poll() is not None:
                raise RuntimeError("The server has ended; what it said stands above.") from None
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return
        finally:
            connection.close()


def _mysql_url() -> str:
    """Return the address of the throw-away database."""
    own = connections[mysql_alias()].settings_dict
    account = f"{quote(own['USER'])}:{quote(own['PASSWORD'])}"
    return f"mysql://{account}@{own['HOST']}:{own['PORT'] or 3306}/{own['NAME']}"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
