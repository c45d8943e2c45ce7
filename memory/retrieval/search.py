"""Search: by words, by meaning or by both, silent below a threshold."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.conf import settings
from django.db import models
from django.utils import timezone
from numpy.typing import NDArray

from agents.models import Agent
from memory import prepared
from memory.filters import MemoryFilter
from memory.llm.embeddings import Embedder, EmbeddingFailed
from memory.models import Memory
from memory.retrieval import embedder, evidence, hybrid, lexical, ranking
from memory.retrieval.calibration import WORDS_ALONE, evidence_of, leniency, log_odds
from memory.retrieval.candidates import MAX_CANDIDATES, SearchRequest, Wanted
from memory.retrieval.evidence import Evidence
from memory.retrieval.hybrid import Weighed
from memory.retrieval.lexical import Hit, SearchResult
from memory.retrieval.ranking import Given, Placed
from memory.retrieval.vectors import Floats, Ids, ScopeVectors, of_scope
from memory.understanding import synonyms, times
from memory.understanding.times import Span

MODES = ("auto", "lexical", "vector", "hybrid")
NO_VECTORS, EMBEDDING_FAILED = "no_vectors", "embedding_failed"
_NEAREST = 3
_STEP, _IN_ONE_STATEMENT = 40, 500

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

    `auto` is hybrid where a model embeds, and by words where none does or has yet. Ties go to the
    newest. Three queries where the scope was asked before: scope, what speaks for the best, and
    the memories; one more for candidates where it was not, on MySQL two, and one for what is
    found by meaning alone. Where the model fails, words answer and `degraded` says so.
    """
    scope = lexical.find_scope(agent, user_id)
    if scope is None or request.limit < 1:
        return SearchResult(mode=_mode_of(mode, has_meaning=_model(request, mode) is not None))
    wanted = Wanted([scope], request, now, lexical.synonyms_of([agent]))
    words = evidence.gather(wanted)
    understood = meaning_of(wanted, words, mode)
    meaning = understood.meaning
    spans = spans_of(wanted)
    best = rank(wanted, words, meaning, mode, spans)
    listed = ranking.shortlist(wanted, best, spans, words.traits)
    memories = lexical.read(wanted, [each.id for each in listed])
    kept = ranking.page(request, listed, memories)
    end = request.offset + request.limit
    is_silent = bool(best) and not kept
    if is_silent:
        nearest = ranking.scored(best, _NEAREST)
        memories = lexical.read(wanted, [each.id for each in nearest])
    return SearchResult(
        _hits(kept[request.offset : end], memories, words),
        words.truncated or (meaning is not None and meaning.vectors.is_cut),
        mode=_mode_of(mode, has_meaning=meaning is not None),
        degraded=understood.degraded,
        abstained=is_silent,
        nearest=_hits(nearest, memories, words) if is_silent else (),
        has_more=len(kept) > end,
    )


def meaning_of(wanted: Wanted, words: Evidence, mode: str) -> Understood:
    """Return what a query means in its scope, or why words alone answer."""
    [scope], request = wanted.scopes, wanted.request
    model = _model(request, mode)
    if model is None:
        return Understood(degraded=(NO_VECTORS,) if mode in {"vector", "hybrid"} else ())
    # what is asked letter by letter means nothing
    if words.literal or not words.is_askable:
        return Understood()
    vectors = of_scope(scope, model.model)
    if not len(vectors.ids):
        return Understood(degraded=(NO_VECTORS,))
    try:
        text = synonyms.spelt_out(request.query, wanted.synonyms.get(scope.agent_id, ()))
        query = model.embed([text], seconds=settings.EMBEDDING_QUERY_SECONDS)[0]
    except EmbeddingFailed as error:
        logger.warning("scope %s: words alone answer: %s", scope.pk, error)
        return Understood(degraded=(EMBEDDING_FAILED,))
    if not query.any():  # it means nothing to the model
        return Understood()
    if len(query) != vectors.matrix.shape[1]:  # another model under the same name, for now
        return Understood(degraded=(NO_VECTORS,))
    return Understood(Meaning(query, vectors))


def spans_of(wanted: Wanted) -> tuple[Span, ...]:
    """Return the times that a query names, by the clock of the server."""
    zone = timezone.get_current_timezone()
    return times.spans(wanted.request.query, now=wanted.now, zone=zone)


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


