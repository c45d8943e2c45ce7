"""What can go wrong with a model's server, in words that name the next step."""

from __future__ import annotations

from enum import StrEnum

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from memory.errors import HippoError

Words = str | Promise


class Failure(StrEnum):
    """Kinds of failure, for programs and logs."""

    REFUSED = "refused"
    """Nothing was sent: the address may not be called, or its key cannot be read."""
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    STATUS = "status"
    UNREADABLE = "unreadable"
    """An answer that is not what was asked for."""


class ModelFailed(HippoError):
    """A model gave no usable answer; its message holds neither a key nor what was sent.

    `said` is what the server itself said of it, cut and without the key: for operators who test
    an endpoint with a text of ours, never for a log, since a server may repeat what it was sent.
    """

    code = "model_failed"
    is_servers_fault = True

    def __init__(self, kind: Failure, words: Words, *, status: int = 0, said: str = "") -> None:
        self.kind, self.words, self.status, self.said = kind, words, status, said
        super().__init__(words)

    @property
    def label(self) -> str:
        """Return the kind in a word, for logs."""
        return f"{self.kind} {self.status}" if self.status else str(self.kind)


def of_status(status: int, host: str, *, said: str = "") -> ModelFailed:
    """Return what an answer with an HTTP status other than 200 means."""
    words = next((words for statuses, words in _OF_STATUS if status in statuses), _OTHER_STATUS)
    told = format_lazy(words, host=host, status=status)
    return ModelFailed(Failure.STATUS, told, status=status, said=said)


def unreadable(host: str, what: Words) -> ModelFailed:
    """Return the failure of an answer that came and is of no use."""
    return ModelFailed(
        Failure.UNREADABLE,
        format_lazy(_("{host} gives no usable answer: {what}"), host=host, what=what),
    )


def too_slow(host: str, seconds: float) -> ModelFailed:
    """Return the failure of an answer that did not come in time."""
    words = _("{host} gave no answer within {seconds} s; look whether it is overloaded.")
    return ModelFailed(Failure.TIMEOUT, format_lazy(words, host=host, seconds=f"{seconds:g}"))


def unreachable(host: str) -> ModelFailed:
    """Return the failure of a server that takes no connection, or ends it."""
    words = _(
        "{host} cannot be reached; look whether the model's server runs and whether the address "
        "is right."
    )
    return ModelFailed(Failure.UNREACHABLE, format_lazy(words, host=host))


_OF_STATUS = [
    (
        range(300, 400),
        _("{host} redirects ({status}), which is not followed; give the address it leads to."),
    ),
    ((401, 403), _("{host} does not accept the key ({status}); enter it again, or another one.")),
    (
        (404, 405),
        _("{host} knows no such address or model ({status}); an address usually ends in /v1."),
    ),
    ((429,), _("{host} wants fewer requests (429); wait, or raise the account's limit there.")),
    (range(500, 600), _("{host} fails ({status}); look at its log, it is tried again later.")),
]
_OTHER_STATUS = _("{host} refuses the request ({status}); look at the model's name and its limits.")
