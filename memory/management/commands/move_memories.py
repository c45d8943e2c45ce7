from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.utils import timezone

from agents.models import Agent, Backend
from memory.databases import Place
from memory.errors import HippoError
from memory.management.base import HippoCommand, find_agent, progress
from memory.models import Job, JobState
from memory.services import job_kinds, jobs
from memory.services.moves import moving

_LOOK_SECONDS = 0.3
_KINDS = {"moved": "old copy", "left": "left behind", "frozen": "unfinished copy"}


class Command(HippoCommand):
    help = (
        "Move an agent's memories to another store: copy, verify, switch. Recalls go on; saves "
        "are refused for the moment of the switch. If this is killed, the worker finishes the "
        "move within minutes, and so does the same command. The old copy stays until --confirm."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument("--to", choices=Backend.values, help="the kind of store")
        parser.add_argument("--file", metavar="NAME.db", help="a file of DATA_DIR/memory")
        parser.add_argument(
            "--leave",
            action="store_true",
            help="leave the memories where they are, and begin with what the other store holds",
        )
        parser.add_argument(
            "--confirm",
            action="store_true",
            help="erase what the agent has in stores that it no longer uses, left-behind "
            "memories included",
        )

    def run(self, **options: Any) -> None:
        agent = find_agent(options["agent"])
        if bool(options["to"]) == options["confirm"]:
            raise CommandError("Say either where to with --to, or --confirm to erase old copies.")
        if options["file"] and options["to"] != Backend.SQLITE:
            raise CommandError("--file goes with --to sqlite.")
        if options["leave"] and options["confirm"]:
            raise CommandError("--leave goes with --to.")
        if options["confirm"]:
            self._confirm(agent)
            return
        place = Place(options["to"], options["file"] or agent.memory_config.sqlite_path)
        if options["leave"]:
            self._leave(agent, place)
        else:
            self._move(agent, place)

    def _confirm(self, agent: Agent) -> None:
        for _, alias, count, state in moving.former_stores(agent):
            if count is None:
                self.stderr.write(f"{alias}: does not answer")
            else:
                self.stdout.write(f"{alias}: {count} memories, {_KINDS.get(state or '', state)}")
        erased = moving.confirm(agent, now=timezone.now())
        self.stdout.write(f"{agent.name}: {erased} memories erased in former stores")

    def _leave(self, agent: Agent, place: Place) -> None:
        moving.change_store(
            agent,
            backend=place.backend,
            sqlite_path=place.sqlite_path,
            leave=True,
            now=timezone.now(),
        )
        self.stdout.write(f"{agent.name}: uses {_name(place)} now")
        for _, alias, count, _ in moving.former_stores(agent):
            self.stdout.write(f"{count} memories stay in {alias}; the way back finds them again")

    def _move(self, agent: Agent, place: Place) -> None:
        job = moving.enqueue(
            agent, backend=place.backend, sqlite_path=place.sqlite_path, now=timezone.now()
        )
        with _watched(job, f"Moving {agent.name}"):
            job = _finish(job)
        if job.state != JobState.DONE:
            raise CommandError(_trouble(job))
        found = job.result
        if not found:
            raise CommandError(f"Agent {agent.name} was deleted meanwhile.")
        self.stdout.write(
            f"{agent.name}: {found['memories']} memories of {found['users']} users moved to "
            f"{_name(place)}, with {found['revisions']} earlier versions and "
            f"{found['requests']} request keys"
        )
        self.stdout.write(f"Both sides agree; their checksum is {found['checksum']}")
        self.stdout.write(
            "The old copy stays, and takes no writes. When all is well, erase it with "
            f"move_memories {agent.name} --confirm"
        )


def _name(place: Place) -> str:
    return "MySQL" if place.backend == Backend.MYSQL else place.sqlite_path


def _finish(job: Job) -> Job:
    """Do the job here, or follow the run that has it; return the job as it ended.

    It may be left waiting for another try.
    """
    while True:
        try:
            job_kinds.perform(job.pk)
        except (HippoError, DatabaseError):
            return jobs.find(job.pk)  # it holds the error
        job = jobs.find(job.pk)
        if job.state not in {JobState.PENDING, JobState.RUNNING}:
            return job
        # another run has it; if that was killed, the job is to be had again in a while
        jobs.reap(now=timezone.now())
        time.sleep(_LOOK_SECONDS)


def _trouble(job: Job) -> str:
    if job.state == JobState.PENDING:
        return (
            f"The move is not finished: {job.error}. Nothing is lost; the worker tries again "
            f"within minutes, and so does this command (job {job.pk})."
        )
    if job.state == JobState.CANCELLED:
        return f"The move was cancelled (job {job.pk}); the memories are where they were."
    return f"{job.error} (job {job.pk})"


@contextmanager
def _watched(job: Job, description: str) -> Iterator[None]:
    """Show a job's progress meanwhile, whoever does it."""
    with progress(None, description) as bar:
        if bar.disable:
            yield
            return
        stopped = threading.Event()
        thread = threading.Thread(target=_show, args=[job.pk, bar, stopped], daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()


def _show(job_id: int, bar: Any, stopped: threading.Event) -> None:
    description = bar.desc
    try:
        while not stopped.wait(_LOOK_SECONDS):
            job = jobs.find(job_id)
            bar.total = job.total
            bar.n = job.done
            bar.set_description(f"{description}{job.step}")
    except (HippoError, DatabaseError):
        return  # the command itself will tell
    finally:
        connections[DEFAULT_DB_ALIAS].close()
