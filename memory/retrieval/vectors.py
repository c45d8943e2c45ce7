"""Search by meaning inside one scope: its vectors, kept in memory while it is asked.

A cached scope is as its rows are: every search reads the scope's stamp anyway, and what was
written after the cache's own is read then, whichever process wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memory.llm.embeddings import Vectors
from memory.models import MemoryVector, Scope
from memory.retrieval.scope_cache import ScopeCache, bound_bytes

CENTRING, CENTRING_COUNT = 0.85, 10
"""How much of the scope's mean vector is taken off, and the count at which it is half of that.

All texts of one person are alike in much; without it every cosine is high (docs/retrieval.md).
"""
_CACHE_SHARE = 4
"""One scope may take a quarter of the cache."""
Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScopeVectors:
    """Vectors of one scope, sorted by id, which is the order in which they were saved.

    `created` are epoch seconds, `centred` of length 1 with the mean taken off. `waiting` are the
    memories without a vector; `is_cut` where older ones have vectors that are not here.
    """

    stamp: int
    ids: Ids
    created: NDArray[np.float64]
    matrix: Vectors
    centre: Floats
    centred: Vectors
    waiting: frozenset[int]
    is_cut: bool = False

    @property
    def nbytes(self) -> int:
        """Return how much memory they take."""
        arrays = (self.ids, self.created, self.matrix, self.centred)
        return sum(each.nbytes for each in arrays) + 64 * len(self.waiting)

    @property
    def memory_count(self) -> int:
        """Return how many memories the scope has, those without a vector among them."""
        return len(self.ids) + len(self.waiting)

    def cosines(self, query: Floats) -> Floats:
        """Return the cosine of each memory with a query's vector, both without the mean."""
        return np.asarray(self.centred @ _unit((query - self.centre)[None, :])[0])

    def places(self, memory_ids: Ids) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return where each id is, and whether it is there at all."""
        if not len(self.ids):
            return np.zeros(len(memory_ids), dtype=np.intp), np.zeros(len(memory_ids), dtype=bool)
        places = np.minimum(np.searchsorted(self.ids, memory_ids), len(self.ids) - 1)
        return places, self.ids[places] == memory_ids


cache: ScopeCache[ScopeVectors] = ScopeCache()


def of_scope(scope: Scope, model: str, kept: ScopeCache[ScopeVectors] = cache) -> ScopeVectors:
    """Return the scope's vectors by `model` as of its stamp, or later.

    No query where they are kept and nothing was written since; else one of the rows that were.
    """
    key = (str(scope._state.db), scope.pk, model)
    known = kept.get(key)
    if known and known.stamp == scope.vector_stamp:
        # of a store that was restored the same stamp may mean something else
        if known.is_cut or known.memory_count == scope.memory_count:
            return known
        known = None
    # a later stamp than the scope's is of a store that was restored
    is_behind = known is not None and known.stamp < scope.vector_stamp
    found = _renewed(known, scope, model) if known and is_behind else _load(scope, model)
    kept.keep(key, found)
    return found


def _most(dimension: int) -> int:
    """Return how many vectors of one scope are kept."""
    row_bytes = 2 * 4 * max(dimension, 1) + 16
    return int(bound_bytes() // _CACHE_SHARE // row_bytes)


_COLUMNS = ("memory_id", "memory__created_at", "vector", "model", "dimension")
_Row = tuple[int, datetime, bytes, str, int]


def _load(scope: Scope, model: str) -> ScopeVectors:
    rows = MemoryVector.objects.of_scope(scope)
    dimension = rows.filter(model=model).values_list("dimension", flat=True).first() or 0
    most = _most(dimension)
    is_cut = scope.memory_count > most
    if is_cut:  # an order by id would make SQLite walk all scopes
        ids = sorted(rows.values_list("memory_id", flat=True))
        rows = rows.filter(memory_id__gte=ids[-most])
    return _joined(None, list(rows.values_list(*_COLUMNS)), scope, model, dimension, is_cut=is_cut)


def _renewed(cached: ScopeVectors, scope: Scope, model: str) -> ScopeVectors:
    """Return the cached vectors with what was written since; a row that was deleted is missed
    by the number of them, and then all are read.
    """
    changed = MemoryVector.objects.of_scope(scope).filter(stamp__gt=cached.stamp)
    rows = list(changed.values_list(*_COLUMNS))
    dimension = cached.matrix.shape[1]
    is_alike = all(row[4] == dimension for row in rows if row[3] == model)
    if not is_alike or cached.is_cut or scope.memory_count > _most(dimension):
        return _load(scope, model)
    found = _joined(cached, rows, scope, model, dimension)
    is_whole = len(found.ids) + len(found.waiting) == scope.memory_count
    return found if is_whole else _load(scope, model)


def _joined(
    cached: ScopeVectors | None,
    rows: Sequence[_Row],
    scope: Scope,
    model: str,
    dimension: int,
    *,
    is_cut: bool = False,
) -> ScopeVectors:
    """Return the vectors of `rows` and those of `cached` that `rows` do not replace."""
    mine = [row for row in rows if row[3] == model and row[4] == dimension]
    ids = np.array([row[0] for row in mine], dtype=np.int64)
    created = np.array([row[1].timestamp() for row in mine], dtype=np.float64)
    packed = b"".join(bytes(row[2]) for row in mine)
    matrix = np.frombuffer(packed, dtype="<f2").reshape(len(mine), dimension).astype(np.float32)
    waiting = {row[0] for row in rows} - set(ids.tolist())
    if cached is not None:
        replaced = np.array([row[0] for row in rows], dtype=np.int64)
        kept = ~np.isin(cached.ids, replaced)
        ids = np.concatenate([cached.ids[kept], ids])
        created = np.concatenate([cached.created[kept], created])
        matrix = np.concatenate([cached.matrix[kept], matrix])
        waiting |= cached.waiting - set(replaced.tolist())
    order = np.argsort(ids)
    matrix, count = matrix[order], len(ids)
    mean = matrix.mean(axis=0) if count else np.zeros(dimension, dtype=np.float32)
    centre = np.asarray(mean * (CENTRING * count / (count + CENTRING_COUNT)), dtype=np.float32)
    return ScopeVectors(
        scope.vector_stamp,
        ids[order],
        created[order],
        matrix,
        centre,
        _unit(matrix - centre),
        frozenset(waiting),
        is_cut,
    )


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


def pack(vectors: Vectors) -> list[bytes]:
    """Return each vector as it is stored: little-endian float16."""
    return [row.tobytes() for row in vectors.astype("<f2")]
