"""Where the workers of tests are forked, past the imports that take most of a start.

multiprocessing's fork server has loaded what reads no settings. A worker loads the rest by
itself, under its own environment, as if it had been started alone.
"""

import atexit
import multiprocessing
import os
import sys
import warnings
from importlib import import_module

from django.db import connections

_SLOW_IMPORTS = """
    celery.app.amqp config.celery django.contrib.admin.options django.contrib.auth.hashers
    django.core.management.commands.migrate django.db.backends.mysql.base
    django.db.backends.sqlite3.base django.db.migrations.executor django.db.models django.forms
    django.http django.template.loader django.urls django.views.generic kombu.serialization
    memory.analyzer sqlparse yaml
""".split()

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(_SLOW_IMPORTS)


class Forked:
    """A forked worker at its task, used like a Popen."""

    def __init__(self, module, task, arguments, env, errors):
        its_stdin, stdin = processes.Pipe(duplex=False)
        stdout, its_stdout = processes.Pipe(duplex=False)
        its_streams = (its_stdin, its_stdout)
        self._process = processes.Process(
            target=_work, args=(module, task, arguments, env, its_streams, errors)
        )
        self._process.start()
        for each in its_streams:
            each.close()
        self.stdin, self.stdout = _text(stdin, "w"), _text(stdout, "r")

    def kill(self):
        """Kill it by SIGKILL, if it lives."""
        self._process.kill()

    def wait(self):
        """Wait for its end and return its status, as Popen does."""
        self._process.join()
        return self._process.exitcode


def _text(end_of_pipe, mode):
    file = os.fdopen(os.dup(end_of_pipe.fileno()), mode)
    end_of_pipe.close()
    return file


def _work(module, task, arguments, env, streams, errors):
    """Be the worker that `python -m MODULE TASK JSON` would have been."""
    os.environ.clear()
    os.environ.update(env)
    warnings.simplefilter(env.get("PYTHONWARNINGS", "default"))
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    with open(errors, "a") as file:
        os.dup2(file.fileno(), 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    import_module(module).work(task, arguments)
    # the end of an interpreter would do this, that of a process which was forked does not
    atexit._run_exitfuncs()
    connections.close_all()
