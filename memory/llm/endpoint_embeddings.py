"""Vectors from any server that speaks OpenAI's `/v1/embeddings`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from numpy.typing import NDArray

from memory.llm import failures, http
from memory.llm.breaker import Breaker
from memory.llm.embeddings import EmbeddingFailed, Vectors
from memory.llm.failures import Failure, ModelFailed
from memory.llm.http import Endpoint

_SECONDS = 30.0
_PROBE = "hippo"
_TINY = 1e-9
_SHORT_CHARS = 200
"""A text of so many characters is too long for no model."""
_BATCH_STATUSES = {400, 413, 422}
"""What servers answer to too many texts at once, or to one that they do not take."""
# on the safe side for the tokenizers of bge-m3 and of OpenAI: 2 letters, or 5 of 6 ideographs
_TOKENS_ASCII, _TOKENS_OTHER = 0.5, 1.2

Row = NDArray[np.float32]


class EndpointEmbeddings:
    """A model behind an endpoint. Its vectors are known by the model's name alone.

    So the same model may move to another server without being asked for everything again, and
    another model needs another name.
    """

    def __init__(self, endpoint: Endpoint, *, batch: int = 32, max_tokens: int = 8192) -> None:
        self._endpoint = endpoint
        self._batch = batch
        self._max_tokens = max_tokens
        self._breaker = Breaker()
        self._dimension = 0
        headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        self._headers = headers

    @property
    def model(self) -> str:
        """Return the name that the endpoint knows the model by."""
        return self._endpoint.model

    def embed(self, texts: Sequence[str], *, seconds: float | None = None) -> Vectors:
        """Return a vector for each text; of one that is too long, of its beginning.

        A batch that fails is asked for in halves, so that one text spoils no other's vector.
        """
        parts = [self._part(text) for text in texts]
        sent = [part for part in parts if part]
        try:
            rows = self._rows(sent) if seconds is None else self._rows_soon(sent, seconds)
        except ModelFailed as error:
            raise EmbeddingFailed(error.words) from error
        widths = {len(row) for row in rows if row is not None}
        if len(widths) > 1:
            raise EmbeddingFailed(self._unusable(_("its vectors are not all of one length.")).words)
        vectors = np.zeros((len(texts), max(widths, default=self._dimension)), dtype=np.float32)
        places = (place for place, part in enumerate(parts) if part)
        for place, row in zip(places, rows, strict=True):
            if row is not None:
                vectors[place] = row
        return vectors

    def _rows_soon(self, texts: list[str], seconds: float) -> list[Row | None]:
        if not texts:
            return []
        if not self._breaker.admits(seconds=seconds):
            words = _("{host} failed a moment ago and is not asked again yet.")
            words = format_lazy(words, host=self._endpoint.host)
            raise ModelFailed(Failure.UNREACHABLE, words)
        is_well = False
        try:
            found = self._ask(texts, seconds=seconds, retries=1)
            is_well = True
        finally:
            self._breaker.note(is_well=is_well)
        return list(found)

    def _rows(self, texts: list[str]) -> list[Row | None]:
        rows: list[Row | None] = []
        while len(rows) < len(texts):
            rows += self._batch_rows(texts[len(rows) : len(rows) + self._batch])
        if texts:
            self._breaker.note(is_well=True)
        return rows

    def _batch_rows(self, texts: list[str]) -> list[Row | None]:
        try:
            return list(self._ask(texts))
        except ModelFailed as error:
            if not _may_be_one_texts(error):
                raise
            # it is the model's own fault if it does not even embed this
            self._ask([_PROBE])
            rows = self._halves(texts)
            is_whole = all(row is not None for row in rows)
            if error.status in _BATCH_STATUSES and len(texts) > 1 and is_whole:
                # nothing was wrong but their number
                self._batch = max(len(texts) // 2, 1)
            return rows

    def _halves(self, texts: list[str]) -> list[Row | None]:
        if len(texts) == 1:
            return [self._alone(texts[0])]
        rows: list[Row | None] = []
        middle = len(texts) // 2
        for half in (texts[:middle], texts[middle:]):
            try:
                rows += list(self._ask(half))
            except ModelFailed as error:
                if not _may_be_one_texts(error):
                    raise
                rows += self._halves(half)
        return rows

    def _alone(self, text: str) -> Row | None:
        """Return the vector of a text that was refused, None if it is refused again.

        It may be too long by the server's count: so its beginning is tried, too.
        """
        beginning = [text[: len(text) // 4]] if len(text) > _SHORT_CHARS else []
        for part in (text, *beginning):
            try:
                return np.asarray(self._ask([part])[0])
            except ModelFailed as error:
                if not _may_be_one_texts(error):
                    raise
        return None

    def _ask(
        self, texts: list[str], *, seconds: float = _SECONDS, retries: int = 2
    ) -> NDArray[np.float32]:
        answer = http.post(
            self._endpoint,
            "embeddings",
            {"model": self.model, "input": texts},
            headers=self._headers,
            seconds=seconds,
            retries=retries,
        )
        return self._checked(answer, len(texts))

    def _checked(self, answer: Any, count: int) -> NDArray[np.float32]:
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
            raise self._unusable(_("it has no vectors."))
        if len(data) != count:
            raise self._unusable(_("it has not as many vectors as there were texts."))
        places = [row.get("index") for row in data]
        if any(place is not None for place in places):
            if sorted(map(str, places)) != sorted(map(str, range(count))):
                raise self._unusable(_("it does not say which vector is whose."))
            data = sorted(data, key=lambda row: int(row["index"]))
        try:
            vectors = np.array([row.get("embedding") for row in data], dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._unusable(_("its vectors are not all of one length.")) from error
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise self._unusable(_("its vectors hold something that is no number."))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not vectors.size or (lengths < _TINY).any() or not np.isfinite(lengths).all():
            raise self._unusable(_("a vector of it holds zeros only."))
        self._dimension = vectors.shape[1]
        return np.asarray(vectors / lengths, dtype=np.float32)

    def _unusable(self, what: failures.Words) -> ModelFailed:
        return failures.unreadable(self._endpoint.host, what)

    def _part(self, text: str) -> str:
        """Return what is sent of a text: what the model has room for, '' for a blank one."""
        text = text.strip()
        if len(text) * _TOKENS_OTHER <= self._max_tokens:
            return text
        left = float(self._max_tokens)
        for position, character in enumerate(text):
            left -= _TOKENS_ASCII if character.isascii() else _TOKENS_OTHER
            if left < 0:
                return text[:position]
        return text


def _may_be_one_texts(error: ModelFailed) -> bool:
    """Whether the failure may be due to one text: others may then be embedded without it."""
    if error.kind == Failure.STATUS:
        return error.status in _BATCH_STATUSES or error.status >= 500
    return error.kind == Failure.UNREADABLE
