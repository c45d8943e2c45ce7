"""The parts of bench_search: a made-up corpus, loading it in bulk, and taking times.

Everything is drawn with a fixed seed. An agent of the benchmark is no row of `default`;
its memories go into a SQLite file or MySQL database made for the run.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

from django.conf import settings
from django.db import connections, transaction

from agents.models import Agent, Backend, MemoryConfig
from memory import fts
from memory.analyzer import scope_key
from memory.databases import forget_store, mysql_alias, store_alias
from memory.drafts import MemoryDraft
from memory.ids import next_ids
from memory.indexing import analyze, content_digest, index_row
from memory.models import Memory, MemoryTerms, MemoryVector, Scope, Status
from memory.retrieval import postings, vectors
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services import backlog, duplicates, memories, writing

SCOPE_SIZE = 1_000
_TEXTS = 5_000
REPEATS = 15
_SAVES = 200
USER = "user-0"
_WRITER = "writer"
_NO_SCOPE = Scope(pk=0)
Text = tuple[Memory, MemoryTerms]
FillVector = Callable[[Memory, MemoryVector], None]
"""Puts the vector of a memory into its row."""

_SYLLABLES = "ba be bi bo ca ce da de di do fa fe ga go ka ke la le li lo ma me mi mo na ne".split()
_COMMON_ENGLISH = (
    "team release meeting customer report budget server deploy review design schedule project"
).split()
_COMMON_CHINESE = "项目 会议 客户 报告 预算 部署 评审 设计 计划 团队 接口 测试".split()
# the 3,755 common characters of GB 2312
_CHINESE_CHARACTERS = [
    bytes((row, cell)).decode("gb2312")
    for row in range(0xB0, 0xD8)
    for cell in range(0xA1, 0xFF if row < 0xD7 else 0xFA)
]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts with their index rows for `_NO_SCOPE`, and the committed mix of queries."""

    texts: tuple[Text, ...]
    queries: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians in milliseconds: the product's search, and its statements by the bare driver."""

    search: float
    replay: float


def make_corpus(now: datetime) -> Corpus:
    """Return half English, half Chinese memories of 15 to 30 words, Zipf-like, and queries.

    The measured scope holds the first texts, so that rare words occur in it.
    """
    draw = random.Random(20261130)  # noqa: S311
    english = _COMMON_ENGLISH + sorted(
        {"".join(draw.choices(_SYLLABLES, k=3)) for _ in range(4_000)}
    )
    chinese = _COMMON_CHINESE + sorted(
        {"".join(draw.choices(_CHINESE_CHARACTERS, k=2)) for _ in range(4_000)}
    )
    bodies = []
    for number in range(_TEXTS):
        words, joint = (english, " ") if number % 2 else (chinese, "")
        weights = [1 / (rank + 3) for rank in range(len(words))]
        bodies.append(joint.join(draw.choices(words, weights, k=draw.randint(15, 30))))
    texts = [make_text(body, now=now) for body in bodies]
    scope = bodies[:SCOPE_SIZE]
    rare = [_rarest(body.split(), scope) for body in scope[1:21:2]]
    rare += [body[-2:] for body in scope[0:20:2]]
    sentences = [
        f"What did we say about {' '.join(b.split()[3:9])} before the review?"
        for b in scope[1:21:2]
    ]
    sentences += [f"我们之前关于{body[6:22]}是怎么决定的？" for body in scope[0:20:2]]
    return Corpus(
        tuple(texts),
        {
            "rare word": tuple(rare),
            "common word": (*_COMMON_ENGLISH, *_COMMON_CHINESE),
            "sentence": tuple(sentences),
        },
    )


def make_text(body: str, *, now: datetime) -> Text:
    """Return a memory with its index row, for `copies` to bring into scopes."""
    draft = MemoryDraft(type="project", content=body, name=body[:24].strip())
    memory = writing.new_memory(0, draft, now=now)
    return memory, index_row(memory, _NO_SCOPE, analyze(memory))


@contextmanager
def throw_away_store(backend: str) -> Iterator[Agent]:
    """Yield an agent with an empty store of its own, and take the store away at the end."""
    agent = Agent(pk=1, name="bench", language="en")
    agent.memory_config = MemoryConfig(agent=agent, backend=backend, sqlite_path="bench-search.db")
    forget_caches()  # the scopes of the store before have the same keys
    if backend == Backend.SQLITE:
        _remove_sqlite()
        try:
            with _nobody_asked():
                yield agent
        finally:
            forget_store(store_alias(agent))
            _remove_sqlite()
        return
    connection = connections[mysql_alias()]
    name = connection.settings_dict["NAME"]
    connection.settings_dict["TEST"]["NAME"] = f"{name}_bench"
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        with _nobody_asked():
            yield agent
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def _nobody_asked() -> Any:
    """Let saves ask no worker for vectors: the store is none that a worker knows."""
    return mock.patch.object(backlog, "call")


@contextmanager
def bulk_load(alias: str) -> Iterator[None]:
    """Build MySQL's index after the rows: forty times as fast, and the same index."""
    connection = connections[alias]
    if connection.vendor != "mysql":
        yield
        return
    _execute(alias, fts.drop_statements(connection))
    yield
    _execute(alias, fts.index_statements(connection))
    # the optimizer goes by statistics that a bulk load leaves behind
    _execute(alias, [f"ANALYZE TABLE {fts.TERMS_TABLE}", "ANALYZE TABLE memory_memory"])


