"""A chat model behind OpenAI's protocol, which most servers speak, or Anthropic's."""

from __future__ import annotations

import time
from enum import StrEnum
from functools import partial
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from memory.llm import failures, http
from memory.llm.breaker import Breaker
from memory.llm.failures import Failure, ModelFailed
from memory.llm.http import Endpoint
from memory.llm.prompts import Prompt
from memory.llm.replies import ReplyUnreadable, Schema, read_json

ANTHROPIC_VERSION = "2023-06-01"


class Protocol(StrEnum):
    """How a chat model is talked to."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


_SAMPLING = {
    Protocol.OPENAI: frozenset({"temperature", "max_tokens"}),
    Protocol.ANTHROPIC: frozenset({"temperature"}),
}
"""What some models, those that think among them, refuse to be told."""


class Chat:
    """A chat model. Called by many threads."""

    def __init__(self, endpoint: Endpoint, protocol: Protocol) -> None:
        self._endpoint, self._protocol = endpoint, protocol
        self._breaker = Breaker()
        self._unwanted: frozenset[str] = frozenset()

    @property
    def model(self) -> str:
        """Return the model's name."""
        return self._endpoint.model

    def ask(self, prompt: Prompt, *, seconds: float) -> str:
        """Return what the model says, within `seconds`. Raises ModelFailed.

        Fails at once while the model is known to be down.
        """
        if not self._breaker.admits(seconds=seconds):
            words = _("{host} failed a moment ago and is not asked again yet.")
            words = format_lazy(words, host=self._endpoint.host)
            raise ModelFailed(Failure.UNREACHABLE, words)
        is_well = False
        try:
            said = self._say(prompt, seconds)
            is_well = True
        finally:
            self._breaker.note(is_well=is_well)
        return said

    def ask_json(self, prompt: Prompt, schema: Schema, *, seconds: float) -> Any:
        """Return what the model says as JSON of the shape `schema`. Raises ModelFailed."""
        said = self.ask(prompt, seconds=seconds)
        try:
            return read_json(said, schema)
        except ReplyUnreadable as error:
            words = _("the model did not keep to the form that was asked for; try a larger one.")
            raise failures.unreadable(self._endpoint.host, words) from error

    def _say(self, prompt: Prompt, seconds: float) -> str:
        is_anthropic = self._protocol == Protocol.ANTHROPIC
        path, body, headers = _anthropic(prompt) if is_anthropic else _openai(prompt)
        if self._endpoint.key:
            headers |= (
                {"x-api-key": self._endpoint.key}
                if is_anthropic
                else {"Authorization": f"Bearer {self._endpoint.key}"}
            )
        answer = self._post(path, {"model": self.model, **body}, headers, seconds)
        said = _said(answer, is_anthropic=is_anthropic)
        if said is None:
            raise failures.unreadable(self._endpoint.host, _("the model said nothing."))
        return said

    def _post(
        self, path: str, body: dict[str, Any], headers: dict[str, str], seconds: float
    ) -> Any:
        """Send `body`, without what steers the sampling where the model does not take that."""
        until = time.monotonic() + seconds
        plain = {name: value for name, value in body.items() if name not in self._unwanted}
        # a person waits, so one more try is all there is time for
        ask = partial(http.post, self._endpoint, path, headers=headers, retries=1)
        try:
            return ask(plain, seconds=seconds)
        except ModelFailed as error:
            if error.status != 400 or self._unwanted:
                raise
        self._unwanted = _SAMPLING[self._protocol]
        plain = {name: value for name, value in body.items() if name not in self._unwanted}
        try:
            return ask(plain, seconds=until - time.monotonic())
        except ModelFailed as error:
            if error.status == 400:  # it was something else
                self._unwanted = frozenset()
            raise


def _openai(prompt: Prompt) -> tuple[str, dict[str, Any], dict[str, str]]:
    messages = [
        {"role": "system", "content": prompt.system},
        {"role": "user", "content": prompt.question},
    ]
    body = {"messages": messages, "max_tokens": prompt.max_tokens, "temperature": 0}
    return "chat/completions", body, {}


def _anthropic(prompt: Prompt) -> tuple[str, dict[str, Any], dict[str, str]]:
    body = {
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.question}],
        "max_tokens": prompt.max_tokens,
        "temperature": 0,
    }
    return "messages", body, {"anthropic-version": ANTHROPIC_VERSION}


def _said(answer: Any, *, is_anthropic: bool) -> str | None:
    """Return the text of an answer, None where it has none."""
    try:
        content = answer["content"] if is_anthropic else answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return None
    if isinstance(content, list):  # parts, of which thoughts are of another type
        texts = (part.get("text") for part in content if isinstance(part, dict))
        content = "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) and content.strip() else None
