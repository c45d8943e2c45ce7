"""Which models are called: what the environment says, as a whole, else what an operator set."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from memory.llm.failures import Words
from memory.llm.http import Endpoint
from memory.llm.sealing import SealBroken, unseal
from memory.models import ModelEndpoint, ModelPurpose

EMBEDDED, ENDPOINT, NONE = "embedded", "endpoint", "none"
OPENAI, ANTHROPIC = "openai", "anthropic"
DEFAULT_EMBEDDING_MODEL = "BAAI/bge-m3"
ANTHROPIC_URL = "https://api.anthropic.com"
LOST_KEY = _("The key was saved under another SECRET_KEY; enter it again on the page Models.")
_SECONDS = 3.0
"""So long a process goes by what it read: no search asks the database for it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The model of a purpose: who provides it, where it is, and whether it is fixed.

    `variables` names by field the variables of the environment that fix it; empty where an
    operator may choose.
    """

    provider: str
    endpoint: Endpoint | None = None
    variables: Mapping[str, str] = field(default_factory=dict, compare=False)


def of_embeddings() -> Choice:
    """Return what embeds; at most one query every few seconds in a process."""
    return _of_environment(ModelPurpose.EMBEDDINGS) or _of_row(ModelPurpose.EMBEDDINGS, EMBEDDED)


def of_chat() -> Choice:
    """Return what talks; at most one query every few seconds in a process."""
    return _of_environment(ModelPurpose.CHAT) or _of_row(ModelPurpose.CHAT, NONE)


def choice_of(purpose: str) -> Choice:
    """Return what is called for a purpose."""
    return of_embeddings() if purpose == ModelPurpose.EMBEDDINGS else of_chat()


def as_typed(purpose: str, provider: str, *, url: str, model: str, key: str) -> Choice:
    """Return what an operator wants, before or after it is saved."""
    if provider in {EMBEDDED, NONE}:
        return Choice(provider)
    if purpose == ModelPurpose.EMBEDDINGS:
        model = model or DEFAULT_EMBEDDING_MODEL
    url = url or (ANTHROPIC_URL if provider == ANTHROPIC else "")
    allows_private = settings.MODEL_PRIVATE_ADDRESSES
    return Choice(provider, Endpoint(url, model, key, allows_private))


def forget() -> None:
    """Read the rows again at the next call: one was changed."""
    _rows.until = 0.0


def _of_environment(purpose: str) -> Choice | None:
    if purpose == ModelPurpose.EMBEDDINGS:
        provider = settings.EMBEDDINGS or (ENDPOINT if settings.EMBEDDING_URL else "")
        names = {"provider": "EMBEDDINGS", "url": "EMBEDDING_URL", "model": "EMBEDDING_MODEL",
                 "key": "EMBEDDING_KEY"}  # fmt: skip
    else:
        provider = settings.CHAT_PROVIDER
        names = {"provider": "CHAT_PROVIDER", "url": "CHAT_URL", "model": "CHAT_MODEL",
                 "key": "CHAT_KEY"}  # fmt: skip
    if not provider:
        return None
    url, model, key = (str(getattr(settings, names[name])) for name in ("url", "model", "key"))
    chosen = as_typed(purpose, provider, url=url, model=model, key=key)
    return Choice(chosen.provider, chosen.endpoint, names)


def _of_row(purpose: str, default: str) -> Choice:
    row = _rows.get().get(purpose)
    if row is None:
        return Choice(default)
    obstacle: Words = ""
    try:
        key = unseal(row.sealed_key, settings.SECRET_KEY)
    except SealBroken:
        key, obstacle = "", LOST_KEY
    chosen = as_typed(purpose, row.provider, url=row.url, model=row.model, key=key)
    if chosen.endpoint is None or not obstacle:
        return chosen
    found = chosen.endpoint
    blocked = Endpoint(found.url, found.model, "", found.allows_private, obstacle)
    return Choice(chosen.provider, blocked)


class _Rows:
    """What the control database said last."""

    def __init__(self) -> None:
        self.until = 0.0
        self._lock = threading.Lock()
        self._rows: dict[str, ModelEndpoint] = {}

    def get(self) -> dict[str, ModelEndpoint]:
        with self._lock:
            if time.monotonic() >= self.until:
                self._rows = {row.purpose: row for row in ModelEndpoint.objects.all()}
                self.until = time.monotonic() + _SECONDS
            return self._rows


_rows = _Rows()
