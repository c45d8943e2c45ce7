"""Importing a file that was uploaded: first a look at what would become of it, then the import.

Both are jobs and ask the same plan. The import goes on from its last chunk after a kill, and
doing it again finds everything there already.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.utils.translation import get_language, gettext_noop, override
from django.utils.translation import gettext as _

from agents import audit
from agents.models import Agent, AuditAction
from memory.databases import store_alias
from memory.errors import HippoError
from memory.indexing import analyze
from memory.models import ActorKind, Job
from memory.services import jobs
from memory.services.jobs import Run
from memory.services.transfers import intake, job_files, uploads
from memory.services.transfers.import_rows import Failures, Target
from memory.services.transfers.intake import Decision, Outcome, Seen
from memory.services.transfers.records import Line
from memory.services.transfers.transfer import CHUNK
from memory.services.transfers.uploads import Row, Upload
from memory.services.writing import Actor

SHOWN_EACH = 1_000
"""So many rows of each outcome can be looked at before an import."""
CHECKED, CHECK_FAILED, FAILED = "checked.jsonl", "check-failed.csv", "failed.csv"
READING = gettext_noop("reading the file")
WRITING = gettext_noop("writing memories")
_NAME_CHARS = 120


class UploadGone(HippoError):
    """The uploaded file is not there any more."""

    code = "upload_gone"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be imported into which places, by whom; `is_own` where all places are theirs.

    With several places each row says, as `agent` and `user_id`, to which of them it belongs.
    """

    upload: Upload
    places: tuple[tuple[Agent, str], ...]
    type: str
    is_own: bool


def request_check(account: Any, wish: Wish, *, now: datetime) -> Job:
    """Leave the look at an upload to be done, and return its job."""
    upload = wish.upload
    payload = {
        "token": upload.token,
        "file": upload.name,
        "format": upload.format,
        "encoding": upload.encoding,
        "places": [[agent.pk, user_id] for agent, user_id in wish.places],
        "type": wish.type,
        "is_own": wish.is_own,
        "actor": account.get_username(),
        "language": get_language(),
    }
    if len({agent.pk for agent, _user in wish.places}) == 1:
        payload["agent_id"] = wish.places[0][0].pk
    key = f"import_check {upload.token}"
    if not wish.is_own:
        # by what it finds to be there already, a look tells something of what is another's
        _note_import(account, payload, "looked at, not imported", 0, now=now)
    return jobs.enqueue("import_check", payload, key=key, account_id=account.pk, now=now)


def request(account: Any, checked: Job, *, now: datetime) -> Job:
    """Leave the import of what was looked at to be done; while one is at work, that one.

    An import into what is another's is recorded first.
    """
    payload = {**checked.payload, "rows": checked.result["rows"], "at": now.isoformat()}
    key = f"import {payload['token']}"
    if present := Job.objects.filter(active_key=key).first():
        return present
    if not payload["is_own"]:
        new, updated = (checked.result["counts"].get(name, 0) for name in ("new", "update"))
        detail = f"{new} new, {updated} updated"
        payload["entry"] = _note_import(account, payload, detail, new + updated, now=now)
    return jobs.enqueue("import", payload, key=key, account_id=account.pk, now=now)


def _note_import(
    account: Any, payload: dict[str, Any], detail: str, count: int, *, now: datetime
) -> int:
    """Record what somebody brings to another's memories; return the number of the entry."""
    agent_id, user_id = payload["places"][0]
    agent = Agent.objects.filter(pk=agent_id).first()
    entry = audit.note(
        account,
        AuditAction.IMPORTED,
        agent=agent,
        subject=audit.owner_of(agent, user_id) if agent else None,
        user_id=user_id,
        detail=detail,
        count=count,
        now=now,
    )
    return entry.pk


def latest_import(checked: Job) -> Job | None:
    """Return the last import of what was looked at."""
    return Job.objects.filter(key=f"import {checked.payload['token']}").order_by("-pk").first()


def upload_of(job: Job) -> Upload:
    """Return the upload that a job is about. Raises UploadGone."""
    payload = job.payload
    upload = Upload(payload["token"], payload["file"], payload["format"], payload["encoding"])
    if not upload.path.is_file():
        raise UploadGone("The uploaded file is not there any more; upload it again.")
    return upload


def shown_rows(checked: Job, outcome: str) -> list[dict[str, Any]]:
    """Return the rows that were looked at, of one outcome or of all, by their lines."""
    path = job_files.file_of(checked, CHECKED)
    if path is None:
        return []
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [row for row in rows if outcome in {"", row["outcome"]}]


# --- the look beforehand ---------------------------------------------------------------


def check(run: Run, *, now: datetime) -> dict[str, Any]:
    """Find out what would become of every row; return {"rows", "counts", "failed"}."""
    return _worded(run, _check)


def _check(run: Run, upload: Upload) -> dict[str, Any]:
    payload = run.job.payload
    target = Target.of(payload)
    folder = job_files.folder_of(payload["token"])
    sight = _Sight()
    counts: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    run.report(step=READING, done=0)
    with (
        (folder / CHECKED).open("w", encoding="utf-8") as listed,
        closing(Failures(folder / CHECK_FAILED, upload)) as failures,
    ):
        for chunk in _chunks(upload, 0):
            parsed = target.parse(chunk)
            decided = {each.line.number: each for each in sight.foresee(parsed.lines)}
            for row in chunk:
                decision = decided.get(row.number)
                outcome = decision.outcome if decision else Outcome.ERROR
                counts[outcome] += 1
                shown[outcome] += 1
                # of what is another's it is said how much, and not which
                is_told = payload["is_own"] or outcome in {Outcome.NEW, Outcome.ERROR}
                if is_told and shown[outcome] <= SHOWN_EACH:
                    told = _told(row, decision, parsed.errors.get(row.number, ""))
                    listed.write(f"{json.dumps(told, ensure_ascii=False)}\n")
                if decision is None:
                    failures.add(row, parsed.errors[row.number])
            run.report(done=sum(counts.values()))
    return {"rows": sum(counts.values()), "counts": dict(counts), "failed": failures.count}


