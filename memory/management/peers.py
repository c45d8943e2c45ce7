"""Hippo and two other stores behind one interface, for `bench_peers`.

All are given the same texts and the same embedding, and search inside one user's memories. The
others' packages are installed for the benchmark alone: they are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from agents.models import Agent
from memory.databases import store_alias
from memory.drafts import MemoryDraft
from memory.filters import MemoryFilter
from memory.indexing import analyze, embedding_text, index_row
from memory.llm.embeddings import Embedder, Vectors
from memory.management import bench
from memory.models import Memory, MemoryVector, Scope
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.retrieval.vectors import pack
from memory.services import memories

LIMIT = 10
_BATCH = 500
# the store heeds no "fields" in its configuration and would embed the whole value as JSON
_FIELDS = ["text"]
_NO_SCOPE = Scope(pk=0)


class Embedding:
    """The embedding of all; what was embedded for the bulk of the memories is looked up."""

    def __init__(self, model: Embedder) -> None:
        self.model = model
        self._known: dict[str, Any] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed texts that will be stored in many copies."""
        self._known |= zip(texts, self.model.embed(texts), strict=True)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text."""
        if all(text in self._known for text in texts):
            return np.stack([self._known[text] for text in texts])
        return self.model.embed(texts)


class Peer(Protocol):
    """A store of memories by user; memories are unsaved, with an `external_id`."""

    name: str

    def add(self, user: str, texts: Sequence[Memory]) -> None:
        """Store a new user's memories the fast way."""

    def save(self, user: str, text: Memory) -> None:
        """Store one memory as an agent does."""

    def search(self, user: str, query: str, before: datetime | None = None) -> list[str]:
        """Return the ids of the `LIMIT` best, of those made before a time."""


class Hippo:
    """Hippo on SQLite, by words and meaning; vectors of single saves wait for a worker."""

    name = "Hippo"

    def __init__(self, agent: Agent, embedding: Embedding, *, now: datetime) -> None:
        self._agent, self._embedding, self._now = agent, embedding, now
        self._scopes = Scope.objects.using(store_alias(agent))
        self._indexed: dict[str, bench.Text] = {}

    def add(self, user: str, texts: Sequence[Memory]) -> None:
        """Store memories with their vectors."""
        scope = self._scopes.create(agent_id=self._agent.pk, user_id=user)
        rows = bench.copies(scope, [self._index(text) for text in texts], now=self._now)
        for (memory, _), text in zip(rows, texts, strict=True):
            memory.external_id = text.external_id
            memory.created_at = text.created_at
        bench.keep(scope, rows, self._fill_vector)

    def save(self, user: str, text: Memory) -> None:
        """Store one memory: its words are found when this returns."""
        draft = MemoryDraft(type=text.type, content=text.content, name=text.name)
        memories.save(self._agent, user, draft, now=self._now)

    def search(self, user: str, query: str, before: datetime | None = None) -> list[str]:
        """Return the ids of the best."""
        request = SearchRequest(query, limit=LIMIT, filter=MemoryFilter(created_before=before))
        found = search(self._agent, user, request, mode="hybrid", now=self._now)
        return [hit.memory.external_id or "" for hit in found.hits]

    def _index(self, text: Memory) -> bench.Text:
        key = str(text.external_id)
        if key not in self._indexed:
            self._indexed[key] = text, index_row(text, _NO_SCOPE, analyze(text))
        return self._indexed[key]

    def _fill_vector(self, memory: Memory, row: MemoryVector) -> None:
        [row.vector] = pack(self._embedding.embed([embedding_text(memory)]))
        row.model, row.dimension = self._embedding.model.model, len(row.vector) // 2


