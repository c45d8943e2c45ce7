"""Which model embeds here: what the environment says, else what an operator set."""

from __future__ import annotations

import logging
import threading
from functools import lru_cache

from django.conf import settings
from django.db import Error, connections

from memory import endpoints
from memory.llm.embeddings import Embedder, embedded_model
from memory.llm.endpoint_embeddings import EndpointEmbeddings
from memory.llm.http import Endpoint

logger = logging.getLogger(__name__)


def current() -> Embedder | None:
    """Return the model that embeds now, None where there is to be none.

    The same object as long as the same is chosen: it knows whether its server is down.
    """
    return of(endpoints.of_embeddings())


def load(*, after_seconds: float) -> None:
    """Have the model that comes with Hippo in memory soon, if it is the one that embeds.

    For where a process begins: the first question then need not wait a second for it. What is
    needed to answer at all goes before, for loading takes a whole processor.
    """
    timer = threading.Timer(after_seconds, _load)
    timer.daemon = True
    timer.start()


def _load() -> None:
    try:
        current()
    except Error as error:  # the first question asks again
        logger.warning("nobody knows yet which model embeds: %s", error)
    finally:
        connections.close_all()  # those of this thread, which ends


def of(choice: endpoints.Choice) -> Embedder | None:
    """Return the model of a choice."""
    if choice.endpoint:
        return _client(choice.endpoint, settings.EMBEDDING_BATCH, settings.EMBEDDING_MAX_TOKENS)
    return embedded_model() if choice.provider == endpoints.EMBEDDED else None


@lru_cache(maxsize=4)
def _client(endpoint: Endpoint, batch: int, max_tokens: int) -> EndpointEmbeddings:
    return EndpointEmbeddings(endpoint, batch=batch, max_tokens=max_tokens)
