"""Erasing all that agents remember of somebody: a job, whose result is the receipt.

The receipt is pending until a separate look at every store has found nothing left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from agents.authority import ACCOUNTS_OF, Role
from agents.models import Agent
from memory import analyzer, fts
from memory.databases import store_alias
from memory.errors import HippoError
from memory.models import (
    IdempotencyRecord,
    Job,
    Memory,
    MemoryRevision,
    MemoryTerms,
    MemoryVector,
    Scope,
    ScopeDay,
)
from memory.services import bulk, erasure, jobs, maintenance
from memory.services.figures import counting
from memory.services.golden import questions as golden
from memory.services.jobs import Run
from memory.services.library import Shelf
from memory.services.transfers import job_files

UNREACHED = ("backups", "mysql_binary_logs")
"""What erasing cannot reach; the receipt names it."""


class NotErased(HippoError):
    """Something of the user was found again after it was erased."""

    code = "not_erased"


def request_erasure(
    account_id: int,
    shelves: list[Shelf],
    *,
    asked_by: int | None = None,
    deletes_account: bool = False,
    now: datetime,
) -> Job:
    """Leave the erasure of an account's shelves to be done; its result is the receipt.

    `asked_by` is the operator who wants it, None for oneself. With `deletes_account` the
    account goes when nothing is left, if it is a plain user's then.
    """
    payload = {"account_id": account_id, "deletes_account": deletes_account}
    key, asker = f"erase account {account_id}", asked_by or account_id
    return _enqueue(key, payload, shelves, asker, now)


def request_erasure_of(user_id: str, shelves: list[Shelf], *, asked_by: int, now: datetime) -> Job:
    """Leave the erasure of shelves of a user_id that no account has to be done."""
    # a key is shorter than a user_id may be
    key = f"erase user {hashlib.sha256(user_id.encode()).hexdigest()}"
    return _enqueue(key, {"account_id": None}, shelves, asked_by, now)


def _enqueue(
    key: str, payload: dict[str, Any], shelves: list[Shelf], asker: int, now: datetime
) -> Job:
    owned = sorted({(shelf.agent.pk, shelf.user_id) for shelf in shelves})
    payload = {**payload, "owned": [list(each) for each in owned]}
    return jobs.enqueue("erase_user", payload, key=key, account_id=asker, now=now)


def receipts_of(account_id: int) -> list[Job]:
    """Return the erasures of what an account had, whoever asked for them, newest first."""
    asked = Job.objects.filter(kind="erase_user", key=f"erase account {account_id}")
    return list(asked.order_by("-pk")[:10])


def find_receipt(job_id: int) -> Job | None:
    """Return an erasure, for operators: it names nobody; None where there is no such job."""
    return Job.objects.filter(kind="erase_user", pk=job_id).first()


def erase_user(run: Run, *, now: datetime) -> dict[str, Any]:
    """Erase users' scopes with memories, versions, terms and request keys, in every store.

    Changes of many memories that the account asked for go first, since they hold what it
    looked for, imports and exports with their files, and golden questions about the user.
    Old copies in former stores go next, then what is in use. Then the indexes are merged, since
    engines keep deleted terms in their pages until then, and every store is looked through once
    more by other paths than those that erased. Returns the receipt:
    {"memories", "versions", "requests", "jobs", "stores", "unreached", "account"}.
    """
    is_resumed = bool(run.job.checkpoint)
    forgotten = _forget_jobs(run.job.payload)
    found = run.job.checkpoint if is_resumed else _found(run, forgotten)
    erased = run.job.done
    for agent, user_id in _owned(run):
        golden.forget_user(agent.pk, user_id)
        for there in _everywhere(agent):
            for scope in Scope.objects.of_user(there, user_id):
                erased += erasure.erase_scope(scope)
                if there is agent:
                    _count(agent, user_id, scope.memory_count, now=now)
                run.report(step=agent.name, done=erased)
    stores = sorted({alias for alias, _ in found["scopes"]})
    for alias in stores:
        with run.beating():
            maintenance.optimize(alias)
    run.report(step="verifying")
    for agent, user_id in _owned(run):
        if golden.asks_about(agent.pk, user_id):
            raise NotErased(f"A golden question about the user is there again: {agent.name}.")
        for there in _everywhere(agent):
            if Scope.objects.of_user(there, user_id).exists():
                raise NotErased(f"Something of agent {agent.name} is there again.")
    for alias, scope_id in found["scopes"]:
        if where := _left(alias, scope_id):
            raise NotErased(f"In store {alias} there is something left of it in {where}.")
    return {
        "memories": erased,
        "versions": found["versions"],
        "requests": found["requests"],
        "jobs": found["jobs"] + (forgotten if is_resumed else 0),
        "stores": stores,
        "unreached": list(UNREACHED),
        "account": "deleted" if _delete_account(run) else "",
    }


def _delete_account(run: Run) -> bool:
    """Delete the account where that was asked for and it has not become an operator's."""
    if not run.job.payload.get("deletes_account"):
        return False
    accounts = get_user_model().objects.filter(pk=run.job.payload["account_id"])
    return bool(accounts.filter(ACCOUNTS_OF[Role.USER]).delete()[0])


