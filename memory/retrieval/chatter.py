"""Which model is talked to here: what the environment says, else what an operator set."""

from __future__ import annotations

from functools import lru_cache

from memory import endpoints
from memory.llm.chat import Chat, Protocol
from memory.llm.http import Endpoint


def current() -> Chat | None:
    """Return the chat model, None where there is none.

    The same object as long as the same is chosen: it knows whether its server is down.
    """
    return of(endpoints.of_chat())


def of(choice: endpoints.Choice) -> Chat | None:
    """Return the model of a choice."""
    return _client(choice.endpoint, choice.provider) if choice.endpoint else None


@lru_cache(maxsize=4)
def _client(endpoint: Endpoint, provider: str) -> Chat:
    return Chat(endpoint, Protocol(provider))
