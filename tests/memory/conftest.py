"""A model that is quick and can be broken, in place of the one that embeds."""

import pytest

from memory.retrieval import embedder
from memory.services import backlog
from tests.memory.letters import Letters


@pytest.fixture
def letters(monkeypatch):
    """Embed with it, as if nothing had been tried before."""
    model = Letters()
    monkeypatch.setattr(embedder, "current", lambda: model)
    monkeypatch.setattr(backlog, "_tried", {})
    return model