def _count(agent: Agent, user_id: str, memories: int, *, now: datetime) -> None:
    """Count what was erased among the agent's sums, which name nobody."""
    alias, day = store_alias(agent), counting.day_of(now)
    with transaction.atomic(using=alias):
        counting.add_to_agent(alias, agent.pk, user_id, day, {"deleted": memories})


def _forget_jobs(payload: dict[str, Any]) -> int:
    """Remove the jobs that hold something of what is erased; return how many."""
    account_id = payload["account_id"]
    owned = {(agent_id, user_id) for agent_id, user_id in payload["owned"]}
    forgotten = bulk.forget(account_id) if account_id else 0
    return forgotten + job_files.forget_places(owned, account_id=account_id)


def _found(run: Run, forgotten: int) -> dict[str, Any]:
    """Note which scopes there are, and how much in them, before the first one goes."""
    found: dict[str, Any] = {"scopes": [], "versions": 0, "requests": 0, "jobs": forgotten}
    for agent, user_id in _owned(run):
        for there in _everywhere(agent):
            alias = store_alias(there)
            for scope in Scope.objects.of_user(there, user_id):
                versions = MemoryRevision.objects.using(alias).filter(memory__scope_id=scope.pk)
                requests = IdempotencyRecord.objects.using(alias).filter(scope_id=scope.pk)
                found["scopes"].append([alias, scope.pk])
                found["versions"] += versions.count()
                found["requests"] += requests.count()
    run.report(checkpoint=found)
    return found


def _left(alias: str, scope_id: int) -> str:
    """Return where something of an erased scope is still to be found; '' where nowhere."""
    for model in (Memory, MemoryTerms, MemoryVector, IdempotencyRecord, ScopeDay, Scope):
        key = "pk" if model is Scope else "scope_id"
        if model._default_manager.using(alias).filter(**{key: scope_id}).exists():
            return model._meta.model_name or ""
    if MemoryRevision.objects.using(alias).filter(memory__scope_id=scope_id).exists():
        return "memoryrevision"
    return "the index" if fts.holds(analyzer.scope_key(scope_id), alias) else ""


def _owned(run: Run) -> Iterator[tuple[Agent, str]]:
    owned = run.job.payload["owned"]
    ids = {agent_id for agent_id, _ in owned}
    agents = Agent.objects.select_related("memory_config").in_bulk(ids)
    for agent_id, user_id in owned:
        if agent_id in agents:  # deleted meanwhile, with all that it remembered
            yield agents[agent_id], user_id


def _everywhere(agent: Agent) -> Iterator[Agent]:
    """Yield the agent as configured for its former stores, and for its own."""
    for there, _ in erasure.former_places(agent, agent.pk):
        yield there
    yield agent
