"""An installation of its own, run in real processes: the parent's side of worker.py."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import MySQLdb

from tests.memory.nursery import Forked

ROOT = Path(__file__).resolve().parents[2]
MYSQL = urlsplit(os.environ["TEST_MYSQL_URL"])


@contextmanager
def mysql_cursor():
    """A cursor on the test server, in no database."""
    connection = MySQLdb.connect(
        host=MYSQL.hostname, port=MYSQL.port or 3306, user=MYSQL.username, passwd=MYSQL.password
    )
    try:
        connection.autocommit(True)
        yield connection.cursor()
    finally:
        connection.close()


@contextmanager
def fresh_mysql():
    """The URL of a new, empty database, dropped at the end."""
    name = f"{MYSQL.path.strip('/')}_{secrets.token_hex(4)}"
    with mysql_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    try:
        yield MYSQL._replace(path=f"/{name}").geturl()
    finally:
        with mysql_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")


def lasting_paths(folder):
    """Return what is below a folder, without what SQLite keeps beside a database in use.

    Whoever closes a database last takes that away, unless it was killed or has a thread at work.
    """
    paths = {*folder.rglob("*")}
    return paths - {path.with_name(path.name + end) for path in paths for end in ("-shm", "-wal")}


class Process:
    """A running worker that prints one JSON value a line; its errors end the test."""

    def __init__(self, command, env):
        """Start it by a command, or fork it at (module, task, arguments)."""
        self._errors = tempfile.NamedTemporaryFile()  # noqa: SIM115
        if isinstance(command, tuple):
            self._popen = Forked(*command, env, self._errors.name)
            return
        self._popen = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.kill()
        self._popen.stdin.close()
        self._popen.stdout.close()
        self._errors.close()

    def read(self):
        """Return the next value that it prints."""
        line = self._popen.stdout.readline()
        assert line, self.errors()
        return json.loads(line)

    def go(self):
        """Let it go on from where it waits."""
        self._popen.stdin.write("\n")
        self._popen.stdin.flush()

    def kill(self):
        """Kill it by SIGKILL; return the whole values it printed that were not read yet."""
        self._popen.kill()
        self._popen.wait()
        lines = self._popen.stdout.read().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def rest(self):
        """Let it finish well; return the values not read yet."""
        values = [json.loads(line) for line in self._popen.stdout]
        assert self._popen.wait() == 0, self.errors()
        return values

    def errors(self):
        """Return what it wrote to stderr, once it has ended."""
        self._popen.wait()
        self._errors.seek(0)
        return self._errors.read().decode()


class Installation:
    """Hippo over a DATA_DIR and a MySQL database of its own, with the product's settings."""

    def __init__(self, data_dir, **variables):
        self.data_dir = data_dir
        self.memory_dir = data_dir / "memory"
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.env = {
            # a second to load the model in every process; what is about meaning asks for it
            "EMBEDDINGS": "none",
            **kept,
            "DATA_DIR": str(data_dir),
            "PYTHONWARNINGS": "error",
            "LOG_LEVEL": "WARNING",
            **variables,
        }

    def start(self, task, **arguments):
        """Start a worker on a task; used as a context manager."""
        if "PYTHONPATH" in self.env:  # what it does to imports, a fork would not see
            command = [sys.executable, "-m", "tests.memory.worker", task, json.dumps(arguments)]
            return Process(command, self.env)
        return Process(("tests.memory.worker", task, arguments), self.env)

    def run(self, task, **arguments):
        """Run a task to its end and return the last value that it printed."""
        with self.start(task, **arguments) as process:
            return process.rest()[-1]

    def python(self, code):
        """Start Python on `code`, with no settings loaded yet; used as a context manager."""
        return Process([sys.executable, "-c", code], self.env)

    def manage(self, *arguments):
        """Run a management command; return its exit status and all that it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout


@contextmanager
def crew(processes):
    """Yield started processes once all have said ready; kill at the end what still runs."""
    started = []
    try:
        started.extend(processes)
        for process in started:
            assert process.read() == "ready"
        yield started
    finally:
        for process in started:
            process.__exit__()
