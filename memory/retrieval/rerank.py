"""A chat model that picks and orders the best hits; without it the order stays as it was."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext_lazy as _

from memory.llm import prompts
from memory.llm.failures import ModelFailed, Words
from memory.models import Memory
from memory.retrieval import chatter
from memory.retrieval.lexical import Hit

CANDIDATES = 20
"""So many of the best hits the model sees."""
SECONDS = 3.0
_NAME_CHARS, _TEXT_CHARS, _QUESTION_CHARS = 100, 240, 2_000

logger = logging.getLogger(__name__)


class Reranking(NamedTuple):
    """The hits in their order, whether a model gave it, and if it did not, why."""

    hits: tuple[Hit, ...]
    reranked: bool
    reason: Words = ""


def rerank(
    query: str, hits: Sequence[Hit], *, limit: int, language: str, seconds: float = SECONDS
) -> Reranking:
    """Return the first `limit` of `hits`, those first that the chat model picks for `query`.

    It sees the first 20. Hits that it leaves out follow in their order, so none is lost; scores
    stay as they were. Whatever goes wrong within `seconds` leaves the order as it was.
    """
    before = tuple(hits[:limit])
    if len(hits) < 2 or limit < 1:
        return Reranking(before, False)
    chat = chatter.current()
    if chat is None:
        return Reranking(before, False, _("No chat model is set."))
    shown = hits[:CANDIDATES]
    described = [_described(hit.memory) for hit in shown]
    prompt = prompts.rerank(
        query[:_QUESTION_CHARS], described, count=min(limit, len(shown)), language=language
    )
    try:
        picked = chat.ask_json(prompt, prompts.PICKED, seconds=seconds)["picked"]
    except ModelFailed as error:
        logger.warning("no model picked among %d hits: %s", len(shown), error.label)
        return Reranking(before, False, error.words)
    # each number once, and only those that were given
    numbers = dict.fromkeys(number for number in picked if 1 <= number <= len(shown))
    first = [hits[number - 1] for number in numbers]
    rest = [hit for place, hit in enumerate(hits, start=1) if place not in numbers]
    return Reranking((*first, *rest)[:limit], True)


def _described(memory: Memory) -> tuple[str, str]:
    text = memory.description or memory.content
    return memory.name[:_NAME_CHARS], text[:_TEXT_CHARS]