def _told(row: Row, decision: Decision | None, error: str) -> dict[str, Any]:
    """Return what a table of rows shows of one."""
    told = {"line": row.number, "outcome": Outcome.ERROR, "name": "", "reason": error}
    if decision:
        told |= {"outcome": decision.outcome, "name": decision.line.draft.name[:_NAME_CHARS]}
        if decision.outcome == Outcome.KEPT:
            trashed = decision.known.is_trashed
            told["reason"] = _("It is in the trash here.") if trashed else _("It is newer here.")
    elif row.record:
        told["name"] = str(row.record.get("name") or row.record.get("content") or "")[:_NAME_CHARS]
    elif row.cells:
        told["name"] = row.cells[0][:_NAME_CHARS]
    return told


class _Sight:
    """What earlier rows would have done, so that later ones are told the truth."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str], Seen] = {}
        self._given: dict[str, dict[int, tuple[int, str]]] = {}

    def foresee(self, lines: Iterable[tuple[Agent, Line]]) -> Iterator[Decision]:
        """Yield what would become of the lines of a chunk, as the import would take them."""
        for agent, user_id, group in intake.in_groups(lines):
            whose = (agent.pk, user_id)
            given = self._given.setdefault(store_alias(agent), {})
            elsewhere = {
                line.id for line in group if line.id and given.get(line.id, whose) != whose
            }
            seen = self._seen.setdefault(whose, Seen())
            for decision in intake.foresee(agent, user_id, group, seen, elsewhere):
                if decision.outcome == Outcome.NEW and decision.line.id:
                    given[decision.line.id] = whose
                yield decision


# --- the import ------------------------------------------------------------------------


def take_in(run: Run, *, now: datetime) -> dict[str, Any]:
    """Import in chunks, one transaction each; return {"rows", "counts", "failed"}.

    Before a chunk it is noted what will be new: the run that finds it there after a kill
    counts it as what it was.
    """
    return _worded(run, _take_in)


def _take_in(run: Run, upload: Upload) -> dict[str, Any]:
    payload = run.job.payload
    target = Target.of(payload)
    state: dict[str, Any] = run.job.checkpoint or {"done": 0, "counts": {}, "failed": [0, 0]}
    counts = Counter(state["counts"])
    run.report(step=WRITING, done=state["done"], total=payload["rows"])
    path = job_files.folder_of(payload["token"]) / FAILED
    with closing(Failures(path, upload, *state["failed"])) as failures:
        for chunk in _chunks(upload, state["done"]):
            parsed = target.parse(chunk)
            if "intent" not in state:
                state = {**state, "intent": _intended(parsed.lines)}
                run.report(checkpoint=state)
            counts += _imported(run, parsed.lines, state["intent"])
            for row in chunk:
                if row.number in parsed.errors:
                    failures.add(row, parsed.errors[row.number])
                    counts[Outcome.ERROR] += 1
            done = state["done"] + len(chunk)
            state = {"done": done, "counts": dict(counts), "failed": failures.saved()}
            run.report(done=done, checkpoint=state)
    return {"rows": state["done"], "counts": state["counts"], "failed": failures.count}


def _intended(lines: Sequence[tuple[Agent, Line]]) -> dict[str, list[int]]:
    """Return the numbers of the lines that will be new, and of those that will change one."""
    intended: dict[str, list[int]] = {Outcome.NEW: [], Outcome.UPDATE: []}
    for decision in _Sight().foresee(lines):
        if decision.outcome in intended:
            intended[decision.outcome].append(decision.line.number)
    return intended


def _imported(
    run: Run, lines: Sequence[tuple[Agent, Line]], intent: Mapping[str, list[int]]
) -> Counter[str]:
    payload = run.job.payload
    actor, now = Actor(ActorKind.USER, payload["actor"]), datetime.fromisoformat(payload["at"])
    meant = {number: outcome for outcome, numbers in intent.items() for number in numbers}
    counts: Counter[str] = Counter()
    for agent, user_id, group in intake.in_groups(lines):
        analyses = {
            line.number: analyze(line.draft)
            for line in group
            if meant.get(line.number) == Outcome.NEW
        }
        for each in intake.take_in(agent, user_id, group, analyses, actor=actor, now=now):
            is_there = each.outcome in {Outcome.DUPLICATE, Outcome.KEPT}
            counts[meant.get(each.line.number, each.outcome) if is_there else each.outcome] += 1
    return counts


# --- what both need --------------------------------------------------------------------


def _chunks(upload: Upload, done: int) -> Iterator[list[Row]]:
    rows = islice(uploads.rows_of(upload), done, None)
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


def _worded(run: Run, work: Any) -> dict[str, Any]:
    """Do a job's work in the language of who asked; what no other try changes ends it."""
    with override(run.job.payload["language"]):
        try:
            upload = upload_of(run.job)
            result: dict[str, Any] = work(run, upload)
        except UploadGone as error:
            run.fail(_("The uploaded file is not there any more; upload it again."), is_final=True)
            raise error
        return result
