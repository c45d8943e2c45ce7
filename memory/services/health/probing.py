"""Asking several parts at once and for a bounded time: one that is silent holds nobody up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from django.db import Error, connections

Answer = TypeVar("Answer")

logger = logging.getLogger(__name__)
_lock = threading.Lock()
_open: dict[str, _Question] = {}


class _Question(Generic[Answer]):
    """Something that is asked in a thread of its own."""

    def __init__(self, name: str, ask: Callable[[], Answer]) -> None:
        self.answer: Answer | None = None
        self.began = time.monotonic()
        self._name, self._ask = name, ask
        self._answered = threading.Event()
        threading.Thread(target=self._run, name=f"probe of {name}", daemon=True).start()

    def wait(self, seconds: float) -> Answer | None:
        """Return the answer, None where it has not come `seconds` after it was asked."""
        self._answered.wait(max(self.began + seconds - time.monotonic(), 0))
        return self.answer

    def _run(self) -> None:
        try:
            self.answer = self._ask()
        except Error as error:  # a database: what is told of the part says it, too
            logger.warning("the probe of %s fails: %s", self._name, error)
        except Exception:
            logger.exception("the probe of %s fails", self._name)
        finally:
            with _lock:
                _open.pop(self._name, None)
            self._answered.set()
            connections.close_all()  # this thread's own


def ask_all(
    questions: Mapping[str, Callable[[], Answer]], *, seconds: float
) -> dict[str, Answer | None]:
    """Return what each part answers; None where it is silent for `seconds` or fails.

    One thread a part, with database connections of its own. What is still being asked, by
    whomever, is not asked again: a part that hangs keeps one thread, however many ask.
    """
    asked: dict[str, _Question[Answer]] = {}
    for name, ask in questions.items():
        with _lock:
            if name not in _open:
                _open[name] = _Question(name, ask)
            asked[name] = _open[name]
    return {name: question.wait(seconds) for name, question in asked.items()}
