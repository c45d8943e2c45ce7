"""Exporting memories by a filter, as JSON lines, a table or Markdown: a job that leaves a file."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_noop

from agents import audit
from agents.models import Agent
from agents.roles import VIEW_CONTENT
from memory.filters import MemoryFilter
from memory.models import Job, JobState, Memory
from memory.querysets import MemoryQuerySet
from memory.services import jobs
from memory.services.jobs import Run
from memory.services.library import Shelf
from memory.services.transfers import csv_rows, job_files, takeout
from memory.services.transfers.markdown_files import markdown_of
from memory.services.transfers.records import to_record
from memory.services.transfers.takeout import file_name

EXPORT = "export"
FORMATS = {"jsonl": "jsonl", "csv": "csv", "markdown": "zip", "takeout": "zip"}
"""The formats, and how a file of each is called."""
STEP = gettext_noop("writing the file")
_CHUNK = 200
_Written = Generator[int, None, None]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is exported, and how; `entry` is the record of a reason, 0 for what is one's own.

    Without a filter it is everything, the trash included.
    """

    places: tuple[tuple[Agent, str], ...]
    wanted: MemoryFilter | None
    format: str
    entry: int = 0


def request(account: Any, choice: Choice, *, now: datetime) -> Job:
    """Leave an export to be done, and return its job."""
    token = job_files.make()
    payload = {
        "token": token,
        "places": [[agent.pk, user_id] for agent, user_id in choice.places],
        "filter": choice.wanted.to_payload() if choice.wanted else None,
        "format": choice.format,
        "entry": choice.entry,
    }
    if len({agent.pk for agent, _ in choice.places}) == 1:
        payload["agent_id"] = choice.places[0][0].pk
    return jobs.enqueue("export", payload, key=f"export {token}", account_id=account.pk, now=now)


def request_everything(account: Any, shelves: Sequence[Shelf], *, now: datetime) -> Job:
    """Leave a ZIP of all that agents remember of an account to be written; one at a time."""
    at_work = Job.objects.filter(kind="export", account_id=account.pk, active_key__isnull=False)
    for job in at_work:
        if job.payload["format"] == "takeout":
            return job
    places = tuple((shelf.agent, shelf.user_id) for shelf in shelves)
    return request(account, Choice(places, None, "takeout"), now=now)


def file_for(account: Any, job: Job, *, now: datetime) -> Path | None:
    """Return the file of an export, if the account may have it still.

    It is for who asked, while what it holds is theirs; that of another's memories while they
    may read those. After a week it is gone.
    """
    expires = job_files.expires_at(job)
    is_there = job.kind == "export" and job.state == JobState.DONE and expires and now < expires
    if not is_there or job.account_id != account.pk:
        return None
    if not (job.payload["entry"] and account.is_staff and account.has_perm(VIEW_CONTENT)):
        ids = {agent_id for agent_id, _ in job.payload["places"]}
        agents = Agent.objects.in_bulk(ids)
        for agent_id, user_id in job.payload["places"]:
            agent = agents.get(agent_id)
            if agent is None or not audit.owns(account, agent, user_id):
                return None
    return job_files.file_of(job, EXPORT)


def export(run: Run, *, now: datetime) -> dict[str, Any]:
    """Write the memories that meet the filter; return {"memories", "bytes"}.

    A file appears whole or not at all; a run that was killed is followed by one that begins
    again.
    """
    payload = run.job.payload
    folder = job_files.folder_of(payload["token"])
    draft, given = folder / "draft", payload["filter"]
    wanted = None if given is None else MemoryFilter.of_payload(given)
    ids = {agent_id for agent_id, _ in payload["places"]}
    agents = Agent.objects.select_related("memory_config").in_bulk(ids)
    places = [
        (agents[agent_id], user) for agent_id, user in payload["places"] if agent_id in agents
    ]
    total = sum(_listed(agent, user_id, wanted).count() for agent, user_id in places)
    run.report(step=STEP, done=0, total=total)
    done = 0
    try:
        with closing(_WRITERS[payload["format"]](draft, _memories(places, wanted))) as written:
            for _ in written:
                done += 1
                if done % _CHUNK == 0:
                    run.report(done=done, total=max(total, done))
        run.report(done=done, total=max(total, done))
        if payload["entry"]:
            audit.note_exported(payload["entry"], done)
        os.replace(draft, folder / EXPORT)
    finally:
        draft.unlink(missing_ok=True)
    return {"memories": done, "bytes": (folder / EXPORT).stat().st_size}


def _listed(agent: Agent, user_id: str, wanted: MemoryFilter | None) -> MemoryQuerySet:
    found = Memory.objects.in_scope(agent, user_id)
    return wanted.listed(found) if wanted else found


def _memories(
    places: Sequence[tuple[Agent, str]], wanted: MemoryFilter | None
) -> Iterator[tuple[Agent, Memory]]:
    for agent, user_id in places:
        memories = _listed(agent, user_id, wanted).select_related("scope").order_by("pk")
        memories, last = memories.prefetch_related("revisions"), -1
        while chunk := list(memories.filter(pk__gt=last)[:_CHUNK]):
            yield from ((agent, memory) for memory in chunk)
            last = chunk[-1].pk


def _write_lines(path: Path, memories: Iterator[tuple[Agent, Memory]]) -> _Written:
    with path.open("w", encoding="utf-8") as file:
        for agent, memory in memories:
            record = {"agent": agent.name, **to_record(memory)}
            file.write(f"{json.dumps(record, ensure_ascii=False)}\n")
            yield 1


def _write_table(path: Path, memories: Iterator[tuple[Agent, Memory]]) -> _Written:
    with path.open("w", encoding="utf-8", newline="") as file:
        yield from csv_rows.write_rows(file, memories)


def _write_markdown(path: Path, memories: Iterator[tuple[Agent, Memory]]) -> _Written:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for agent, memory in memories:
            archive.writestr(f"{agent.name}/{file_name(memory)}", markdown_of(memory))
            yield 1


def _write_everything(path: Path, memories: Iterator[tuple[Agent, Memory]]) -> _Written:
    """Write what `takeout.write_zip` writes, reading each memory once."""
    with (
        tempfile.TemporaryFile(dir=path.parent) as lines,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for agent, memory in memories:
            lines.write(takeout.line_of(agent, memory))
            archive.writestr(takeout.path_of(agent, memory), markdown_of(memory))
            yield 1
        lines.seek(0)
        with archive.open(takeout.LINES, "w", force_zip64=True) as file:
            shutil.copyfileobj(lines, file)


_WRITERS: dict[str, Callable[[Path, Iterator[tuple[Agent, Memory]]], _Written]] = {
    "jsonl": _write_lines,
    "csv": _write_table,
    "markdown": _write_markdown,
    "takeout": _write_everything,
}
