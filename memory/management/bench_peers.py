"""The parts of bench_peers: what is stored and asked, and taking times and recall in turn."""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings

from memory.drafts import parse_time
from memory.indexing import embedding_text
from memory.management import peers
from memory.management.bench import milliseconds
from memory.management.peers import Embedding, Peer
from memory.models import Memory
from memory.services.evaluation.metrics import recall_at
from memory.services.evaluation.sets import APART, LabelledSet

OWN = 500
"""The memories of the user who searches, and of each other user."""
QUERIES = 400
"""Each is asked once of a store and size, for what was asked before may be remembered."""
SAVES = 100
_WARM, _TURN = 40, 20
"""So many queries come first, uncounted; so many a store answers in its turn."""
_USER, _WRITER = "user-own", "user-writer"
_BATCH = 32


@dataclass(frozen=True, slots=True)
class Times:
    """Median milliseconds of the same searches by store, and of embedding their queries."""

    searches: dict[str, float]
    embedding: float


@dataclass(frozen=True, slots=True)
class Material:
    """The texts of all sets, those of the user who searches, and what that user asks."""

    texts: tuple[Memory, ...]
    own: tuple[Memory, ...]
    queries: tuple[str, ...]


def read_texts(labelled: LabelledSet, *, now: datetime) -> dict[str, list[Memory]]:
    """Return the memories of a set by scope, unsaved, in order; those without a time are new."""
    found: dict[str, list[Memory]] = {}
    with labelled.memories.open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            memory = Memory(
                type=record["type"],
                name=record["name"],
                description=record.get("description") or "",
                content=record["content"],
                external_id=record["id"],
                created_at=parse_time(record.get("created_at")) or now,
            )
            found.setdefault(record["scope"], []).append(memory)
    return found


def choose(sets: Sequence[LabelledSet], texts: Sequence[Memory]) -> Material:
    """Draw queries of all sets, and `OWN` memories, answers to the first of them among these."""
    draw = random.Random(20261130)  # noqa: S311
    by_id = {str(text.external_id): text for text in texts}
    asked = [query for labelled in sets for query in labelled.queries if query.category != APART]
    queries = draw.sample(asked, min(QUERIES, len(asked)))
    answers = [name for query in queries[: OWN // 5] for name in sorted(query.relevant)]
    own = {name: by_id[name] for name in answers}
    for name in draw.sample(sorted(by_id), len(by_id)):
        if len(own) < OWN:
            own.setdefault(name, by_id[name])
    chosen = list(own.values())[:OWN]
    draw.shuffle(chosen)
    return Material(tuple(texts), tuple(chosen), tuple(query.text for query in queries))


def prepare(
    embedding: Embedding, texts: Sequence[Memory], advance: Callable[[int], object]
) -> None:
    """Embed every text once."""
    for start in range(0, len(texts), _BATCH):
        batch = [embedding_text(text) for text in texts[start : start + _BATCH]]
        embedding.prepare(batch)
        advance(len(batch))


@contextmanager
def opened(embedding: Embedding, *, now: datetime) -> Iterator[list[Peer]]:
    """Open an empty store of each, and take them away at the end."""
    with ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="bench-peers-", dir=settings.DATA_DIR)
        )
        yield [
            stack.enter_context(store(Path(folder), embedding, now=now))
            for store in peers.OPEN.values()
        ]


def add_own(stores: Sequence[Peer], material: Material) -> None:
    """Store the memories of the user who searches."""
    for store in stores:
        store.add(_USER, material.own)


def add_others(
    store: Peer, material: Material, start: int, end: int, advance: Callable[[int], object]
) -> None:
    """Store memories of others until there are `end`, where `start` are there."""
    for first in range(start, end, OWN):
        count = min(OWN, end - first, len(material.texts))
        draw = random.Random(first)  # noqa: S311
        store.add(f"user-{first}", draw.sample(material.texts, count))
        advance(count)


def time_searches(stores: Sequence[Peer], embedding: Embedding, queries: Sequence[str]) -> Times:
    """Return the medians of searches, the stores in turn; each query is asked once."""
    searches: dict[str, list[float]] = {store.name: [] for store in stores}
    embeddings = []
    for start in range(0, len(queries), _TURN):
        turn = queries[start : start + _TURN]
        for store in stores:
            searches[store.name] += [
                milliseconds(lambda: store.search(_USER, query))  # noqa: B023
                for query in turn
            ]
        embeddings += [milliseconds(lambda: embedding.embed([query])) for query in turn]  # noqa: B023
    medians = {name: statistics.median(times[_WARM:]) for name, times in searches.items()}
    return Times(medians, statistics.median(embeddings[_WARM:]))


def saves_a_second(store: Peer, material: Material) -> float:
    """Return how many memories one after the other a store takes, texts it does not know."""
    texts = [
        Memory(
            type=text.type,
            name=text.name,
            description="",
            content=f"{text.content} ({number})",
            external_id=f"save-{number}",
            created_at=text.created_at,
        )
        for number, text in enumerate(material.own[:SAVES])
    ]
    store.add(_WRITER, material.own[:1])
    started = time.perf_counter()
    for text in texts:
        store.save(_WRITER, text)
    return len(texts) / (time.perf_counter() - started)


def recalls(
    stores: Sequence[Peer],
    labelled: LabelledSet,
    advance: Callable[[int], object],
    *,
    now: datetime,
) -> dict[str, float]:
    """Return recall@10 of each store over the questions of a set, each asked in its scope."""
    users = {}
    for number, (scope, texts) in enumerate(read_texts(labelled, now=now).items()):
        users[scope] = f"set-{labelled.name}-{number}"
        for store in stores:
            store.add(users[scope], texts)
    measure = recall_at(peers.LIMIT)
    asked = [query for query in labelled.queries if query.category != APART]
    sums = {store.name: 0.0 for store in stores}
    for query in asked:
        for store in stores:
            found = store.search(users[query.scope], query.text, query.asked_at)
            sums[store.name] += measure(found, query.relevant)
        advance(1)
    return {name: total / max(len(asked), 1) for name, total in sums.items()}
