"""Search: by words, by meaning or by both, with a threshold below which it is silent."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agents.models import Agent
from memory.llm.embeddings import Embedder, EmbeddingFailed
from memory.models import Memory, Scope
from memory.retrieval import embedder, hybrid, lexical
from memory.retrieval.bm25f import Ranked
from memory.retrieval.calibration import score_of
from memory.retrieval.candidates import MAX_CANDIDATES, SearchRequest, Wanted
from memory.retrieval.lexical import Found, Hit, SearchResult
from memory.retrieval.priors import lifted, priors
from memory.retrieval.vectors import Floats, ScopeVectors, cache

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


def search(
    agent: Agent, user_id: str, request: SearchRequest, *, mode: str = "auto", now: datetime
) -> SearchResult:
    """Return the memories of (agent, user_id) that fit `request.query`, best first.

    `auto` is hybrid where a model embeds, and by words where none does. Three queries by words:
    scope, candidates, memories; by meaning one more for what was written since the last search,
    and one where a filter is to be checked. Where the model fails, words answer and `degraded`
    says so.
    """
    model = None if mode == "lexical" or request.as_you_type else embedder.current()
    degraded = [NO_VECTORS] if model is None and mode in {"vector", "hybrid"} else []
    scope = lexical.find_scope(agent, user_id)
    if scope is None or request.limit < 1:
        return SearchResult(mode=_mode_of(mode, has_meaning=model is not None))
    wanted = Wanted([scope], request, now)
    found = lexical.find(wanted)
    meaning = None
    if model is not None and found.is_askable:
        try:
            meaning = understood(model, scope, request.query)
        except EmbeddingFailed as error:
            logger.warning("agent %s: words alone answer: %s", agent.pk, error)
            degraded.append(EMBEDDING_FAILED)
    hits, nearest = _answer(wanted, found, meaning, mode)
    return SearchResult(
        hits,
        found.truncated or (meaning is not None and meaning.vectors.is_cut),
        found.by_type,
        _mode_of(mode, has_meaning=meaning is not None),
        tuple(degraded),
        bool(nearest),
        nearest,
    )


def understood(model: Embedder, scope: Scope, query: str) -> Meaning:
    """Return what a query means in a scope. Raises EmbeddingFailed."""
    vectors = cache.get(scope, model.model)
    return Meaning(model.embed([query])[0], vectors)


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
    fitting = [each for each in best if each.score >= least]
    hits = _hits(wanted, fitting, found, limit)
    if fitting or not best:
        return hits, ()
    return (), lexical.fetch(wanted, best[:_NEAREST], found.words)


def _ranked(wanted: Wanted, found: Found, meaning: Meaning | None, mode: str) -> list[Ranked]:
    """Return the best, best first, and some more than the limit."""
    count = wanted.request.limit + _SPARE
    # what is asked letter by letter means nothing
    if meaning is None or found.literals or not len(meaning.vectors.ids):
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


def _allowed(wanted: Wanted, ids: Sequence[int], count: int) -> set[int]:
    """Return the first `count` of `ids` that may be recalled and meet the filter, or more.

    Nearly always the first look is enough, and then it is one query.
    """
    allowed: set[int] = set()
    start, step = 0, count
    while start < len(ids) and len(allowed) < count:
        asked = Memory.objects.of_scopes(wanted.scopes).filter(pk__in=ids[start : start + step])
        allowed.update(wanted.recalled(asked).values_list("pk", flat=True))
        start, step = start + step, min(step * 4, _IN_ONE_STATEMENT)
    return allowed


def _hits(wanted: Wanted, best: Sequence[Ranked], found: Found, limit: int) -> tuple[Hit, ...]:
    """Return the memories with their priors, which may change the order of likes."""
    hits = [
        Hit(hit.memory, lifted(hit.score, priors(hit.memory, now=wanted.now)), hit.matched)
        for hit in lexical.fetch(wanted, best, found.words)
    ]
    hits.sort(key=lambda hit: (-hit.score, -hit.memory.created_at.timestamp(), -hit.memory.pk))
    return tuple(hits[:limit])
