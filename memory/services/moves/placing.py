"""Which store an agent uses, which it used, and the change from one to another.

A store that an agent no longer uses, or does not use yet, has a FormerStore row as long as
anything of the agent's may be in it: so a deletion finds it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, DatabaseError, transaction

from agents import audit
from agents.models import Agent, AuditAction, Backend, MemoryConfig, validate_sqlite_path
from memory.databases import Place, agent_at, migrate_store, mysql_obstacle, same_store, store_alias
from memory.errors import (
    BackendUnavailable,
    InvalidMemory,
    MoveRefused,
    StoreNotOpen,
    WouldStrandMemories,
)
from memory.models import FormerStore, Job, Scope, Store, StoreState
from memory.services import erasure, maintenance, writing
from memory.services.moves import copying_counts
from memory.services.moves.holding import set_state

Former = tuple[FormerStore, str, int | None, str | None]
"""A store with an agent's memories that the agent does not use: row, alias, count, state.

The last two are None where it does not answer. State `moved` is an old copy, `left` was left
behind, `frozen` is a copy that a move did not finish.
"""


def change_store(
    agent: Agent,
    *,
    backend: str,
    sqlite_path: str,
    leave: bool = False,
    actor: Any = None,
    now: datetime,
) -> None:
    """Let `agent` use another store from now on, with the memories that are in it.

    Memories of the present store stay there, which `leave` must allow where there are any;
    the trash counts. They are kept, and found again on the way back. To the present store
    it does nothing. `actor` is the account that did it, in the audit.
    A writer that has not heard of the change gets StoreNotOpen.
    Raises WouldStrandMemories, InvalidMemory for a bad path, BackendUnavailable, StoreNotOpen
    while the present store takes no writes, and MoveRefused while a move is at work or
    where the other store holds an old or unfinished copy.
    """
    target = parse_place(backend, sqlite_path)
    source = Place.of(MemoryConfig.objects.get(agent_id=agent.pk))
    if source == target:
        return
    # before the other store is made: a refusal leaves no file behind
    here = agent_at(agent, source)
    _require_no_move(here)
    if not leave:
        _require_empty(here)
    here, there = both(agent, target)
    require_apart(here, there)
    _require_enterable(there)
    # opened before the change and not in it: killed between the two, the agent has its old
    # store; the other way round it would have none that is open
    note_former_store(there, target, now=now)
    for each in (here, there):
        Store.objects.using(store_alias(each)).get_or_create(agent_id=agent.pk)
    _open_left(there)
    _leave(here, there, leave=leave, actor=actor, now=now)


def former_stores(agent: Agent) -> list[Former]:
    """Return the stores that hold memories of `agent` besides its own, oldest first."""
    found = []
    for there, row in erasure.former_places(agent, agent.pk):
        alias, count, state = row.backend, None, None
        with suppress(DatabaseError, BackendUnavailable):
            alias = Place.of(row).alias()
            count, state = maintenance.count_memories(there), state_of(there)
        found.append((row, alias, count, state))
    return found


def confirm(agent: Agent, *, actor: Any = None, now: datetime) -> int:
    """Erase what `agent` has in stores that it does not use; return how many memories.

    What was left behind goes as well as old copies. `actor` is the account that did it, in the
    audit. Killed half-way, a second call finishes.
    Raises MoveRefused while a move is at work, and what a store raises that does not answer.
    """
    _require_no_move(agent)
    erased = 0
    for there, row in erasure.former_places(agent, agent.pk):
        Store.objects.using(store_alias(there)).get_or_create(
            agent_id=agent.pk, defaults={"state": StoreState.ERASED}
        )
        if _condemn(there, row):
            count = erasure.erase_store(there)
            erasure.forget_store(there)
            with transaction.atomic(using=DEFAULT_DB_ALIAS):
                place = str(Place.of(row))
                row.delete()
                audit.note(
                    actor, AuditAction.COPY_ERASED, agent=agent, detail=place, count=count, now=now
                )
            erased += count
    return erased


def parse_place(backend: str, sqlite_path: str) -> Place:
    """Return the store that is meant; MySQL needs no path. Raises InvalidMemory."""
    if backend not in Backend.values:
        raise InvalidMemory({"backend": f"This is {' or '.join(Backend.values)}."})
    if backend == Backend.MYSQL:
        return Place(backend, "")
    try:
        validate_sqlite_path(sqlite_path)
    except ValidationError as error:
        raise InvalidMemory({"sqlite_path": " ".join(error.messages)}) from error
    return Place(backend, sqlite_path)


def both(agent: Agent, target: Place) -> tuple[Agent, Agent]:
    """Return the agent as it is configured now, and as for `target`, made and migrated.

    Raises BackendUnavailable.
    """
    if target.backend == Backend.MYSQL and (obstacle := mysql_obstacle()):
        raise BackendUnavailable(obstacle)
    migrate_store(target.alias())
    config = MemoryConfig.objects.get(agent_id=agent.pk)
    return agent_at(agent, Place.of(config)), agent_at(agent, target)


def require_apart(here: Agent, there: Agent) -> None:
    """Raise MoveRefused where both are one store."""
    if same_store(store_alias(here), store_alias(there)):
        raise MoveRefused(
            f"Agent {here.name} keeps its memories in {Place.of(there.memory_config)} already; "
            "name another store."
        )


def require_replaceable(there: Agent) -> None:
    """Raise MoveRefused where a store holds more of the agent than an old copy."""
    state = state_of(there)
    _require_not_erased(there, state)
    if state in {StoreState.OPEN, StoreState.LEFT} and (count := maintenance.count_memories(there)):
        raise MoveRefused(
            f"{Place.of(there.memory_config)} holds {count} other memories of agent {there.name}, "
            "which a move would overwrite. Move to another store, or erase those first with "
            f"move_memories {there.name} --confirm."
        )


def state_of(agent: Agent) -> str | None:
    """Return the state of the agent's store, None where nothing is in it."""
    stores = Store.objects.using(store_alias(agent)).filter(agent_id=agent.pk)
    return stores.values_list("state", flat=True).first()


