"""Whether the models answer: each is called with a text of ours now and then, while one looks."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from memory import endpoints
from memory.endpoints import Choice
from memory.llm.http import Endpoint
from memory.models import ModelPurpose
from memory.services import model_endpoints
from memory.services.health.findings import WELL, Finding, State

_EVERY_SECONDS = {ModelPurpose.EMBEDDINGS: 60.0, ModelPurpose.CHAT: 600.0}
"""What a call costs is paid for; nobody pays for every look at a page."""
_MENDS = {
    ModelPurpose.EMBEDDINGS: _(
        "Test it on the page Models. Search goes on by words, and nothing is lost: what is saved "
        "meanwhile is embedded when it answers again."
    ),
    ModelPurpose.CHAT: _(
        "Test it on the page Models. Search goes on; its order is what it would be without a model."
    ),
}
_known: dict[str, tuple[Choice, float, ModelReport]] = {}


@dataclass(frozen=True, slots=True)
class ModelReport:
    """A model and how it did when it was last called; `milliseconds` is None where it was not."""

    purpose: str
    provider: str = ""
    model: str = ""
    host: str = ""
    milliseconds: int | None = None
    finding: Finding = WELL


def look(purpose: ModelPurpose) -> ModelReport:
    """Return how the model of a purpose does; calls it where that is a while ago."""
    choice = endpoints.choice_of(purpose)
    if choice.endpoint is None:  # what is in this process answers
        return ModelReport(purpose, choice.provider)
    known = _known.get(purpose)
    if known and known[0] == choice and time.monotonic() < known[1] + _EVERY_SECONDS[purpose]:
        return known[2]
    report = _call(purpose, choice, choice.endpoint)
    _known[purpose] = choice, time.monotonic(), report
    return report


def _call(purpose: ModelPurpose, choice: Choice, endpoint: Endpoint) -> ModelReport:
    trial = model_endpoints.try_out(purpose, choice)
    is_well = not trial.obstacle
    return ModelReport(
        purpose,
        choice.provider,
        endpoint.model,
        endpoint.host,
        trial.milliseconds if is_well else None,
        WELL if is_well else Finding(State.REDUCED, trial.obstacle, _MENDS[purpose]),
    )
