"""The parts of bench_search that concern meaning: vectors for the corpus, and more times."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agents.models import Agent
from memory.drafts import MemoryDraft
from memory.llm.embeddings import Embedder
from memory.management import bench
from memory.management.bench import Corpus, FillVector, milliseconds
from memory.models import Memory, MemoryVector, Scope
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.retrieval.vectors import pack
from memory.services import memories
from memory.services.embedding import Tally, embed_rows

_BATCH = 32


@dataclass(frozen=True, slots=True)
class Pair:
    """Medians in milliseconds of the same searches by words and meaning, and by words alone."""

    hybrid: float
    lexical: float


@dataclass(frozen=True, slots=True)
class Late:
    """Medians in milliseconds of hybrid searches that find the cache behind.

    `cold` has nothing cached, `saved` a memory that waits for its vector, `embedded` its vector.
    """

    cold: float
    saved: float
    embedded: float


def vectors_of(model: Embedder, corpus: Corpus, advance: Callable[[int], object]) -> FillVector:
    """Embed the corpus; return what gives the copies of its texts their vectors."""
    contents = [memory.content for memory, _ in corpus.texts]
    packed: dict[str, bytes] = {}
    for start in range(0, len(contents), _BATCH):
        batch = contents[start : start + _BATCH]
        packed |= zip(batch, pack(model.embed(batch)), strict=True)
        advance(len(batch))

    def fill(memory: Memory, row: MemoryVector) -> None:
        row.model, row.vector = model.model, packed[memory.content]
        row.dimension = len(row.vector) // 2

    return fill


def compare(agent: Agent, queries: Sequence[str], *, now: datetime) -> Pair:
    """Return the medians of hybrid and lexical searches, taken in turn, warm."""
    hybrid, lexical = [], []
    for query in queries:
        by_meaning, by_words = (
            _search(agent, query, "hybrid", now),
            _search(agent, query, "lexical", now),
        )
        by_meaning(), by_words()
        for _ in range(bench.REPEATS):
            hybrid.append(milliseconds(by_meaning))
            lexical.append(milliseconds(by_words))
    return Pair(statistics.median(hybrid), statistics.median(lexical))


def time_embedding(model: Embedder, queries: Sequence[str]) -> float:
    """Return the median milliseconds in which the model embeds one query."""
    return statistics.median(
        milliseconds(lambda: model.embed([query]))  # noqa: B023
        for query in queries
        for _ in range(bench.REPEATS)
    )


def time_late(agent: Agent, model: Embedder, queries: Sequence[str], *, now: datetime) -> Late:
    """Return the medians of searches after the cache was emptied, and after saves."""
    cold, saved, embedded = [], [], []
    for number, query in enumerate(queries):
        once = _search(agent, query, "hybrid", now)
        bench.forget_caches()
        cold.append(milliseconds(once))
        draft = MemoryDraft(type="project", content=f"{query} ({number})", name=f"note {number}")
        memories.save(agent, bench.USER, draft, now=now)
        saved.append(milliseconds(once))
        _embed(agent, model)
        embedded.append(milliseconds(once))
    return Late(*map(statistics.median, (cold, saved, embedded)))


def _search(agent: Agent, query: str, mode: str, now: datetime) -> Callable[[], object]:
    request = SearchRequest(query)
    return lambda: search(agent, bench.USER, request, mode=mode, now=now)


def _embed(agent: Agent, model: Embedder) -> None:
    """Give what was saved its vector, as the worker does."""
    scope = Scope.objects.of_user(agent, bench.USER).get()
    deque(embed_rows(MemoryVector.objects.of_scope(scope), model, Tally()), maxlen=0)
