"""One change of many memories, and its undoing.

What is changed together has the same `updated_at`: by that, and by who did it, it is found
again and undone. Up to `AT_ONCE` memories are one transaction a scope, more are a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents.models import Agent
from memory.drafts import MAX_TAGS, parse_changes
from memory.filters import MemoryFilter
from memory.models import ActorKind, Job, Memory, Status
from memory.querysets import MemoryQuerySet
from memory.services import jobs, writing
from memory.services.jobs import Run
from memory.services.library import Shelf
from memory.services.memories import restored
from memory.services.writing import Actor, locked_scope, retried

AT_ONCE = 500
SHOWN = timedelta(minutes=10)
_KIND = "bulk"


@dataclass(frozen=True, slots=True)
class Bulk:
    """What is done to memories: an action of `ACTIONS` or `undo`, its value, when, by whom."""

    action: str
    value: str
    actor: str
    at: datetime


def _only(status: Status, then: Status) -> Callable[[Memory, str], dict[str, Any]]:
    return lambda memory, _: {"status": then} if memory.status == status else {}


def _tagged(memory: Memory, tag: str) -> dict[str, Any]:
    # one that is full stays as it is, so that it does not stop the others
    is_left = tag in memory.tags or len(memory.tags) >= MAX_TAGS
    return {} if is_left else {"tags": [*memory.tags, tag]}


RESTORE = "restore"
"""The action for what is in the trash; all others are for what is not."""
ACTIONS: dict[str, Callable[[Memory, str], dict[str, Any]]] = {
    "delete": lambda memory, _: {"status": Status.TRASHED},
    "pause": _only(Status.ACTIVE, Status.PAUSED),
    "resume": _only(Status.PAUSED, Status.ACTIVE),
    "pin": lambda memory, _: {"pinned": True},
    "unpin": lambda memory, _: {"pinned": False},
    "type": lambda memory, kind: {"type": kind},
    "tag": _tagged,
}


def select(
    shelves: Iterable[Shelf], memory_ids: Sequence[int], bulk: Bulk
) -> dict[Shelf, list[int]]:
    """Return which of the ids, fit for the action, are on which shelf; others are left out."""
    found = {}
    for shelf in shelves:
        rows = _fit(Memory.objects.of_scope(shelf.scope), bulk).filter(pk__in=memory_ids)
        if ids := list(rows.values_list("pk", flat=True)):
            found[shelf] = ids
    return found


def matching(shelves: Iterable[Shelf], wanted: MemoryFilter, bulk: Bulk) -> dict[Shelf, list[int]]:
    """Return the ids of what meets the filter on each shelf, of at most one over `AT_ONCE`."""
    found: dict[Shelf, list[int]] = {}
    left = AT_ONCE + 1
    for shelf in shelves:
        rows = _fit(wanted.listed(Memory.objects.of_scope(shelf.scope)), bulk)
        if ids := list(rows.values_list("pk", flat=True)[:left]):
            found[shelf] = ids
            left -= len(ids)
        if not left:
            break
    return found


def change(selected: Mapping[Shelf, Sequence[int]], bulk: Bulk) -> int:
    """Change the memories, one transaction a shelf; return how many changed."""
    return sum(
        _change(shelf.agent, shelf.user_id, ids, bulk, now=bulk.at)
        for shelf, ids in selected.items()
    )


def undo(shelves: Iterable[Shelf], bulk: Bulk, *, now: datetime) -> int:
    """Put back what `bulk` changed and nobody has changed since; return how many.

    A change of more than `AT_ONCE` is left to a job.
    """
    undoing = Bulk("undo", bulk.at.isoformat(), bulk.actor, now)
    return sum(
        _change(shelf.agent, shelf.user_id, ids, undoing, now=now)
        for shelf in shelves
        if (ids := _changed_at(shelf, bulk.at))
    )


def request(
    account_id: int, shelves: Sequence[Shelf], wanted: MemoryFilter, bulk: Bulk, *, now: datetime
) -> Job:
    """Leave a change of many memories to be done; `undo` takes the moment of what it undoes."""
    payload = {
        "account_id": account_id,
        "owned": [[shelf.agent.pk, shelf.user_id] for shelf in shelves],
        "filter": wanted.to_payload(),
        "action": bulk.action,
        "value": bulk.value,
        "actor": bulk.actor,
        "at": bulk.at.isoformat(),
    }
    key = f"bulk {account_id} {bulk.action} {bulk.at.isoformat()}"
    return jobs.enqueue(_KIND, payload, key=key, account_id=account_id, now=now)


def latest_for(account_id: int, *, now: datetime) -> Job | None:
    """Return the account's last change of many memories, for `SHOWN` after its end."""
    asked = Job.objects.filter(account_id=account_id, kind=_KIND)
    job = asked.order_by("-pk").first()
    is_old = job is not None and job.finished_at is not None and job.finished_at < now - SHOWN
    return None if is_old else job


