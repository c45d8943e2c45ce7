"""Making the vectors of what was saved, beside all else: nothing waits for a model.

The model is asked outside any transaction. What it gave is written to those rows alone whose
text is still the one it was asked about.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F

from memory import endpoints
from memory.databases import aliases_in_use, open_store
from memory.indexing import embedding_text
from memory.llm.embeddings import Embedder, EmbeddingFailed
from memory.models import Job, JobState, MemoryVector, Scope, StoreState
from memory.querysets import MemoryVectorQuerySet
from memory.retrieval import embedder
from memory.services import backlog, upkeep
from memory.services.jobs import Run
from memory.services.writing import past_deadlocks

_CHUNK = 64
_Made = Mapping[int, tuple[int, bytes]]
"""By memory: the stamp of the row whose text was embedded, and the vector."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Tally:
    """What came of asking: vectors made, and texts that the model refused."""

    embedded: int = 0
    refused: int = 0


class ModelChanged(Exception):
    """Another model embeds from now on; what the one before has made stays until it is replaced."""


def embed(run: Run, *, now: datetime) -> dict[str, Any]:
    """Embed what waits in every store; return {"embedded": n, "refused": n}.

    Raises EmbeddingFailed where the model does not answer, Incomplete where a store does not.
    """
    endpoints.forget()  # another model may have been chosen a moment ago
    tally = Tally()
    attempts = backlog.due_attempts()
    backlog.note_tried(attempts)
    while (model := embedder.current()) is not None:
        try:
            _embed_stores(run, model, attempts, tally)
            break
        except ModelChanged:
            logger.info("another model embeds than %s: beginning anew", model.model)
    Job.objects.filter(kind=backlog.KIND, state=JobState.DONE, pk__lt=run.job.pk).delete()
    return {"embedded": tally.embedded, "refused": tally.refused}


def _embed_stores(run: Run, model: Embedder, attempts: list[int], tally: Tally) -> None:
    def work(alias: str) -> Iterator[int]:
        open_store(alias)
        rows = backlog.of_store(alias).filter(attempts__in=attempts)
        run.report(done=0, total=rows.pending(model.model).count())
        for count in embed_rows(rows, model, tally):
            yield count
            if (now := embedder.current()) is None or now.model != model.model:
                raise ModelChanged

    aliases = aliases_in_use()
    upkeep.complete(run, [(alias.removeprefix("sqlite:"), work, alias) for alias in aliases])


def embed_rows(rows: MemoryVectorQuerySet, model: Embedder, tally: Tally) -> Iterator[int]:
    """Embed what waits among rows of one store; yield how many were tried, chunk by chunk.

    A text that the model refuses holds up no other. Raises EmbeddingFailed where it answers
    nothing at all.
    """
    alias = str(rows.db)
    for made_by in rows.models_but(model.model):
        for chunk in rows.in_chunks(made_by, _CHUNK):
            vectors = model.embed([embedding_text(row.memory) for row in chunk])
            if vectors.any():
                _settle_length(alias, model, vectors.shape[1])
            made, refused = {}, []
            for row, vector in zip(chunk, vectors, strict=True):
                if vector.any():
                    made[row] = vector.astype("<f2").tobytes()
                else:
                    refused.append(row)
            for scope_id, of_scope in _by_scope(made):
                write = partial(_write, alias, scope_id, of_scope, model.model)
                tally.embedded += past_deadlocks(alias, write)
            _note_refused(alias, refused, model)
            tally.refused += len(refused)
            yield len(chunk)


def _by_scope(made: Mapping[MemoryVector, bytes]) -> Iterable[tuple[int, _Made]]:
    found: dict[int, dict[int, tuple[int, bytes]]] = defaultdict(dict)
    for row, vector in made.items():
        found[row.scope_id][row.pk] = (row.stamp, vector)
    return sorted(found.items())


def _settle_length(alias: str, model: Embedder, length: int) -> None:
    """Let vectors of another length wait to be made anew, if `length` is the model's now.

    One of them is made again to see: a server may have got another model under the same name,
    or have been wrong. Raises EmbeddingFailed where it gives now this length and now that.
    """
    made = backlog.of_store(alias).filter(model=model.model)
    dimension = made.order_by("memory").values_list("dimension", flat=True).first()
    if dimension in {None, length}:
        return
    others = made.exclude(dimension=length)
    row = next(others.in_chunks(model.model, 1))[0]
    if model.embed([embedding_text(row.memory)]).shape[1] != length:
        raise EmbeddingFailed(f"{model.model} gives vectors of several lengths.")
    logger.warning("%s gives %s numbers, no longer %s: all anew", model.model, length, dimension)
    for chunk in others.in_chunks(model.model, _CHUNK):
        for scope_id, of_scope in _by_scope(dict.fromkeys(chunk, b"")):
            past_deadlocks(alias, partial(_write, alias, scope_id, of_scope, ""))


def _write(alias: str, scope_id: int, made: _Made, model: str) -> int:
    """Write vectors to the rows of a scope that are still those which were read; return how many.

    A row that was written since has a later stamp: its text may be another. An empty vector with
    no model waits to be made.
    """
    with transaction.atomic(using=alias):
        locked = Scope.objects.using(alias).select_for_update()
        scope = locked.filter(pk=scope_id, state=StoreState.OPEN).first()
        if scope is None:
            return 0
        found = MemoryVector.objects.of_scope(scope).filter(pk__in=made).only("stamp")
        rows = [row for row in found if row.stamp == made[row.pk][0]]
        for row in rows:
            row.vector = made[row.pk][1]
            row.model, row.dimension = model, len(row.vector) // 2
            row.stamp, row.attempts = scope.vector_stamp + 1, 0
        names = ["vector", "model", "dimension", "stamp", "attempts"]
        MemoryVector.objects.using(alias).bulk_update(rows, names, batch_size=_CHUNK)
        if rows:
            Scope.objects.using(alias).filter(pk=scope.pk).update(
                vector_stamp=scope.vector_stamp + 1
            )
    return len(rows)


def _note_refused(alias: str, refused: Sequence[MemoryVector], model: Embedder) -> None:
    for row in refused:
        logger.warning("%s refuses the text of memory %s", model.model, row.pk)
        same = MemoryVector.objects.using(alias).filter(pk=row.pk, stamp=row.stamp)
        same.filter(attempts__lt=backlog.MOST_ATTEMPTS).update(attempts=F("attempts") + 1)
