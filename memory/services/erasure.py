"""Erasing whole scopes, and all that an agent remembers, wherever that is."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import DEFAULT_DB_ALIAS, transaction

from agents.models import Agent, MemoryConfig
from memory.databases import Place, agent_at, store_alias
from memory.models import (
    AgentDay,
    FormerStore,
    Memory,
    MemoryRevision,
    Scope,
    Store,
    StoreState,
)
from memory.services import writing
from memory.services.golden import questions as golden
from memory.services.transfers import job_files

_CHUNK = 500


def erase_agent(agent: Agent) -> int:
    """Erase all memories of all users of `agent`, former stores first.

    Returns how many there were in the present store. From its beginning no write of the
    agent's is taken any more; its row among the stores says so until `forget_agent`.
    Works in chunks: killed half-way, a second call finishes.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        # inside the deletion of an agent this lock holds to its end: a move that is at work
        # has either switched by now, or finds the agent gone
        config = MemoryConfig.objects.select_for_update().filter(agent=agent).first()
    agent.memory_config = config or agent.memory_config
    for there, _ in former_places(agent, agent.pk):
        erase_store(there)
    return erase_store(agent)


def erase_store(agent: Agent) -> int:
    """Erase the memories of `agent` in the store it is configured for, and nowhere else.

    Returns how many there were; `forget_store` takes the mark away that keeps writers out.
    """
    alias = store_alias(agent)
    Store.objects.using(alias).update_or_create(
        agent_id=agent.pk, defaults={"state": StoreState.ERASED}
    )
    scopes = Scope.objects.for_agent(agent)
    scopes.update(state=StoreState.ERASED)
    _forget_days(agent, agent.pk)
    return sum(erase_scope(scope) for scope in scopes)


def forget_agent(agent: Agent, agent_id: int) -> None:
    """Remove the marks of an erased agent whose own row is gone: no scope is made without it.

    What a move that was at work put into a former store meanwhile goes, too, and so do its
    imports and exports and its golden questions.
    """
    job_files.forget_agent(agent_id)
    golden.forget_agent(agent_id)
    for there, former in former_places(agent, agent_id):
        erase_store(there)
        forget_store(there)
        former.delete()
    _forget_days(agent, agent_id)  # recalls of the last second were counted since
    Store.objects.using(store_alias(agent)).filter(agent_id=agent_id).delete()


def forget_store(agent: Agent) -> None:
    """Remove the mark of an erased store, so that a move can make it anew."""
    Store.objects.using(store_alias(agent)).filter(agent_id=agent.pk).delete()


def _forget_days(agent: Agent, agent_id: int) -> None:
    AgentDay.objects.using(store_alias(agent)).filter(agent_id=agent_id).delete()


def former_places(agent: Agent, agent_id: int) -> Iterator[tuple[Agent, FormerStore]]:
    """Yield the agent as if configured for each of its former stores, and what names it.

    A deleted instance has lost its id, so that is given apart.
    """
    for former in FormerStore.objects.filter(agent_id=agent_id).order_by("pk"):
        there = agent_at(agent, Place.of(former))
        there.pk = agent_id
        yield there, former


def erase_scope(scope: Scope) -> int:
    """Erase a scope with its memories, revisions and index rows; return how many memories."""
    alias = scope._state.db
    erased = 0
    while True:
        with transaction.atomic(using=alias):
            locked = Scope.objects.using(alias).select_for_update().filter(pk=scope.pk).first()
            if locked is None:
                return erased
            memories = Memory.objects.of_scope(locked)
            ids = list(memories.order_by("id").values_list("id", flat=True)[:_CHUNK])
            if not ids:
                locked.delete()
                return erased
            writing.unindex(locked, ids)
            MemoryRevision.objects.using(alias).filter(memory_id__in=ids).delete()
            memories.filter(pk__in=ids).delete()
            erased += len(ids)
