"""Erasing whole scopes, and all that an agent remembers."""

from __future__ import annotations

from django.db import transaction

from agents.models import Agent
from memory.databases import store_alias
from memory.models import Memory, MemoryRevision, Scope, Store, StoreState
from memory.services import writing

_CHUNK = 500


def erase_agent(agent: Agent) -> int:
    """Erase all memories of all users of `agent`; return how many there were.

    From its beginning no write of the agent's is taken any more; its row among the stores
    says so until `forget_agent`. Works in chunks: killed half-way, a second call finishes.
    """
    alias = store_alias(agent)
    Store.objects.using(alias).update_or_create(
        agent_id=agent.pk, defaults={"state": StoreState.ERASED}
    )
    scopes = Scope.objects.for_agent(agent)
    scopes.update(state=StoreState.ERASED)
    return sum(erase_scope(scope) for scope in scopes)


def forget_agent(agent: Agent, agent_id: int) -> None:
    """Remove the mark of an erased agent whose own row is gone: no scope is made without it."""
    Store.objects.using(store_alias(agent)).filter(agent_id=agent_id).delete()


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
