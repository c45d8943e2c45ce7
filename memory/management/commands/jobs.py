from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import override

from memory.management.base import HippoCommand, find_agent
from memory.models import Job, JobState
from memory.services import job_kinds, jobs

_NEWEST = 20
_ROW = "{:>6}  {:<16}  {:<9}  {:>11}  {:>8}  {:<22}  {}"
_STARTABLE = (*job_kinds.WITHOUT_PAYLOAD, "embed", "reindex")


class Command(HippoCommand):
    help = "List background jobs, newest first; cancel one, let one go on, or start one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--state", choices=JobState.values, help="only jobs in this state")
        parser.add_argument(
            "--all", action="store_true", help=f"every job, not only the newest {_NEWEST}"
        )
        one = parser.add_mutually_exclusive_group()
        one.add_argument("--cancel", type=int, metavar="ID", help="end a job at its next chunk")
        one.add_argument(
            "--retry", type=int, metavar="ID", help="let a failed or cancelled job go on"
        )
        one.add_argument("--run", metavar="KIND", help=f"start one of: {', '.join(_STARTABLE)}")
        parser.add_argument("--agent", metavar="NAME", help="whose memories --run reindex takes")

    def run(self, **options: Any) -> None:
        if options["agent"] and options["run"] != "reindex":
            raise CommandError("--agent goes with --run reindex only; the other kinds do all.")
        if options["cancel"] is not None:
            self._cancel(options["cancel"])
        elif options["retry"] is not None:
            job = jobs.retry(options["retry"], now=timezone.now())
            self.stdout.write(f"Job {job.pk} ({job.kind}) is {job.state}.")
        elif options["run"] is not None:
            job = _start(options["run"], options["agent"])
            self.stdout.write(f"Job {job.pk} ({job.kind}) is {job.state}.")
        else:
            self._list(options["state"], None if options["all"] else _NEWEST)

    def _cancel(self, job_id: int) -> None:
        before = jobs.find(job_id)
        if before.state not in {JobState.PENDING, JobState.RUNNING}:
            raise CommandError(f"Job {job_id} is {before.state} already.")
        job = jobs.cancel(job_id, now=timezone.now())
        ends = " and ends at its next chunk" if job.state == JobState.RUNNING else ""
        self.stdout.write(f"Job {job.pk} ({job.kind}) is {job.state}{ends}.")

    def _list(self, state: str | None, most: int | None) -> None:
        found = Job.objects.filter(state=state) if state else Job.objects.all()
        rows = list(found[:most])
        if not rows:
            self.stdout.write("No jobs.")
            return
        self.stdout.write(_row("ID", "KIND", "STATE", "PROGRESS", "ATTEMPTS", "AGE", "STEP"))
        now = timezone.now()
        for job in rows:
            with override("en"):
                age = timesince(job.created_at, now, depth=1).replace("\N{NO-BREAK SPACE}", " ")
            values = (job.pk, job.kind, job.state, jobs.progress(job), job.attempts, age, job.step)
            self.stdout.write(_row(*values))
            if job.error:
                self.stdout.write(f"        {' '.join(job.error.split())}")


def _row(*values: object) -> str:
    return _ROW.format(*values).rstrip()


def _start(kind: str, agent_name: str | None) -> Job:
    if kind not in _STARTABLE:
        raise CommandError(f"No kind {kind} is started here; there are: {', '.join(_STARTABLE)}.")
    now = timezone.now()
    if kind != "reindex":
        return jobs.enqueue(kind, now=now)
    if not agent_name:
        raise CommandError("Say whose memories: --run reindex --agent NAME.")
    return job_kinds.enqueue_reindex(find_agent(agent_name), now=now)
