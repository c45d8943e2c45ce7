"""Named queries on memories; `in_scope` is the only door to one user's memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from django.db import models
from django.db.models import Q

from agents.models import Agent, is_user_id
from memory.databases import store_alias
from memory.fts import TermQuery, match_text, matches

if TYPE_CHECKING:
    from memory.models import Memory, MemoryTerms, MemoryVector, Scope  # noqa: F401


class ScopeQuerySet(models.QuerySet["Scope"]):
    """Scopes of one store."""

    def for_agent(self, agent: Agent) -> Self:
        """Return the scopes of `agent`'s users, in its store."""
        return self.using(store_alias(agent)).filter(kind="user", agent_id=agent.pk)

    def of_user(self, agent: Agent, user_id: str) -> Self:
        """Return the one scope of (agent, user_id), or none before its first save."""
        found = self.for_agent(agent)
        return found.filter(user_id=user_id) if is_user_id(user_id) else found.none()


class MemoryQuerySet(models.QuerySet["Memory"]):
    """Memories; every query begins with `for_agent` or `in_scope`."""

    def for_agent(self, agent: Agent) -> Self:
        """Return the memories of all users of `agent`, in its store.

        Several agents share a store, so the agent is a filter as well as a hint.
        """
        return self._hinted(agent).filter(scope__kind="user", scope__agent_id=agent.pk)

    def in_scope(self, agent: Agent, user_id: str) -> Self:
        """Return the memories of exactly this agent and user."""
        found = self.for_agent(agent)
        return found.filter(scope__user_id=user_id) if is_user_id(user_id) else found.none()

    def of_scope(self, scope: Scope) -> Self:
        """Return the memories of a scope that was looked up by agent and user."""
        return self.using(scope._state.db).filter(scope_id=scope.pk)

    def of_scopes(self, scopes: Sequence[Scope]) -> Self:
        """Return the memories of scopes, of one store, that were looked up by agent and user."""
        alias = str(scopes[0]._state.db)
        return self.using(alias).filter(scope_id__in=[scope.pk for scope in scopes])

    def live(self, now: datetime) -> Self:
        """Return what may be recalled: active and not expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), status="active")

    def lasting(self, now: datetime) -> Self:
        """Return what is recalled, or is so once it is not paused."""
        statuses = ("active", "paused")
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), status__in=statuses)

    def kept(self) -> Self:
        """Return what is not in the trash."""
        return self.exclude(status="trashed")

    def named(self, name: str) -> Self:
        """Return memories of exactly this name."""
        return self.filter(name=name)

    def tagged(self, tags: Iterable[str]) -> Self:
        """Return memories that carry every one of `tags`."""
        found = self
        for tag in tags:
            if "\n" in tag:  # no tag has one, but two tags side by side do
                return self.none()
            found = found.filter(tags__contains_exact=f"\n{tag}\n")
        return found

    def matching(self, scopes: Sequence[Scope], query: TermQuery) -> Self:
        """Return memories of `scopes`, of one store, in which any term of `query` occurs."""
        alias = str(scopes[0]._state.db)
        if not query:
            return self.using(alias).none()
        text, ids = match_text(query, alias), [scope.pk for scope in scopes]
        return self.matching_text(alias, ids, text, has_prefix=bool(query.prefixes))

    def matching_text(
        self, alias: str, scope_ids: Sequence[int], text: str, *, has_prefix: bool = False
    ) -> Self:
        """Return memories of scopes that match `text`, made by `match_text`.

        The scope is asked of the index row: with it asked of the memory, SQLite would
        walk the scope and look each memory up among the matches.
        """
        found = self.using(alias).filter(indexed__scope_id__in=scope_ids)
        return found.filter(matches(text, alias, has_prefix=has_prefix))

    def containing(self, literals: Iterable[str]) -> Self:
        """Return memories whose folded text contains every one of `literals`."""
        found = self
        for literal in literals:
            found = found.filter(indexed__folded__contains_exact=literal)
        return found

    def sampled(self, alias: str, count: int) -> list[tuple[Any, ...]]:
        """Return (status, scope, index row's scope and version) of a store's latest and first.

        Two look-ups by the primary key, however many memories there are.
        """
        rows = self.using(alias).values_list(
            "pk", "status", "scope_id", "indexed__scope_id", "indexed__analyzer_version"
        )
        found = {*rows.order_by("-pk")[:count], *rows.order_by("pk")[:count]}
        return [row[1:] for row in found]

    def newest_first(self) -> Self:
        """Return a total order: by creation, then by id."""
        return self.order_by("-created_at", "-id")

    def _hinted(self, agent: Agent) -> Self:
        queryset = self.all()
        queryset._add_hints(agent=agent)  # type: ignore[attr-defined]
        return queryset


class MemoryTermsQuerySet(models.QuerySet["MemoryTerms"]):
    """The index rows of one store."""

    def of_scope(self, scope: Scope) -> Self:
        """Return the index rows of a scope that was looked up by agent and user."""
        return self.using(scope._state.db).filter(scope_id=scope.pk)


class MemoryVectorQuerySet(models.QuerySet["MemoryVector"]):
    """The vectors of one store, those that are still to be made among them."""

    def of_scope(self, scope: Scope) -> Self:
        """Return the rows of a scope that was looked up by agent and user."""
        return self.using(scope._state.db).filter(scope_id=scope.pk)

    def pending(self, model: str) -> Self:
        """Return the rows that `model` has not embedded: new texts, and other models' vectors.

        Asks at once which other models there are: a step in an index each. Of an inequality
        SQLite would make a walk over all vectors.
        """
        return self.filter(model__in=list(self.models_but(model)))

    def models_but(self, model: str) -> Iterator[str]:
        """Yield which other models made vectors in the store, "" for those to be made."""
        everywhere = self.model._default_manager.using(self.db).order_by("model")
        names = everywhere.values_list("model", flat=True)
        name = names.first()
        while name is not None:
            if name != model:
                yield name
            name = names.filter(model__gt=name).first()

    def in_chunks(self, model: str, size: int) -> Iterator[Sequence[MemoryVector]]:
        """Yield the rows of a model by memory, with the memories' texts alone."""
        rows = self.filter(model=model).order_by("memory").select_related("memory")
        texts = (f"memory__{name}" for name in ("name", "description", "content"))
        rows, last = rows.only("scope_id", "stamp", "attempts", *texts), -1
        while chunk := list(rows.filter(memory__gt=last)[:size]):
            yield chunk
            last = chunk[-1].pk