def uses(agent: Agent) -> bool:
    """Return whether the store that `agent` is given with is the one it is configured for."""
    place = Place.of(agent.memory_config)
    return MemoryConfig.objects.filter(agent_id=agent.pk, **place.named()).exists()


def key_of(agent: Agent) -> str:
    """Return the key of the job that moves the agent's memories."""
    return f"move {agent.pk}"


def move_at_work(agent: Agent) -> Job | None:
    """Return the agent's move that waits or runs."""
    return Job.objects.filter(active_key=key_of(agent)).first()


def at_work(agent: Agent, job: Job) -> MoveRefused:
    """Return the error for what must wait for a move."""
    target = Place(job.payload["backend"], job.payload["sqlite_path"])
    return MoveRefused(
        f"The memories of agent {agent.name} are being moved to {target} (job {job.pk}); "
        "wait for its end, or cancel it first."
    )


def note_former_store(agent: Agent, place: Place, *, now: datetime) -> None:
    """Note that something of the agent's is about to be in `place`.

    Raises StoreNotOpen where the agent is gone: its deletion might not have seen the note.
    """
    row, _ = FormerStore.objects.get_or_create(
        agent_id=agent.pk,
        backend=place.backend,
        sqlite_path=place.sqlite_path,
        defaults={"since": now},
    )
    if not Agent.objects.filter(pk=agent.pk).exists():
        row.delete()
        raise StoreNotOpen(f"Agent {agent.name} has been deleted.")