class LangGraph:
    """LangGraph's SqliteStore: a namespace for each user, compared by cosine."""

    name = "LangGraph"

    def __init__(self, store: Any) -> None:
        self._store = store

    def add(self, user: str, texts: Sequence[Memory]) -> None:
        """Store memories in batches."""
        from langgraph.store.base import PutOp

        for start in range(0, len(texts), _BATCH):
            self._store.batch([
                PutOp((user,), str(text.external_id), self._value(text), index=_FIELDS)
                for text in texts[start : start + _BATCH]
            ])  # fmt: skip

    def save(self, user: str, text: Memory) -> None:
        """Store one memory with its vector."""
        self._store.put((user,), str(text.external_id), self._value(text), index=_FIELDS)

    def search(self, user: str, query: str, before: datetime | None = None) -> list[str]:
        """Return the keys of the best."""
        wanted = {"created": {"$lt": before.timestamp()}} if before else None
        found = self._store.search((user,), query=query, filter=wanted, limit=LIMIT)
        return [item.key for item in found]

    def _value(self, text: Memory) -> dict[str, Any]:
        return {
            "text": embedding_text(text),
            "type": text.type,
            "created": text.created_at.timestamp(),
        }


class Chroma:
    """Chroma, kept in a folder: one collection, a filter for the user, compared by cosine."""

    name = "Chroma"

    def __init__(self, collection: Any) -> None:
        self._collection = collection

    def add(self, user: str, texts: Sequence[Memory]) -> None:
        """Store memories in batches."""
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            self._collection.add(
                ids=[f"{user} {text.external_id}" for text in batch],
                documents=[embedding_text(text) for text in batch],
                metadatas=[
                    {"user": user, "type": text.type, "created": text.created_at.timestamp()}
                    for text in batch
                ],
            )

    def save(self, user: str, text: Memory) -> None:
        """Store one memory with its vector."""
        self.add(user, [text])

    def search(self, user: str, query: str, before: datetime | None = None) -> list[str]:
        """Return the ids of the best."""
        wanted: dict[str, Any] = {"user": user}
        if before:
            wanted = {"$and": [wanted, {"created": {"$lt": before.timestamp()}}]}
        found = self._collection.query(query_texts=[query], n_results=LIMIT, where=wanted)
        return [each.removeprefix(f"{user} ") for each in found["ids"][0]]


@contextmanager
def hippo(folder: Path, embedding: Embedding, *, now: datetime) -> Iterator[Peer]:
    """Open a store of Hippo's; it lies in the data folder, not in `folder`."""
    with bench.throw_away_store("sqlite") as agent:
        yield Hippo(agent, embedding, now=now)


@contextmanager
def langgraph(folder: Path, embedding: Embedding, *, now: datetime) -> Iterator[Peer]:
    """Open a store of LangGraph's as its documentation says."""
    from langgraph.store.sqlite import SqliteStore

    def embed(texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = embedding.embed(texts).tolist()
        return vectors

    index = {"dims": embedding.embed(["x"]).shape[1], "embed": embed}
    with SqliteStore.from_conn_string(str(folder / "langgraph.db"), index=index) as store:
        store.setup()
        yield LangGraph(store)


@contextmanager
def chroma(folder: Path, embedding: Embedding, *, now: datetime) -> Iterator[Peer]:
    """Open a store of Chroma's that tells nobody and downloads nothing."""
    import chromadb
    from chromadb.config import Settings

    class Function(chromadb.EmbeddingFunction[Any]):
        def __init__(self) -> None:
            pass

        def __call__(self, input: Any) -> Any:  # the name is Chroma's
            return list(embedding.embed(input))

        @staticmethod
        def name() -> str:
            return "hippo"

        def get_config(self) -> dict[str, Any]:
            return {}

    client = chromadb.PersistentClient(
        str(folder / "chroma"), settings=Settings(anonymized_telemetry=False)
    )
    yield Chroma(
        client.create_collection(
            "memories",
            embedding_function=Function(),
            configuration={"hnsw": {"space": "cosine"}},
        )
    )
    client.close()


OPEN: dict[str, Callable[..., Any]] = {"Hippo": hippo, "LangGraph": langgraph, "Chroma": chroma}
"""What opens a store by its name, for as long as it is measured."""
