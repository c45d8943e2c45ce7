"""Which model embeds here: what the environment says, else what an operator set."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from memory import endpoints
from memory.llm.embeddings import Embedder, embedded_model
from memory.llm.endpoint_embeddings import EndpointEmbeddings
from memory.llm.http import Endpoint


def current() -> Embedder | None:
    """Return the model that embeds now, None where there is to be none.

    The same object as long as the same is chosen: it knows whether its server is down.
    """
    return of(endpoints.of_embeddings())


def of(choice: endpoints.Choice) -> Embedder | None:
    """Return the model of a choice."""
    if choice.endpoint:
        return _client(choice.endpoint, settings.EMBEDDING_BATCH, settings.EMBEDDING_MAX_TOKENS)
    return embedded_model() if choice.provider == endpoints.EMBEDDED else None


@lru_cache(maxsize=4)
def _client(endpoint: Endpoint, batch: int, max_tokens: int) -> EndpointEmbeddings:
    return EndpointEmbeddings(endpoint, batch=batch, max_tokens=max_tokens)