def rank(
    wanted: Wanted, words: Evidence, meaning: Meaning | None, mode: str, spans: Sequence[Span]
) -> list[Placed]:
    """Return what may be recalled, as far as it may come into the page, best first; ties by id."""
    if words.literal:
        scored = [(each.id, log_odds(each.score)) for each in words.literal]
        return [Placed(pk, evidence, evidence) for pk, evidence in scored]
    weighing = weigh(words, meaning, mode)
    weighed, off = weighing.weighed, weighing.off
    order = hybrid.order(weighed, MAX_CANDIDATES)
    if meaning:
        order = order[_may_be_recalled(wanted, words, weighed.ids[order])]
    ids, owned = weighed.ids[order], weighed.own[order]
    # float32 has no more digits, and likes are to be alike: then the newest comes first
    relevance = weighed.relevance[order].round(6)
    count = ranking.contending(relevance, wanted.request.reach, spans)
    return [
        Placed(pk, evidence_of(each - off), evidence_of(own - off), each)
        for pk, each, own in zip(
            ids[:count].tolist(), relevance[:count].tolist(), owned[:count].tolist(), strict=True
        )
    ]


@dataclass(frozen=True, slots=True)
class Weighing:
    """What speaks for each memory, and what is taken `off` before it becomes a score."""

    weighed: Weighed
    off: float
    has_meaning: bool


def weigh(words: Evidence, meaning: Meaning | None, mode: str) -> Weighing:
    """Weigh by words alone, or by meaning as well; by meaning alone in the mode `vector`."""
    if meaning is None:
        return Weighing(hybrid.weigh_words(words.shares), words.doubt - WORDS_ALONE, False)
    shares = None if mode == "vector" else words.shares
    off = words.doubt - leniency(meaning.vectors.memory_count)
    return Weighing(hybrid.weigh(meaning.vectors, meaning.query, shares), off, True)


def _may_be_recalled(wanted: Wanted, words: Evidence, ids: Ids) -> NDArray[np.bool_]:
    """Return which of `ids` may be recalled and meet the filter.

    What words found does. Of the others so many are looked up, in their order, as the page and
    what may come into it need; nearly always that is one query.
    """
    if words.alive is not None:
        if not len(words.alive):
            return np.zeros(len(ids), dtype=bool)
        # sorted, which isin would do again
        places = np.minimum(np.searchsorted(words.alive, ids), len(words.alive) - 1)
        return np.asarray(words.alive[places] == ids)
    is_found = np.isin(ids, words.shares.ids)
    others = ids[~is_found].tolist()
    allowed: set[int] = set()
    start, step, count = 0, _STEP, wanted.request.reach + _STEP
    while start < len(others) and len(allowed) < count:
        allowed |= _meeting(wanted, others[start : start + step])
        start, step = start + step, min(step * 4, _IN_ONE_STATEMENT)
    return np.asarray(is_found | np.isin(ids, list(allowed)))


def _meeting(wanted: Wanted, ids: list[int]) -> set[int]:
    """Return those of `ids` that may be recalled and meet the filter; one query."""
    if wanted.filter != MemoryFilter():
        asked = Memory.objects.of_scopes(wanted.scopes).filter(pk__in=ids)
        return set(wanted.recalled(asked).values_list("pk", flat=True))
    alias = wanted.alias

    def build(now: datetime, scope_id: int, *ids: int) -> models.QuerySet[Any, Any]:
        asked = Memory.objects.using(alias).filter(scope_id=scope_id, pk__in=ids)
        return asked.live(now).values_list("pk")

    # one shape for every forty ids: the last one fills the list up
    filled = [*ids, *ids[-1:] * (-len(ids) % _STEP)]
    values: list[int | datetime] = [wanted.now, wanted.scopes[0].pk, *filled]
    rows = prepared.run(("live", len(filled)), build, values, alias, convert=False)
    return {row[0] for row in rows}


def _hits(
    given: Sequence[Given], memories: Mapping[int, Memory], words: Evidence
) -> tuple[Hit, ...]:
    """Return what is given with the words that it holds."""
    literals = tuple(words.words.values()) if words.literal else ()
    hits = []
    for each in given:
        if memory := memories.get(each.id):
            terms = words.shares.terms_of(each.id)
            matched = tuple(word for term, word in words.words.items() if term in terms)
            hits.append(Hit(memory, each.score, literals or matched))
    return tuple(hits)
