"""What operators set of models and their servers, and trying one out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, transaction

from agents import audit
from agents.models import AuditAction
from memory import endpoints
from memory.endpoints import Choice
from memory.llm import prompts
from memory.llm.chat import Chat, Protocol
from memory.llm.embeddings import EmbeddingFailed, embedded_model
from memory.llm.endpoint_embeddings import EndpointEmbeddings
from memory.llm.failures import ModelFailed, Words
from memory.llm.sealing import SealBroken, seal, unseal
from memory.models import ModelEndpoint, ModelPurpose
from memory.services import backlog

TRIAL_SECONDS = 10.0
_TEXTS = ("Ming deploys on Fridays.", "支付模块周五上线。")
_QUESTION = "When does Ming deploy?"
_CANDIDATES = (("Tea", "Ming drinks green tea."), ("Deployments", "Ming deploys on Fridays."))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an operator typed; a `key` of '' leaves the one that is kept."""

    provider: str
    url: str = ""
    model: str = ""
    key: str = ""
    forgets_key: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """How a model did; `said` is what its server itself said of a failure."""

    is_of_nothing: bool = False
    milliseconds: int = 0
    dimension: int = 0
    obstacle: Words = ""
    said: str = ""


def row_of(purpose: str) -> ModelEndpoint | None:
    """Return what an operator set, None where nothing was."""
    return ModelEndpoint.objects.filter(purpose=purpose).first()


def choice_of(purpose: str, wanted: Wanted) -> Choice:
    """Return the model as it would be called if `wanted` were saved."""
    key = wanted.key or _kept_key(row_of(purpose), wanted)
    return endpoints.as_typed(purpose, wanted.provider, url=wanted.url, model=wanted.model, key=key)


def save(purpose: str, wanted: Wanted, *, actor: Any, now: datetime) -> bool:
    """Keep what an operator wants, on record but for the key; return whether a key was dropped.

    A key goes to the server it was entered for and to no other: at another address it is dropped.
    """
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        row = ModelEndpoint.objects.select_for_update().filter(purpose=purpose).first()
        key = wanted.key or _kept_key(row, wanted)
        had_key = bool(row and row.sealed_key)
        saved = ModelEndpoint(
            purpose=purpose,
            provider=wanted.provider,
            url=wanted.url,
            model=wanted.model,
            sealed_key=seal(key, settings.SECRET_KEY),
            changed_at=now,
        )
        saved.save()
        detail = f"{purpose}: {_in_words(row)} → {_in_words(saved)}"
        if wanted.key or had_key != bool(key):
            detail += f"; key: {'changed' if key else 'deleted'}"
        audit.note(actor, AuditAction.SETTING_CHANGED, detail=detail, now=now)
    endpoints.forget()
    if purpose == ModelPurpose.EMBEDDINGS:
        backlog.ask_at_once(now=now)
    return had_key and not key and not wanted.forgets_key


def try_out(purpose: str, choice: Choice, *, seconds: float = TRIAL_SECONDS) -> Trial:
    """Call a model with texts of ours and return how it did."""
    if choice.provider == endpoints.NONE:
        return Trial(is_of_nothing=True)
    began = time.perf_counter()
    dimension = 0
    try:
        if purpose == ModelPurpose.EMBEDDINGS:
            dimension = _embed(choice, seconds)
        elif choice.endpoint:
            chat = Chat(choice.endpoint, Protocol(choice.provider))
            prompt = prompts.rerank(_QUESTION, _CANDIDATES, count=1, language="en")
            chat.ask_json(prompt, prompts.PICKED, seconds=seconds)
    except ModelFailed as error:
        return Trial(obstacle=error.words, said=error.said)
    except EmbeddingFailed as error:
        cause = error.__cause__
        said = cause.said if isinstance(cause, ModelFailed) else ""
        return Trial(obstacle=error.args[0], said=said)
    took_ms = round((time.perf_counter() - began) * 1000)
    return Trial(milliseconds=took_ms, dimension=dimension)


def _embed(choice: Choice, seconds: float) -> int:
    if choice.endpoint:
        model = EndpointEmbeddings(choice.endpoint)
        return int(model.embed(_TEXTS, seconds=seconds).shape[1])
    return int(embedded_model().embed(_TEXTS).shape[1])


def _kept_key(row: ModelEndpoint | None, wanted: Wanted) -> str:
    if row is None or wanted.forgets_key or _server(row.url) != _server(wanted.url):
        return ""
    try:
        return unseal(row.sealed_key, settings.SECRET_KEY)
    except SealBroken:
        return ""


def _server(url: str) -> tuple[str, str, int]:
    """Return what a key was entered for: scheme, host and port."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:  # it was typed for a server that is not called
        return "", "", 0
    return parts.scheme, parts.hostname or "", port


def _in_words(row: ModelEndpoint | None) -> str:
    if row is None:
        return "-"
    has_server = row.provider not in {endpoints.EMBEDDED, endpoints.NONE}
    return " ".join(filter(None, [row.provider, *([row.url, row.model] if has_server else [])]))
