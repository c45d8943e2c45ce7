"""Web server and worker as `./run` starts them, to be killed by SIGKILL and started again."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlsplit

import redis

from tests.memory.installation import ROOT

_CLAIM, _CLAIM_SECONDS = "hippo-test", 600


class Server:
    """A program in a session of its own."""

    def __init__(self, name, installed, *arguments):
        # pdeathsig: what kills the tests kills this too
        self._command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", *arguments]
        # libraries need not be free of warnings
        variables = {"PYTHONWARNINGS": "default", "LOG_LEVEL": "INFO", "CELERY_SKIP_CHECKS": "1"}
        self._env = {**installed.env, **variables}
        self._log = installed.data_dir / f"{name}.log"
        self.name, self.kills = name, 0

    def start(self):
        """Start it; returns at once."""
        with self._log.open("a") as log:
            self._popen = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self):
        """Kill it with all its children at once; to end by itself is a fault."""
        status = self._popen.poll()
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        self.kills += 1
        assert status in {None, -signal.SIGKILL}, (
            f"{self.name} ended with {status}: {self.logged()[-3000:]}"
        )

    @property
    def pid(self):
        """Return the number of the process, and of its group."""
        return self._popen.pid

    def logged(self):
        """Return all that it wrote in all its lives."""
        return self._log.read_text()


def web(installed, port):
    """Return the web server, not yet started."""
    return Server(
        "web", installed, "gunicorn", "config.wsgi:application", "-c", "python:config.gunicorn",
        "--bind", f"127.0.0.1:{port}", "--worker-class", "gthread", "--threads", "8",
        "--no-control-socket", "--log-level", "warning",
    )  # fmt: skip


def worker(installed):
    """Return the worker, not yet started."""
    return Server(
        "worker", installed, "celery", "-q", "-A", "config", "worker", "-P", "threads",
        "--concurrency", "4", "--loglevel", "INFO", "--without-gossip", "--without-mingle",
    )  # fmt: skip


@contextmanager
def running(*servers):
    """Run servers; none of them is left at the end."""
    started = []
    try:
        for server in servers:
            server.start()
            started.append(server)
        yield
    finally:
        for server in started:
            with suppress(AssertionError):  # that it has ended by itself was told before
                server.kill()


def free_port():
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@contextmanager
def fresh_redis():
    """The URL of an empty database on the test's Redis, emptied at the end.

    Not the one of TEST_REDIS_URL: other tests use it, and a worker takes what it finds.
    """
    given = urlsplit(os.environ["TEST_REDIS_URL"])
    for number in range(15, 0, -1):
        url = given._replace(path=f"/{number}").geturl()
        with closing(redis.Redis.from_url(url)) as server:
            if given.path == f"/{number}" or server.dbsize():
                continue
            if not server.set(_CLAIM, os.getpid(), nx=True, ex=_CLAIM_SECONDS):
                continue
            try:
                yield url
            finally:
                server.flushdb()
            return
    raise AssertionError("The test's Redis has no empty database; empty one of 1 to 15.")
