"""Upkeep of the index: is it what the rows say, and making it anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.db import connections, transaction
from django.db.models import Count, Max, Sum
from django.db.models.functions import Coalesce

from agents.models import Agent
from memory import fts
from memory.databases import store_alias
from memory.indexing import Analysis, analyze, index_row, is_whole
from memory.models import Memory, MemoryTerms, MemoryVector, Scope, Status
from memory.services import writing

_CHUNK = 200


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong; `memory_id` is 0 where it concerns a whole scope or store."""

    user_id: str
    memory_id: int
    problem: str


def find_orphans(alias: str) -> int:
    """Return how many memories of a store belong to agents that are no more."""
    agents = list(Agent.objects.values_list("pk", flat=True))
    scopes = Scope.objects.using(alias).filter(kind="user").exclude(agent_id__in=agents)
    return scopes.aggregate(total=Count("memories"))["total"]


def count_memories(agent: Agent) -> int:
    """Return how many memories `agent` has, the trash included."""
    return Memory.objects.for_agent(agent).count()


def check(agent: Agent, on_progress: Callable[[int], object] = lambda _: None) -> Iterator[Fault]:
    """Yield every difference between an agent's rows, its index rows and the engine.

    Reads all of the agent's memories and analyses them again; writes nothing.
    `on_progress` is told how many more memories were looked at. A memory that is
    being written at that moment can show as a fault: check again.
    """
    alias = store_alias(agent)
    if not fts.has_index(connections[alias]):
        yield Fault("", 0, "The full-text index or one of its triggers is missing.")
        return
    if fault := fts.index_fault(connections[alias]):
        yield Fault("", 0, f"The full-text index differs from its table: {fault}.")
    for scope in Scope.objects.for_agent(agent).order_by("pk").iterator():
        yield from _counts_differ(scope)
        for chunk in _chunks(scope):
            yield from _rows_differ(scope, chunk)
            on_progress(len(chunk))


def reindex(
    agent: Agent,
    on_progress: Callable[[int], object] = lambda _: None,
    *,
    after_scope: int = 0,
    on_scope: Callable[[Scope], object] = lambda _: None,
) -> int:
    """Analyse all memories of `agent` again and write their index rows; return how many.

    One transaction a chunk, so searches and saves go on meanwhile, and a reindex that
    was killed is finished by the next: scopes are taken by their number, from the one after
    `after_scope`, and `on_scope` hears of each that is finished.
    """
    alias = store_alias(agent)
    done = 0
    if not fts.has_index(connections[alias]) or fts.index_fault(connections[alias]):
        fts.rebuild_index(connections[alias])  # triggers would stumble over a broken one
    for scope in Scope.objects.for_agent(agent).filter(pk__gt=after_scope).order_by("pk"):
        _count_again(agent, scope)  # nothing can be taken from a count that is too low
        for chunk in _chunks(scope):
            _reindex(agent, scope, [memory.pk for memory in chunk])
            done += len(chunk)
            on_progress(len(chunk))
        _count_again(agent, scope)
        on_scope(scope)
    fts.refill_index(connections[alias])
    return done


@writing.retried
def _reindex(agent: Agent, scope: Scope, memory_ids: list[int]) -> None:
    alias = store_alias(agent)
    with transaction.atomic(using=alias):
        locked = Scope.objects.using(alias).select_for_update().get(pk=scope.pk)
        # what the text means is not what is wrong with an index
        known = list(MemoryVector.objects.of_scope(locked).filter(pk__in=memory_ids))
        writing.unindex(locked, memory_ids)
        # a row that stands under another scope is none of its counts
        for model in (MemoryTerms, MemoryVector):
            model.objects.using(alias).filter(memory_id__in=memory_ids).delete()
        kept = Memory.objects.of_scope(locked).kept().filter(pk__in=memory_ids)
        writing.index(locked, list(kept), known)


@writing.retried
def _count_again(agent: Agent, scope: Scope) -> None:
    alias = store_alias(agent)
    with transaction.atomic(using=alias):
        Scope.objects.using(alias).select_for_update().get(pk=scope.pk)
        Scope.objects.using(alias).filter(pk=scope.pk).update(**_totals(scope))


def optimize(alias: str) -> bool:
    """Merge a store's full-text index; return whether that could be done now."""
    return fts.optimize_index(connections[alias])


def _chunks(scope: Scope) -> Iterator[list[Memory]]:
    memories = Memory.objects.of_scope(scope).order_by("id").select_related("indexed", "embedded")
    # what is saved from now on is indexed rightly, and could keep us here for ever
    newest, last = memories.aggregate(newest=Max("pk"))["newest"] or 0, -1
    while chunk := list(memories.filter(pk__gt=last, pk__lte=newest)[:_CHUNK]):
        yield chunk
        last = chunk[-1].pk


def _totals(scope: Scope) -> dict[str, int]:
    rows = Memory.objects.of_scope(scope).filter(indexed__scope_id=scope.pk)
    return rows.aggregate(
        memory_count=Count("pk"), content_terms=Coalesce(Sum("indexed__content_terms"), 0)
    )


def _counts_differ(scope: Scope) -> Iterator[Fault]:
    for name, total in _totals(scope).items():
        if getattr(scope, name) != total:
            problem = f"The scope's {name} is {getattr(scope, name)}; its rows give {total}."
            yield Fault(scope.user_id, 0, problem)


def _rows_differ(scope: Scope, memories: list[Memory]) -> Iterator[Fault]:
    indexed: list[MemoryTerms] = []
    for memory in memories:
        row = getattr(memory, "indexed", None)
        if memory.status == Status.TRASHED:
            if row or hasattr(memory, "embedded"):
                yield Fault(scope.user_id, memory.pk, "It is in the trash and still indexed.")
            continue
        analysis = analyze(memory)
        if problem := _vector_fault(memory, scope, analysis):
            yield Fault(scope.user_id, memory.pk, problem)
        if row is None:
            yield Fault(scope.user_id, memory.pk, "It is not indexed.")
        else:
            right = index_row(memory, scope, analysis)
            if (row.terms, row.folded) != (right.terms, right.folded):
                problem = f"Its terms (analyzer {row.analyzer_version}) are not those of its text."
                yield Fault(scope.user_id, memory.pk, problem)
            indexed.append(row)
    # any one word of each row is enough to see that the engine holds the row
    words = {row.pk: row.terms.split()[0] for row in indexed if row.terms.strip()}
    query = fts.TermQuery(tuple(dict.fromkeys(words.values())))
    ids = list(words)
    found = set(
        Memory.objects.matching([scope], query).filter(pk__in=ids).values_list("pk", flat=True)
    )
    for memory_id in words.keys() - found:
        yield Fault(scope.user_id, memory_id, "The full-text index does not find it.")


def _vector_fault(memory: Memory, scope: Scope, analysis: Analysis) -> str | None:
    """Return what is wrong with a memory's vector; that it is still to be made is no fault."""
    row: MemoryVector | None = getattr(memory, "embedded", None)
    if row is None:
        return "It has no row for its vector."
    if row.scope_id != scope.pk:
        return "Its vector stands under another scope."
    if row.digest != analysis.digest:
        return "The digest beside its vector is not that of its content."
    if not is_whole(row):
        return f"Its vector of {row.dimension} numbers has {len(row.vector)} bytes."
    return None
