"""The vector cache: right across processes, bounded in memory, flat in queries."""

import numpy as np
import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from memory import fts
from memory.databases import store_alias
from memory.models import Memory, MemoryVector, Scope
from memory.retrieval import vectors
from memory.retrieval.lexical import find_scope
from memory.retrieval.scope_cache import ScopeCache
from memory.retrieval.vectors import of_scope, pack
from memory.services import memories
from tests.conftest import MING

MODEL = "test-8"


def direction(number, dimension=8):
    """Return a vector of length 1 that no other number has."""
    made = np.random.default_rng(number).normal(size=dimension).astype(np.float32)
    return made / np.linalg.norm(made)


def embed(agent, user_id, *memory_ids, model=MODEL, dimension=8):
    """Write vectors as the worker does: the scope's stamp rises with them."""
    alias = store_alias(agent)
    scope = find_scope(agent, user_id)
    stamp = scope.vector_stamp + 1
    for pk in memory_ids:
        [packed] = pack(direction(pk, dimension)[None, :])
        MemoryVector.objects.using(alias).filter(pk=pk).update(
            model=model, dimension=dimension, vector=packed, stamp=stamp
        )
    Scope.objects.using(alias).filter(pk=scope.pk).update(vector_stamp=stamp)


def held(cache, agent, user_id="ming"):
    """Return what a cache has of a scope, and how many queries that took."""
    scope = find_scope(agent, user_id)
    with CaptureQueriesContext(connections[store_alias(agent)]) as asked:
        found = of_scope(scope, MODEL, cache)
    return found, len(asked)


def test_a_scope_is_read_once_and_then_what_was_written_since(agent, remember):
    first, second = remember(agent, "ming", "Ming deploys"), remember(agent, "ming", "Ming rests")
    embed(agent, "ming", first.pk)
    cache = ScopeCache()

    loaded, _ = held(cache, agent)
    again, queries = held(cache, agent)
    embed(agent, "ming", second.pk)
    renewed, queries_after = held(cache, agent)

    assert (loaded.ids.tolist(), loaded.waiting) == ([first.pk], {second.pk})
    assert again is loaded
    assert queries == 0
    assert (renewed.ids.tolist(), renewed.waiting) == ([first.pk, second.pk], frozenset())
    assert queries_after == 1


def test_two_processes_have_the_same_whatever_became_of_a_memory(agent, remember, now):
    kept, changed, trashed, purged = (remember(agent, "ming", f"tea {n}") for n in range(4))
    embed(agent, "ming", kept.pk, changed.pk, trashed.pk, purged.pk)
    here = ScopeCache()
    held(here, agent)

    memories.update(agent, "ming", changed.pk, {"content": "coffee"}, actor=MING, now=now)
    memories.trash(agent, "ming", trashed.pk, actor=MING, now=now)
    memories.purge(agent, "ming", purged.pk)
    found, _ = held(here, agent)
    elsewhere, _ = held(ScopeCache(), agent)

    assert found.ids.tolist() == elsewhere.ids.tolist() == [kept.pk]
    assert found.waiting == elsewhere.waiting == {changed.pk}
    assert np.allclose(found.centred, elsewhere.centred)


def test_vectors_of_another_model_or_dimension_are_none(agent, remember):
    one, other, third = (remember(agent, "ming", f"tea {n}") for n in range(3))
    embed(agent, "ming", one.pk)
    embed(agent, "ming", other.pk, model="other-16", dimension=16)
    cache = ScopeCache()

    found, _ = held(cache, agent)
    embed(agent, "ming", one.pk, other.pk, third.pk, dimension=16)
    changed, _ = held(cache, agent)

    assert (found.ids.tolist(), found.matrix.shape) == ([one.pk], (1, 8))
    assert changed.matrix.shape == (3, 16)


def test_the_cache_stays_within_its_bound(agent, remember, settings):
    settings.SEARCH_CACHE_MB = 2
    users = [f"u{number}" for number in range(12)]
    for user_id in users:
        saved = [remember(agent, user_id, f"tea {n}") for n in range(3)]
        embed(agent, user_id, *(memory.pk for memory in saved), dimension=8_192)
    cache, most = ScopeCache(), 0

    for user_id in users:
        held(cache, agent, user_id)
        most = max(most, cache.nbytes)
    last, queries = held(cache, agent, users[-1])
    first, queries_first = held(cache, agent, users[0])

    assert 2**19 < most <= 2**20
    assert (queries, len(last.ids)) == (0, 3)
    assert (queries_first > 0, len(first.ids)) == (True, 3)


def test_of_a_very_large_scope_the_newest_are_searched_by_meaning(agent, remember, settings):
    saved = [remember(agent, "ming", f"tea {n}").pk for n in range(8)]
    embed(agent, "ming", *saved, dimension=8_192)
    settings.SEARCH_CACHE_MB = 2

    found, _ = held(ScopeCache(), agent)

    assert found.is_cut
    assert found.ids.tolist() == saved[-len(found.ids) :]
    assert 0 < len(found.ids) < 8


def test_a_scope_is_found_by_its_index(agent, remember):
    saved = remember(agent, "ming", "Ming deploys")
    scope = find_scope(agent, "ming")
    assert saved.pk

    plan = fts.explain(MemoryVector.objects.of_scope(scope).filter(stamp__gt=0))

    assert "vector_by_stamp" in plan


def test_cosines_are_those_without_the_scopes_mean(agent, remember):
    saved = [remember(agent, "ming", f"tea {n}").pk for n in range(30)]
    embed(agent, "ming", *saved)
    found, _ = held(ScopeCache(), agent)
    query = direction(7)

    centre = np.mean([direction(pk) for pk in saved], axis=0) * 0.85 * 30 / 40
    apart = [direction(pk) - centre for pk in saved]
    wanted = [
        each @ (query - centre) / np.linalg.norm(each) / np.linalg.norm(query - centre)
        for each in apart
    ]

    assert found.cosines(query) == pytest.approx(wanted, abs=2e-3)
    assert vectors.CENTRING == 0.85
    assert Memory.objects.for_agent(agent).count() == 30
