"""Which model embeds here: what the environment says, else what an operator set."""

from __future__ import annotations

from django.conf import settings

from memory.llm.embeddings import Embedder, embedded_model


def current() -> Embedder | None:
    """Return the model that embeds now, None where there is to be none."""
    return None if settings.EMBEDDINGS == "none" else embedded_model()
