"""One agent in two stores, and the hold that a move's run has on either.

An agent is given twice, as if configured for either store (`databases.agent_at`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import transaction

from agents.models import Agent
from memory.databases import store_alias
from memory.errors import MoveRefused, StoreNotOpen
from memory.models import Job, JobState, Scope, Store, StoreState
from memory.querysets import ScopeQuerySet
from memory.services.jobs import JobLost, Run


@dataclass(frozen=True, slots=True)
class Copy:
    """A job's run, and the agent as configured for the store it copies from and to."""

    run: Run
    source: Agent
    target: Agent


@contextmanager
def held(run: Run, agent: Agent) -> Iterator[Store]:
    """Open a transaction in the agent's store with its row locked, as the job's one run.

    Every run takes this lock on both stores before it begins, so one that lost its job can
    write nothing more, however late it wakes: what it began is waited for, and what it
    begins afterwards ends here. Raises JobLost; StoreNotOpen where the agent is being erased.
    """
    alias = store_alias(agent)
    with transaction.atomic(using=alias):
        store = Store.objects.using(alias).select_for_update().filter(agent_id=agent.pk).first()
        mine = Job.objects.filter(pk=run.job.pk, claim=run.job.claim, state=JobState.RUNNING)
        # read, not written: a deletion holds `default` while it waits for this lock
        if not mine.exists():
            raise JobLost(f"Job {run.job.pk} is no longer this run's.")
        if store is None or store.state == StoreState.ERASED:
            raise StoreNotOpen(f"Agent {agent.name} is being deleted; nothing was moved.")
        yield store


def set_state(agent: Agent, state: StoreState, *, among: Collection[StoreState]) -> None:
    """Set the state of a locked store and its scopes where it is one of `among`."""
    stores = Store.objects.using(store_alias(agent)).filter(agent_id=agent.pk)
    stores.filter(state__in=among).update(state=state)
    Scope.objects.for_agent(agent).filter(state__in=among).update(state=state)


def require_frozen(store: Store) -> None:
    """Raise MoveRefused where a target that was frozen is so no more."""
    if store.state != StoreState.FROZEN:
        raise MoveRefused("Somebody else took the target into use; the move ended. Start it again.")


def lock_scopes(target: Agent, users: Collection[str]) -> dict[str, Scope]:
    """Return users' scopes in the held target by user_id, locked, made where they are missing."""
    scopes = scopes_of(target, users)
    missing = set(users) - set(scopes.values_list("user_id", flat=True))
    Scope.objects.using(store_alias(target)).bulk_create(
        [
            Scope(agent_id=target.pk, user_id=user_id, state=StoreState.FROZEN)
            for user_id in sorted(missing)
        ]
    )
    return {scope.user_id: scope for scope in scopes.select_for_update()}


def scopes_of(agent: Agent, users: Iterable[str]) -> ScopeQuerySet:
    """Return the scopes that `users` have in the agent's store."""
    return Scope.objects.for_agent(agent).filter(user_id__in=set(users))
