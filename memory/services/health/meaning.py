"""Whether what was saved gets its vector: without one it is found by words alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from agents.models import Agent
from memory.databases import store_alias
from memory.models import Scope
from memory.retrieval import embedder
from memory.services import backlog
from memory.services.health.background import LONG_WAIT
from memory.services.health.findings import WELL, Finding, State

_MANY = 10_000
"""Of more that wait nobody asks which were refused: each would have to be looked at."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many memories of a store have no vector of the present model, and since when."""

    total: int = 0
    refused: int = 0
    oldest: datetime | None = None


NOTHING_WAITS = Waiting()


def waiting_in(alias: str, model: str) -> Waiting:
    """Return what of a store waits; by steps in an index, and a count of what is found."""
    rows = backlog.of_store(alias)
    pending = rows.pending(model)
    total = pending.count()
    refused = pending.filter(attempts__gt=0).count() if 0 < total <= _MANY else 0
    firsts = [
        rows.filter(model=name).order_by("memory").values_list("memory__updated_at").first()
        for name in rows.models_but(model)
    ]
    return Waiting(total, refused, min((first[0] for first in firsts if first), default=None))


def together(parts: Sequence[Waiting]) -> Waiting:
    """Return what waits in several stores."""
    return Waiting(
        sum(part.total for part in parts),
        sum(part.refused for part in parts),
        min((part.oldest for part in parts if part.oldest), default=None),
    )


def finding(waiting: Waiting, failure: str, *, now: datetime) -> Finding:
    """Return whether vectors are made, and what is to be done where they are not."""
    if waiting.total and failure:
        words = ngettext_lazy(
            "The model says: {error}. {count} memory is found by words alone until it is back.",
            "The model says: {error}. {count} memories are found by words alone until it is back.",
            waiting.total,
        )
        reason = format_lazy(words, error=failure, count=waiting.total)
        return Finding(State.REDUCED, reason, _MEND_MODEL)
    if waiting.refused:
        words = ngettext_lazy(
            "The model refuses the text of {count} memory, which is found by words alone.",
            "The model refuses the texts of {count} memories, which are found by words alone.",
            waiting.refused,
        )
        return Finding(State.REDUCED, format_lazy(words, count=waiting.refused), _MEND_REFUSED)
    if waiting.oldest and waiting.oldest < now - LONG_WAIT:
        words = ngettext_lazy(
            "{count} memory has no vector of this model yet and is found by words alone.",
            "{count} memories have no vector of this model yet and are found by words alone.",
            waiting.total,
        )
        return Finding(State.REDUCED, format_lazy(words, count=waiting.total), _MEND_WAITING)
    return WELL


def coverage(agent: Agent) -> tuple[int, int] | None:
    """Return how many memories of an agent have a vector, and how many there are.

    None without a model or memories. What has none is counted, which mostly is little.
    """
    scopes = Scope.objects.for_agent(agent)
    total = scopes.aggregate(total=Sum("memory_count"))["total"]
    model = embedder.current()
    if model is None or not total:
        return None
    rows = backlog.of_store(store_alias(agent)).pending(model.model)
    return total - rows.filter(scope_id__in=scopes.values("pk")).count(), total


_MEND_MODEL = _(
    "Look whether the model's server runs, and whether its address and key in the settings are "
    "right. Nothing is lost: it is asked again every few minutes; ./run embed_memories asks now."
)
_MEND_REFUSED = _(
    "The worker's log says what the model did not like. They are tried again, at last once a day; "
    "./run embed_memories --again tries them now."
)
_MEND_WAITING = _(
    "After a change of the model that is as it should be: ./run jobs shows how far the job embed "
    "is. Else mend worker and scheduler; ./run embed_memories does it at once."
)
