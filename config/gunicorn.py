"""Gunicorn's settings that its command line cannot say: it logs as all else does."""

from __future__ import annotations

from logging.config import dictConfig
from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from config.settings import EMBEDDING_URL, EMBEDDINGS, LOGGING
from memory.llm.embeddings import embedded_model


class OurLogger(Logger):
    """Gunicorn's own lines in our format; requests are logged by Django."""

    def setup(self, cfg: Any) -> None:
        """Set up its loggers, then give them our handler."""
        super().setup(cfg)
        dictConfig(LOGGING)


def on_starting(server: Any) -> None:
    """Load the model where several workers are forked: they share its memory then.

    Without Django, which each worker sets up by itself. What operators chose on the page nobody
    knows here; the environment says it as well.
    """
    if server.cfg.workers > 1 and EMBEDDINGS in {"", "embedded"} and not EMBEDDING_URL:
        embedded_model()


def post_worker_init(worker: Any) -> None:
    """Load the model once the first requests are answered."""
    from memory.retrieval import embedder

    embedder.load(after_seconds=1)


logger_class = OurLogger
