"""The parent's side of backup_worker.py: installations that are backed up and restored."""

import json
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

from tests.memory.installation import Installation, Process, fresh_mysql

AGENTS = {"ada": ["sqlite", ""], "grace": ["mysql", ""], "bob": ["sqlite", "bob.db"]}
LAYOUTS = {
    "sqlite": ["MYSQL_URL"],
    "mysql": ["DATABASE_URL"],
    "both": ["DATABASE_URL", "MYSQL_URL"],
}


class Worker(Process):
    """A process whose output another thread reads."""

    def next_line(self):
        """Return the next whole line, '' at the end."""
        line = self._popen.stdout.readline()
        return line if line.endswith("\n") else ""

    def stop(self):
        """Kill it; what it printed is still to be read."""
        self._popen.kill()


def start(installed, task, **arguments):
    """Start a task in a process over an installation; used as a context manager."""
    command = [sys.executable, "-m", "tests.memory.backup_worker", task, json.dumps(arguments)]
    return Worker(command, installed.env)


def run(installed, task, **arguments):
    """Run a task to its end and return the last value that it printed."""
    with start(installed, task, **arguments) as process:
        return process.rest()[-1]


@contextmanager
def installed_in(folder, variables):
    """Hippo over a DATA_DIR and, for each of `variables`, a MySQL database of its own."""
    with ExitStack() as stack:
        urls = {name: stack.enter_context(fresh_mysql()) for name in variables}
        yield Installation(folder, **urls)


class Savers(threading.Thread):
    """What a process acknowledges that saves for some agents: by agent [when, id, content]."""

    def __init__(self, process, agents):
        super().__init__(daemon=True)
        self._process, self.acknowledged = process, {name: [] for name in agents}

    def run(self):
        """Read until the process is killed."""
        while value := self._process.next_line():
            agent, *memory = json.loads(value)
            self.acknowledged[agent].append((time.monotonic(), *memory))

    def wait(self, number):
        """Wait until so many more were saved for each agent."""
        until = time.monotonic() + 60
        wanted = {name: len(each) + number for name, each in self.acknowledged.items()}
        while any(len(self.acknowledged[name]) < least for name, least in wanted.items()):
            assert self.is_alive()
            assert time.monotonic() < until
            time.sleep(0.01)

    def losses(self, begun, agents):
        """Yield where a restored system lacks what was acknowledged before `begun`, or doubles."""
        for name, told in self.acknowledged.items():
            before = sum(moment < begun for moment, *_ in told)
            there, told = agents[name]["memories"], [memory for _, *memory in told]
            # one may have been saved and not told, where the process was killed
            if not before <= len(there) <= len(told) + 1:
                yield f"{name}: {len(there)} are there of {len(told)}, {before} from before"
            # of one moment: no later one is there without all earlier ones
            if there[: len(told)] != told[: len(there)]:
                yield f"{name}: {there[-3:]}"


@contextmanager
def saving(installed, agents, **options):
    """Let a process save for agents without end; yield what it acknowledges."""
    with start(installed, "save_without_end", agents=[*agents], **options) as process:
        assert process.read() == "ready"
        savers = Savers(process, agents)
        process.go()
        savers.start()
        try:
            yield savers
        finally:
            process.stop()
            savers.join()


def restored(folder, backup, variables, agents):
    """Restore a backup into a new installation and return what it then has."""
    with installed_in(folder, variables) as fresh:
        return run(fresh, "restored", folder=str(backup), agents=[*agents])
