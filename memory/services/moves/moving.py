"""Moving an agent's memories to another store: copy, verify, switch.

The switch is one transaction in `default`: the configuration names the new store. Before
it the old store is whole and is opened again whatever happens; after it the new one is.
Whatever a killed run leaves half-done, the next run of the job finishes or takes back.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import DEFAULT_DB_ALIAS, DatabaseError, transaction
from django.utils.translation import gettext_noop

from agents.models import Agent
from memory.databases import Place, agent_at, store_alias
from memory.errors import HippoError, MoveRefused, StoreNotOpen
from memory.models import Job, JobState, Store, StoreState
from memory.services import jobs, maintenance, writing
from memory.services.jobs import Run
from memory.services.moves import agreement, copying, placing
from memory.services.moves.agreement import CopyDiffers
from memory.services.moves.holding import Copy, held, set_state
from memory.services.moves.placing import Former, change_store, confirm, former_stores

__all__ = [
    "STEPS",
    "Former",
    "change_store",
    "confirm",
    "enqueue",
    "former_stores",
    "move",
    "reopen_abandoned",
]

_COPYING = gettext_noop("copying")
_CHECKING = gettext_noop("checking the index")
_CATCHING_UP = gettext_noop("catching up")
_COPYING_LATE = gettext_noop("copying the last changes")
_VERIFYING = gettext_noop("verifying")
_SWITCHING = gettext_noop("switching")
STEPS = (_COPYING, _CHECKING, _CATCHING_UP, _COPYING_LATE, _VERIFYING, _SWITCHING)
"""What a move does, one after the other."""
_ROUNDS = 3
"""How often a copy is brought up to date before writes have to wait, and verified after."""
_FEW = 100
"""So many late changes are copied in an instant."""
_ABANDONED_FOR = timedelta(days=1)

logger = logging.getLogger(__name__)


def enqueue(
    agent: Agent, *, backend: str, sqlite_path: str, account_id: int | None = None, now: datetime
) -> Job:
    """Leave a move to be done and return its job; while one waits or runs, that one.

    `sqlite_path` counts for SQLite only; `account_id` is who asks for it.
    Raises InvalidMemory for a bad path,
    BackendUnavailable, and MoveRefused where the move cannot be: to the present store, to
    one with memories that were left there, or while a move to another store is at work.
    """
    target = placing.parse_place(backend, sqlite_path)
    present = placing.move_at_work(agent)
    if present and Place(present.payload["backend"], present.payload["sqlite_path"]) != target:
        raise placing.at_work(agent, present)
    here, there = placing.both(agent, target)
    placing.require_apart(here, there)
    placing.require_replaceable(there)
    payload = {
        "agent_id": agent.pk, "backend": target.backend, "sqlite_path": target.sqlite_path,
    }  # fmt: skip
    key = placing.key_of(agent)
    job = jobs.enqueue("move", payload, key=key, account_id=account_id, now=now)
    if job.payload != payload:
        raise placing.at_work(agent, job)
    return job


def move(run: Run, *, now: datetime) -> dict[str, Any]:
    """Move all that an agent remembers to the store of the job's payload; return a summary.

    The source takes writes until the copy is all but done, and again if anything fails.
    What was copied then stays, frozen: the next move begins with it. An agent that was
    deleted meanwhile ends it quietly. Raises MoveRefused, which no other try would change.
    """
    agent_id = run.job.payload["agent_id"]
    try:
        agent = Agent.objects.select_related("memory_config").get(pk=agent_id)
        return _move(run, agent, now=now)
    except (Agent.DoesNotExist, HippoError) as error:
        if not Agent.objects.filter(pk=agent_id).exists():
            logger.info("job %s: agent %s is gone", run.job.pk, agent_id)
            return {}
        if isinstance(error, MoveRefused):
            run.fail(str(error), is_final=True)
        raise


def reopen_abandoned(*, now: datetime) -> int:
    """Open what moves left frozen that were killed and then ended unrun; return how many.

    A run opens its source itself. One that was killed is run again, which does so, unless
    it is cancelled before or has had its tries.
    """
    ended = Job.objects.filter(
        kind="move",
        state__in=[JobState.FAILED, JobState.CANCELLED],
        finished_at__gte=now - _ABANDONED_FOR,
    )
    agent_ids = {payload["agent_id"] for payload in ended.values_list("payload", flat=True)}
    opened = 0
    for agent in Agent.objects.select_related("memory_config").filter(pk__in=agent_ids):
        try:
            opened += _reopen_abandoned(agent)
        except (DatabaseError, HippoError) as error:
            logger.warning("agent %s: its store may be left frozen: %s", agent.pk, error)
    return opened


def _move(run: Run, agent: Agent, *, now: datetime) -> dict[str, Any]:
    target = Place(run.job.payload["backend"], run.job.payload["sqlite_path"])
    checkpoint = run.job.checkpoint
    if checkpoint.get("switched") and Place.of(agent.memory_config) == target:
        return _settle(run, agent_at(agent, Place(*checkpoint["source"])), agent, checkpoint)
    with run.beating():
        here, there = placing.both(agent, target)
    placing.require_apart(here, there)
    source = Place.of(here.memory_config)
    copy = Copy(run, here, there)
    _reopen(here, run)  # a run before this one may have been killed
    try:
        _prepare(copy, now=now)
        _copy(copy)
        frozen_at = _freeze(here, run)
        summary = _verified(copy)
        checkpoint = {
            "switched": True, "source": [source.backend, source.sqlite_path], "result": summary,
        }  # fmt: skip
        _switch(copy, source, target, checkpoint, now=now)
    finally:
        _reopen(here, run)
    summary = _settle(run, here, there, checkpoint)
    seconds = time.monotonic() - frozen_at
    logger.info(
        "agent %s: moved from %s to %s, frozen for %.1f s", agent.pk, source, target, seconds
    )
    return summary


def _prepare(copy: Copy, *, now: datetime) -> None:
    """Freeze the target, whatever copy it holds; nobody else can come to it any more."""
    target = Place.of(copy.target.memory_config)
    placing.require_replaceable(copy.target)
    placing.note_former_store(copy.target, target, now=now)
    alias = store_alias(copy.target)
    Store.objects.using(alias).get_or_create(
        agent_id=copy.target.pk, defaults={"state": StoreState.FROZEN}
    )
    _freeze_target(copy.target, copy.run)


@writing.retried
def _freeze_target(target: Agent, run: Run) -> None:
    with held(run, target):
        placing.require_replaceable(target)
        among = [StoreState.OPEN, StoreState.MOVED, StoreState.LEFT]
        set_state(target, StoreState.FROZEN, among=among)


def _copy(copy: Copy) -> None:
    """Copy while the source takes writes, until little is left to be copied."""
    run, total = copy.run, maintenance.count_memories(copy.source)
    run.report(step=_COPYING, done=0, total=total)
    copying.sync(copy, thorough=True)
    run.report(step=_CHECKING, done=0, total=total)
    with run.beating():
        faulty = any(maintenance.check(copy.target, run.advance))
    if faulty:  # an old copy may be of an older analyzer
        with run.beating():
            maintenance.reindex(copy.target)
            faults = list(maintenance.check(copy.target))
        if faults:
            raise CopyDiffers(f"The copy's index is at fault: {faults[0].problem}")
    for _ in range(_ROUNDS):
        run.report(step=_CATCHING_UP, done=0, total=maintenance.count_memories(copy.source))
        if copying.sync(copy, thorough=False) <= _FEW:
            break


@writing.retried
def _freeze(source: Agent, run: Run) -> float:
    """Stop writes to the source; return when, by the monotonic clock.

    A write that has locked its scope is waited for, a later one is refused.
    """
    alias = store_alias(source)
    Store.objects.using(alias).get_or_create(agent_id=source.pk)
    with held(run, source) as store:
        if store.state not in {StoreState.OPEN, StoreState.FROZEN}:
            raise StoreNotOpen(
                f"The memories of agent {source.name} are {store.state} in the store that its "
                "configuration names; look whether that is the right one."
            )
        set_state(source, StoreState.FROZEN, among=[StoreState.OPEN])
    return time.monotonic()


def _verified(copy: Copy) -> dict[str, Any]:
    """Copy what is late from the frozen source and compare all; return the summary.

    A recall that was being counted when the source froze, or a record that has grown old,
    may still change it: then once more.
    """
    run, difference = copy.run, None
    for _ in range(_ROUNDS):
        run.report(step=_COPYING_LATE, done=0)
        copying.sync(copy, thorough=False)
        run.report(step=_VERIFYING, done=0, total=2 * maintenance.count_memories(copy.source))
        here = agreement.tally(copy.source, run.advance)
        there = agreement.tally(copy.target, run.advance)
        difference = agreement.difference(here, there)
        if difference is None:
            break
    else:
        raise CopyDiffers(f"The copy differs: {difference}. Nothing was switched.")
    if users := agreement.miscounted_users(copy.target):
        raise CopyDiffers(f"The copy's counts are wrong for {users}. Nothing was switched.")
    return here.summary()


def _switch(
    copy: Copy, source: Place, target: Place, checkpoint: dict[str, Any], *, now: datetime
) -> None:
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        # the job's row first: whoever takes the job or cancels it waits for this, or it for them
        copy.run.report(step=_SWITCHING, checkpoint=checkpoint)
        actor = get_user_model().objects.filter(pk=copy.run.job.account_id or 0).first()
        placing.reconfigure(copy.source, source, target, actor=actor, now=now)


def _settle(run: Run, source: Agent, target: Agent, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Let writes into the target, and mark the source as an old copy."""
    _open_target(target, run)
    _retire(source, run)
    result: dict[str, Any] = checkpoint["result"]
    return result