def reconfigure(agent: Agent, source: Place, target: Place, *, actor: Any, now: datetime) -> None:
    """Let the configuration name `target` where it names `source`, and note what is former.

    And who did it, in the audit: None for the shell.
    Raises MoveRefused where it names another by now.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        config = MemoryConfig.objects.filter(agent_id=agent.pk, **source.named())
        if not config.update(**target.named()):
            raise MoveRefused(
                f"The configuration of agent {agent.name} changed meanwhile; look at it, and "
                "ask again if you still want to."
            )
        former = FormerStore.objects.filter(agent_id=agent.pk)
        former.update_or_create(
            agent_id=agent.pk,
            backend=source.backend,
            sqlite_path=source.sqlite_path,
            defaults={"since": now},
        )
        former.filter(backend=target.backend, sqlite_path=target.sqlite_path).delete()
        detail = f"{source} → {target}"
        audit.note(actor, AuditAction.STORE_CHANGED, agent=agent, detail=detail, now=now)


@writing.retried
def _open_left(there: Agent) -> None:
    with transaction.atomic(using=store_alias(there)):
        _lock(there)
        _require_enterable(there)
        set_state(there, StoreState.OPEN, among=[StoreState.LEFT])


@writing.retried
def _leave(here: Agent, there: Agent, *, leave: bool, actor: Any, now: datetime) -> None:
    """Change over while no write can begin or end in either store."""
    source, target = Place.of(here.memory_config), Place.of(there.memory_config)
    with transaction.atomic(using=store_alias(here)):
        store = _lock(here)
        # waits for the writes that are at work
        list(Scope.objects.for_agent(here).select_for_update())
        if store is None or store.state != StoreState.OPEN:
            raise StoreNotOpen(
                f"The memories of agent {here.name} take no changes now; try again shortly."
            )
        _require_no_move(here)
        if not leave:
            _require_empty(here)
        set_state(here, StoreState.LEFT, among=[StoreState.OPEN])
        with transaction.atomic(using=store_alias(there)):
            store = _lock(there)
            if store is None or store.state != StoreState.OPEN:  # erased since it was opened
                raise MoveRefused(f"{target} has just been erased; ask again.")
            copying_counts.take_along(here, there)
            reconfigure(here, source, target, actor=actor, now=now)


@writing.retried
def _condemn(there: Agent, row: FormerStore) -> bool:
    """Set a store aside for erasing; return whether it still is one that may be erased."""
    with transaction.atomic(using=store_alias(there)):
        _lock(there)
        _require_no_move(there)
        if uses(there) or not FormerStore.objects.filter(pk=row.pk).exists():
            return False
        among = [state for state in StoreState if state != StoreState.ERASED]
        set_state(there, StoreState.ERASED, among=among)
        return True


def _lock(agent: Agent) -> Store | None:
    stores = Store.objects.using(store_alias(agent)).filter(agent_id=agent.pk)
    return stores.select_for_update().first()


def _require_no_move(agent: Agent) -> None:
    if job := move_at_work(agent):
        raise at_work(agent, job)


def _require_empty(agent: Agent) -> None:
    if count := maintenance.count_memories(agent):
        raise WouldStrandMemories(
            f"Agent {agent.name} has {count} memories in {Place.of(agent.memory_config)}, the "
            f"trash included. move_memories {agent.name} --to mysql (or --to sqlite --file "
            'other.db) takes them along; or leave them behind with "leave_memories": true and '
            "begin with what the other store holds."
        )


def _require_enterable(there: Agent) -> None:
    state = state_of(there)
    _require_not_erased(there, state)
    if state in {StoreState.MOVED, StoreState.FROZEN}:
        raise MoveRefused(
            f"{Place.of(there.memory_config)} holds an old copy of the memories of agent "
            f"{there.name}. Move the memories there, which brings it up to date, or erase it "
            f"first with move_memories {there.name} --confirm."
        )


def _require_not_erased(there: Agent, state: str | None) -> None:
    if state == StoreState.ERASED:
        raise MoveRefused(
            f"What {Place.of(there.memory_config)} held of agent {there.name} is being erased; "
            f"finish that with move_memories {there.name} --confirm, and ask again."
        )
