"""Gunicorn's settings that its command line cannot say: it logs as all else does."""

from __future__ import annotations

from logging.config import dictConfig
from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from config.settings import LOGGING


class OurLogger(Logger):
    """Gunicorn's own lines in our format; requests are logged by Django."""

    def setup(self, cfg: Any) -> None:
        """Set up its loggers, then give them our handler."""
        super().setup(cfg)
        dictConfig(LOGGING)


logger_class = OurLogger