@writing.retried
def _open_target(target: Agent, run: Run) -> None:
    with held(run, target):
        set_state(target, StoreState.OPEN, among=[StoreState.FROZEN])


@writing.retried
def _retire(source: Agent, run: Run) -> None:
    with held(run, source):
        set_state(source, StoreState.MOVED, among=[StoreState.OPEN, StoreState.FROZEN])


@writing.retried
def _reopen(source: Agent, run: Run) -> None:
    """Let writes into a frozen source again, if the agent still uses it."""
    alias = store_alias(source)
    if not Store.objects.using(alias).filter(agent_id=source.pk).exists():
        return  # nothing was ever saved
    with held(run, source):
        if placing.uses(source):
            set_state(source, StoreState.OPEN, among=[StoreState.FROZEN])


@writing.retried
def _reopen_abandoned(agent: Agent) -> bool:
    alias = store_alias(agent)
    with transaction.atomic(using=alias):
        frozen = Store.objects.using(alias).filter(agent_id=agent.pk, state=StoreState.FROZEN)
        if not frozen.select_for_update().exists() or placing.move_at_work(agent):
            return False
        if not placing.uses(agent):
            return False
        set_state(agent, StoreState.OPEN, among=[StoreState.FROZEN])
    logger.warning("agent %s: its store was left frozen by a move; open again", agent.pk)
    return True