def find(account_id: int, job_id: int) -> Job | None:
    """Return one of the account's changes of many memories."""
    found = Job.objects.filter(kind=_KIND, pk=job_id, key__startswith=f"bulk {account_id} ")
    return found.first()


def forget(account_id: int) -> int:
    """Remove the account's changes of many memories, waiting, running or done; return how many.

    One that runs loses its claim, and with it the right to change anything more.
    """
    return Job.objects.filter(kind=_KIND, key__startswith=f"bulk {account_id} ").delete()[0]


def work(run: Run, *, now: datetime) -> dict[str, Any]:
    """Do a change of many memories in chunks, each one transaction; killed, it goes on."""
    payload = run.job.payload
    at = datetime.fromisoformat(payload["at"])
    bulk = Bulk(payload["action"], payload["value"], payload["actor"], at)
    wanted = MemoryFilter.of_payload(payload["filter"])
    agents = Agent.objects.select_related("memory_config").in_bulk(
        {agent_id for agent_id, _ in payload["owned"]}
    )
    changed = run.job.done
    for place, (agent_id, user_id) in enumerate(payload["owned"]):
        after = _resumed(run, place)
        while agent_id in agents and after is not None:
            agent = agents[agent_id]
            ids = _next_ids(agent, user_id, wanted, bulk, after)
            if not ids:
                break
            changed += _change(agent, user_id, ids, bulk, now=at)
            after = ids[-1]
            run.report(done=changed, checkpoint={"place": place, "after": after})
    return {"changed": changed}


def _resumed(run: Run, place: int) -> int | None:
    """Return after which id a shelf goes on, None where it is done."""
    reached = run.job.checkpoint or {"place": 0, "after": 0}
    if place < reached["place"]:
        return None
    return int(reached["after"]) if place == reached["place"] else 0


def _next_ids(
    agent: Agent, user_id: str, wanted: MemoryFilter, bulk: Bulk, after: int
) -> list[int]:
    memories = Memory.objects.in_scope(agent, user_id)
    if bulk.action == "undo":
        memories = memories.filter(updated_at=datetime.fromisoformat(bulk.value))
    else:
        memories = _fit(wanted.listed(memories), bulk)
    return list(memories.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:AT_ONCE])


def _fit(memories: MemoryQuerySet, bulk: Bulk) -> MemoryQuerySet:
    """Return what the action is for."""
    is_restoring = bulk.action == RESTORE
    return memories.filter(status=Status.TRASHED) if is_restoring else memories.kept()


def _changed_at(shelf: Shelf, at: datetime) -> list[int]:
    changed = Memory.objects.of_scope(shelf.scope).filter(updated_at=at)
    return list(changed.order_by("pk").values_list("pk", flat=True)[:AT_ONCE])


@retried
def _change(
    agent: Agent, user_id: str, memory_ids: Sequence[int], bulk: Bulk, *, now: datetime
) -> int:
    values = _undone(bulk) if bulk.action == "undo" else _done(bulk)
    actor = Actor(ActorKind.USER, bulk.actor)
    with locked_scope(agent, user_id) as scope:
        memories = Memory.objects.of_scope(scope).filter(pk__in=memory_ids)
        if bulk.action == "undo":
            memories = memories.filter(updated_at=datetime.fromisoformat(bulk.value))
        if bulk.action in {"undo", RESTORE}:
            memories = memories.prefetch_related("revisions")
        return writing.change(
            scope, memories, values, actor=actor, reason=f"bulk {bulk.action}", now=now
        )


def _done(bulk: Bulk) -> Callable[[Memory], Mapping[str, Any]]:
    if bulk.action == RESTORE:
        return lambda memory: restored(memory, bulk.at)
    act = ACTIONS[bulk.action]

    def values(memory: Memory) -> Mapping[str, Any]:
        # one that is in the trash by now is no longer among what the list showed
        is_gone = memory.status == Status.TRASHED
        return {} if is_gone else parse_changes(act(memory, bulk.value))

    return values


def _undone(bulk: Bulk) -> Callable[[Memory], Mapping[str, Any]]:
    at = datetime.fromisoformat(bulk.value)

    def values(memory: Memory) -> Mapping[str, Any]:
        for revision in memory.revisions.all():
            is_ours = revision.created_at == at and revision.actor == bulk.actor
            if is_ours and revision.version == memory.version - 1:
                return parse_changes(revision.state)
        return {}

    return values
