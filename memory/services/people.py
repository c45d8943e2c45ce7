"""How much agents remember of whom, for those who operate them: counts, never contents."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.db import DatabaseError

from agents.models import Agent, Identity
from memory.databases import Place, store_alias
from memory.errors import BackendUnavailable
from memory.models import Scope
from memory.querysets import ScopeQuerySet
from memory.services.library import Shelf

logger = logging.getLogger(__name__)
Look = Callable[[ScopeQuerySet, int], Iterable[Scope]]
"""Chooses scopes of a store in which so many agents keep their memories."""


@dataclass(frozen=True, slots=True)
class Known:
    """Shelves, and the stores that did not answer, by name: what these hold is missing."""

    shelves: list[Shelf] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)


def known_of(accounts: Sequence[Any]) -> tuple[dict[int, list[Shelf]], list[str]]:
    """Return the shelves of each account by its key, and the stores that did not answer.

    The accounts' identities are prefetched; one query for the agents, and one a store.
    """
    wanted = {identity.user_id for each in accounts for identity in each.identities.all()}
    known = _look(lambda scopes, _: scopes.filter(user_id__in=wanted).order_by("user_id", "pk"))
    by_user: dict[str, list[Shelf]] = defaultdict(list)
    for shelf in known.shelves:
        by_user[shelf.user_id].append(shelf)
    owned: dict[int, list[Shelf]] = {}
    for account in accounts:
        found = {
            (shelf.agent.name, shelf.user_id): shelf
            for identity in account.identities.all()
            for shelf in by_user[identity.user_id]
            if identity.agent_id in {None, shelf.agent.pk}
        }
        owned[account.pk] = [found[place] for place in sorted(found)]
    return owned, known.silent


def unclaimed(user_id: str = "", *, limit: int) -> Known:
    """Return at most `limit` shelves that no account owns, those with most memories first.

    With `user_id` only that user's. Two queries, and one a store, which sorts its scopes.
    """
    anywhere: set[str] = set()
    bound: set[tuple[str, int]] = set()
    identities = Identity.objects.filter(user_id=user_id) if user_id else Identity.objects.all()
    for name, agent_id in identities.values_list("user_id", "agent_id"):
        if agent_id is None:
            anywhere.add(name)
        else:
            bound.add((name, agent_id))

    def look(scopes: ScopeQuerySet, agents: int) -> Iterable[Scope]:
        if user_id:
            scopes = scopes.filter(user_id=user_id)
        # left out here and not by the query, which takes only so many parameters; no more
        # than these can be in the way
        most = limit + len(anywhere) * agents + len(bound)
        rows = scopes.order_by("-memory_count", "pk")[:most].iterator()
        free = (
            each
            for each in rows
            if each.user_id not in anywhere and (each.user_id, each.agent_id) not in bound
        )
        return islice(free, limit)

    known = _look(look)
    known.shelves.sort(key=lambda shelf: (-shelf.scope.memory_count, shelf.user_id))
    return Known(known.shelves[:limit], known.silent)


def known_as(user_id: str, agent: Agent | None) -> Known:
    """Return the shelves of a user_id, of one agent or of every one, whoever owns them."""
    known = _look(lambda scopes, _: scopes.filter(user_id=user_id))
    if agent is None:
        return known
    return Known([shelf for shelf in known.shelves if shelf.agent == agent], known.silent)


def is_known(agent: Agent, user_id: str) -> bool:
    """Return whether `agent` has anything of `user_id`. Raises what a silent store raises."""
    return Scope.objects.of_user(agent, user_id).exists()


def _look(look: Look) -> Known:
    """Return what is looked for in every store; one that does not answer is named."""
    by_place: dict[Place, dict[int, Agent]] = defaultdict(dict)
    for agent in Agent.objects.filter(memory_config__isnull=False).select_related("memory_config"):
        by_place[Place.of(agent.memory_config)][agent.pk] = agent
    known = Known()
    for place, agents in by_place.items():
        try:
            scopes = Scope.objects.using(store_alias(next(iter(agents.values()))))
            found = list(look(scopes.filter(kind="user", agent_id__in=agents), len(agents)))
        except (DatabaseError, BackendUnavailable) as error:
            logger.warning("store %s does not answer: %s", place, type(error).__name__)
            known.silent.append(str(place))
        else:
            known.shelves.extend(
                Shelf(agents[scope.agent_id], scope.user_id, scope) for scope in found
            )
    return known