def load(
    agent: Agent,
    rows: int,
    corpus: Corpus,
    advance: Callable[[int], object],
    fill_vector: FillVector | None = None,
) -> None:
    """Fill the store with scopes of `SCOPE_SIZE` up to `rows` memories in all."""
    alias = store_alias(agent)
    now = corpus.texts[0][0].created_at
    draw = random.Random(7)  # noqa: S311
    # a scope is made for agents of `default` only
    scopes = Scope.objects.using(alias)
    scopes.create(agent_id=agent.pk, user_id=_WRITER)
    with bulk_load(alias):
        for number in range(rows // SCOPE_SIZE):
            texts = draw.sample(corpus.texts, SCOPE_SIZE) if number else corpus.texts[:SCOPE_SIZE]
            scope = scopes.create(agent_id=agent.pk, user_id=f"user-{number}")
            keep(scope, copies(scope, texts, now=now), fill_vector)
            advance(SCOPE_SIZE)


def time_searches(agent: Agent, queries: Sequence[str], *, now: datetime) -> Timing:
    """Return the median search by words and the median replay of its statements, in turn."""
    connection = connections[store_alias(agent)]
    searches, replays = [], []
    for query in queries:
        request = SearchRequest(query)
        statements: list[tuple[str, Any]] = []

        def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            statements.append((sql, params))  # noqa: B023  # of this round of the loop
            return execute(sql, params, many, context)

        def once() -> object:
            return search(agent, USER, request, mode="lexical", now=now)  # noqa: B023

        with connection.execute_wrapper(record):
            once()
        for _ in range(REPEATS):
            searches.append(milliseconds(once))
            replays.append(milliseconds(lambda: _replay(connection, statements)))  # noqa: B023
    return Timing(statistics.median(searches), statistics.median(replays))


def time_saves(agent: Agent, corpus: Corpus, *, now: datetime) -> float:
    """Return the median milliseconds of one save into a scope of its own."""
    drafts = [
        MemoryDraft(type="project", content=memory.content, name=memory.name)
        for memory, _ in corpus.texts[-_SAVES:]
    ]
    return statistics.median(
        milliseconds(lambda: memories.save(agent, _WRITER, draft, now=now))  # noqa: B023
        for draft in drafts
    )


def time_looks(agent: Agent, corpus: Corpus, *, now: datetime) -> float:
    """Return the median milliseconds of looking for duplicates of a new text.

    Half of the texts are in the measured scope already, but for a word.
    """
    scope = Scope.objects.of_user(agent, USER).get()
    texts = [*corpus.texts[: _SAVES // 2], *corpus.texts[-_SAVES // 2 :]]
    contents = [f"{memory.content} {number}" for number, (memory, _) in enumerate(texts)]
    return statistics.median(
        milliseconds(lambda: duplicates.find(scope, content, now=now))  # noqa: B023
        for content in contents
    )


def _rarest(words: list[str], scope: list[str]) -> str:
    return min(words, key=lambda word: sum(word in body for body in scope))


def copies(
    scope: Scope, texts: Sequence[Text], *, now: datetime, age_minutes: int = 0
) -> list[Text]:
    """Return the texts as new memories of a scope, the first `age_minutes` old, then older."""
    key, no_key = scope_key(scope.pk), scope_key(_NO_SCOPE.pk)
    made = []
    for age, (memory_id, (text, row)) in enumerate(
        zip(next_ids(len(texts), now=now), texts, strict=True), start=age_minutes
    ):
        memory = Memory(
            id=memory_id,
            scope=scope,
            type=text.type,
            name=text.name,
            description=text.description,
            content=text.content,
            created_at=now - timedelta(minutes=age),
            updated_at=now,
        )
        indexed = MemoryTerms(
            memory_id=memory_id,
            scope_id=scope.pk,
            # every word begins with its scope's key; to encode each again takes minutes
            terms=row.terms.replace(f" {no_key}", f" {key}"),
            folded=row.folded,
            content_terms=row.content_terms,
            analyzer_version=row.analyzer_version,
        )
        made.append((memory, indexed))
    return made


def keep(scope: Scope, rows: Iterable[Text], fill_vector: FillVector | None = None) -> None:
    """Write memories of a scope, those in the trash without their index rows, and count them.

    Their vectors wait to be made, as after a save, where `fill_vector` does not give them.
    """
    rows = list(rows)
    indexed = [(memory, terms) for memory, terms in rows if memory.status != Status.TRASHED]
    alias = scope._state.db
    with transaction.atomic(using=alias):
        Memory.objects.using(alias).bulk_create([memory for memory, _ in rows], batch_size=500)
        MemoryTerms.objects.using(alias).bulk_create(
            [terms for _, terms in indexed], batch_size=500
        )
        writing.count_terms(scope, len(indexed), sum(terms.content_terms for _, terms in indexed))
        made = []
        for memory, _ in indexed:
            digest = _digest(memory.content)
            row = MemoryVector(memory_id=memory.pk, scope_id=scope.pk, digest=digest)
            row.stamp = scope.vector_stamp
            if fill_vector:
                fill_vector(memory, row)
            made.append(row)
        MemoryVector.objects.using(alias).bulk_create(made, batch_size=500)


# the texts are a few thousand, however many copies there are
_digest = lru_cache(maxsize=10_000)(content_digest)


def forget_caches() -> None:
    """Forget what this process keeps of scopes."""
    postings.cache.clear()
    vectors.cache.clear()


def _replay(connection: Any, statements: list[tuple[str, Any]]) -> None:
    cursor = connection.connection.cursor()
    for sql, params in statements:
        if connection.vendor == "sqlite":
            sql = sql.replace("%s", "?").replace("%%", "%")
        cursor.execute(sql, params)
        cursor.fetchall()
    cursor.close()


def milliseconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def _execute(alias: str, statements: Sequence[str]) -> None:
    with connections[alias].cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _remove_sqlite() -> None:
    for path in Path(settings.MEMORY_DIR).glob("bench-search.db*"):
        path.unlink()
