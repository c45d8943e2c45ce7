"""Search: by words, by meaning or by both, with a threshold below which it is silent."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import models

from agents.models import Agent
from memory import prepared
from memory.filters import MemoryFilter
from memory.llm.embeddings import Embedder, EmbeddingFailed
from memory.models import Memory, Scope
from memory.retrieval import embedder, hybrid, lexical
from memory.retrieval.bm25f import Ranked
from memory.retrieval.calibration import log_odds, score_of
from memory.retrieval.candidates import MAX_CANDIDATES, SearchRequest, Wanted
from memory.retrieval.lexical import Found, Hit, SearchResult
from memory.retrieval.priors import MOST, lifted, priors
from memory.retrieval.vectors import Floats, ScopeVectors, of_scope

MODES = ("auto", "lexical", "vector", "hybrid")
NO_VECTORS, EMBEDDING_FAILED = "no_vectors", "embedding_failed"
_SPARE = 10
"""So many more are looked at than asked for: some are not live any more, and priors reorder."""
_NEAREST = 3
_IN_ONE_STATEMENT = 500

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A query's vector and its scope's vectors."""

    query: Floats
    vectors: ScopeVectors


@dataclass(frozen=True, slots=True)
class Understood:
    """The meaning of a query, or none; `degraded` where it was to be and is not."""

    meaning: Meaning | None = None
    degraded: tuple[str, ...] = ()


def search(
    agent: Agent, user_id: str, request: SearchRequest, *, mode: str = "auto", now: datetime
) -> SearchResult:
    """Return the memories of (agent, user_id) that fit `request.query`, best first.

    `auto` is hybrid where a model embeds, and by words where none does or has yet. Three queries
    by words: scope, candidates, memories; by meaning one more for what is found by it alone,
    and one for what was written since the last search. Where the model fails, words answer and
    `degraded` says so.
    """
    scope = lexical.find_scope(agent, user_id)
    if scope is None or request.limit < 1:
        return SearchResult(mode=_mode_of(mode, has_meaning=_model(request, mode) is not None))
    wanted = Wanted([scope], request, now)
    found = lexical.find(wanted)
    understood = meaning_of(scope, found, request, mode)
    meaning = understood.meaning
    hits, nearest = _answer(wanted, found, meaning, mode)
    return SearchResult(
        hits,
        found.truncated or (meaning is not None and meaning.vectors.is_cut),
        found.by_type,
        _mode_of(mode, has_meaning=meaning is not None),
        understood.degraded,
        bool(nearest),
        nearest,
    )


def meaning_of(scope: Scope, found: Found, request: SearchRequest, mode: str) -> Understood:
    """Return what a query means in a scope, or why words alone answer."""
    model = _model(request, mode)
    if model is None:
        return Understood(degraded=(NO_VECTORS,) if mode in {"vector", "hybrid"} else ())
    # what is asked letter by letter means nothing
    if found.literals or not found.is_askable:
        return Understood()
    vectors = of_scope(scope, model.model)
    if not len(vectors.ids):
        return Understood(degraded=(NO_VECTORS,))
    try:
        query = model.embed([request.query])[0]
    except EmbeddingFailed as error:
        logger.warning("scope %s: words alone answer: %s", scope.pk, error)
        return Understood(degraded=(EMBEDDING_FAILED,))
    return Understood(Meaning(query, vectors))


def _model(request: SearchRequest, mode: str) -> Embedder | None:
    """Return the model that the query is to be embedded by, None where words are to answer.

    A word that is still being typed means nothing yet.
    """
    return None if mode == "lexical" or request.as_you_type else embedder.current()


def _mode_of(mode: str, *, has_meaning: bool) -> str:
    """Return how it was searched in the end."""
    if not has_meaning:
        return "lexical"
    return "hybrid" if mode == "auto" else mode


def _answer(
    wanted: Wanted, found: Found, meaning: Meaning | None, mode: str
) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """Return the hits; where all that is there is noise, none and the nearest of it."""
    limit, least = wanted.request.limit, wanted.request.min_score
    best = _ranked(wanted, found, meaning, mode)
    # only these can come to it with their priors, and need be read
    within_reach = log_odds(least) - MOST
    near = [each for each in best if log_odds(each.score) >= within_reach]
    hits = [hit for hit in _lifted(wanted, near, found) if hit.score >= least]
    if hits or not best:
        return tuple(hits[:limit]), ()
    return (), tuple(_lifted(wanted, best[:_NEAREST], found))


def _ranked(wanted: Wanted, found: Found, meaning: Meaning | None, mode: str) -> list[Ranked]:
    """Return the best, best first, and some more than the limit."""
    count = wanted.request.limit + _SPARE
    if meaning is None:
        return lexical.ranked(wanted, found, count)
    [scope] = wanted.scopes
    words = {} if mode == "vector" else lexical.shares(scope, found)
    weighed = hybrid.weigh(
        meaning.vectors, meaning.query, {pk: share for pk, (share, _) in words.items()}
    )
    order = hybrid.order(weighed, MAX_CANDIDATES)
    ids, relevance = weighed.ids[order].tolist(), weighed.relevance[order].tolist()
    allowed = words.keys() | _allowed(wanted, [pk for pk in ids if pk not in words], count)
    best = [(pk, reached) for pk, reached in zip(ids, relevance, strict=True) if pk in allowed]
    return [
        Ranked(pk, score_of(reached), words[pk][1] if pk in words else ())
        for pk, reached in best[:count]
    ]


def _allowed(wanted: Wanted, ids: list[int], count: int) -> set[int]:
    """Return the first `count` of `ids` that may be recalled and meet the filter, or more.

    Nearly always the first look is enough, and then it is one query.
    """
    allowed: set[int] = set()
    start, step = 0, count
    while start < len(ids) and len(allowed) < count:
        allowed |= _recalled(wanted, ids[start : start + step])
        start, step = start + step, min(step * 4, _IN_ONE_STATEMENT)
    return allowed


def _recalled(wanted: Wanted, ids: list[int]) -> set[int]:
    """Return those of `ids` that may be recalled and meet the filter."""
    if wanted.request.filter != MemoryFilter():
        asked = Memory.objects.of_scopes(wanted.scopes).filter(pk__in=ids)
        return set(wanted.recalled(asked).values_list("pk", flat=True))
    alias = wanted.alias
    # one shape for every twenty ids: the last one fills the list up
    filled = [*ids, *ids[-1:] * (-len(ids) % 20)]

    def build(now: datetime, scope_id: int, *ids: int) -> models.QuerySet[Any, Any]:
        asked = Memory.objects.using(alias).filter(scope_id=scope_id, pk__in=ids)
        return asked.live(now).values_list("pk")

    values: list[int | datetime] = [wanted.now, wanted.scopes[0].pk, *filled]
    rows = prepared.run(("live", len(filled)), build, values, alias, convert=False)
    return {row[0] for row in rows}


def _lifted(wanted: Wanted, best: Sequence[Ranked], found: Found) -> list[Hit]:
    """Return the memories with their priors, which may change the order of likes."""
    hits = [
        Hit(hit.memory, lifted(hit.score, priors(hit.memory, now=wanted.now)), hit.matched)
        for hit in lexical.fetch(wanted, best, found.words)
    ]
    return sorted(hits, key=lambda hit: (hit.score, hit.memory.created_at, hit.memory.pk))[::-1]
