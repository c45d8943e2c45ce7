"""The files of imports and exports: a folder each, below a name that nobody can guess.

Web and worker share them. They go when their job is a week old, when what they are about is
erased, or when nothing knows them any more.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from memory.models import Job, JobState

KINDS = ("import_check", "import", "export")
"""The kinds of job that have files."""
KEPT_DAYS = 7
_STRAY_FOR = timedelta(days=1)
_TOKEN = re.compile(r"[\w-]{20,64}")


def make() -> str:
    """Make a folder and return its token."""
    token = secrets.token_urlsafe(24)
    folder_of(token).mkdir(mode=0o700, parents=True)
    return token


def folder_of(token: str) -> Path:
    """Return the folder of a token. Raises ValueError for what is none."""
    if not _TOKEN.fullmatch(token):
        raise ValueError("This is no token.")
    return Path(settings.JOB_FILES_DIR) / token


def file_of(job: Job, name: str) -> Path | None:
    """Return a file of a job, where it has it still."""
    token = job.payload.get("token") if job.kind in KINDS else None
    path = folder_of(token) / name if token else None
    return path if path and path.is_file() else None


def remove(token: str) -> None:
    """Remove a folder and what is in it."""
    shutil.rmtree(folder_of(token), ignore_errors=True)


def expires_at(job: Job) -> datetime | None:
    """Return when the files of a job that has ended go."""
    return job.finished_at + timedelta(days=KEPT_DAYS) if job.finished_at else None


def forget_places(owned: Collection[tuple[int, str]], *, account_id: int | None = None) -> int:
    """Remove jobs with files that are about any of these (agent, user_id); return how many.

    With `account_id` those of that account, too, that are about a user_id of these with any
    agent. One that runs loses its claim, and with it the right to write anything more.
    """
    users = {user_id for _, user_id in owned}

    def is_meant(job: Job) -> bool:
        places = [(place[0], place[1]) for place in job.payload.get("places", ())]
        is_own = account_id is not None and job.account_id == account_id
        return any(place in owned or (is_own and place[1] in users) for place in places)

    return _forget(job for job in Job.objects.filter(kind__in=KINDS) if is_meant(job))


def forget_agent(agent_id: int) -> int:
    """Remove jobs with files that are about an agent; return how many."""
    found = Job.objects.filter(kind__in=KINDS)
    return _forget(
        job for job in found if agent_id in {place[0] for place in job.payload.get("places", ())}
    )


def _forget(jobs: object) -> int:
    forgotten = 0
    for job in list(jobs):  # type: ignore[call-overload]
        job.delete()
        remove(job.payload["token"])
        forgotten += 1
    return forgotten


def sweep(*, now: datetime) -> int:
    """Remove the folders whose time is over and those that no job knows; return how many."""
    kept_since = now - timedelta(days=KEPT_DAYS)
    present = Q(state__in=[JobState.PENDING, JobState.RUNNING]) | Q(finished_at__gt=kept_since)
    payloads = Job.objects.filter(present, kind__in=KINDS).values_list("payload", flat=True)
    known = {payload.get("token") for payload in payloads}
    removed = 0
    for path in Path(settings.JOB_FILES_DIR).iterdir():
        since = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        # an upload is there before its job is, and one that was cut off has none
        if path.name in known or since > now - _STRAY_FOR:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        removed += 1
    return removed
