"""How all of Hippo is, for operators and for Prometheus; no part can hold up the others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from agents.models import MemoryConfig
from memory.databases import MYSQL_ALIAS, Place, known_aliases
from memory.errors import BackendUnavailable
from memory.models import JobState, ModelPurpose
from memory.retrieval import embedder
from memory.services.health import (
    background,
    findings,
    machine,
    meaning,
    model_health,
    probing,
    readiness,
    store_health,
)
from memory.services.health.background import NOTHING_KNOWN, Background
from memory.services.health.findings import WELL, Finding, State
from memory.services.health.machine import Disk
from memory.services.health.meaning import Waiting
from memory.services.health.model_health import ModelReport
from memory.services.health.store_health import StoreReport

_FIRST_SECONDS, _SECONDS = 1.0, 1.9
"""How long to wait for the list of stores, then for all parts at once."""
_BACKGROUND, _BROKER, _CACHE, _DISK = "background", "broker", "cache", "disk"

_UNKNOWN = Finding(
    State.REDUCED,
    _("Nobody knows: the control database, which keeps the signs of life, gives no answer."),
    _("Mend the control database first."),
)


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found out; `seconds` is how long that took."""

    at: datetime
    seconds: float
    stores: list[StoreReport]
    background: Background
    broker: Finding
    queue: Finding
    worker: Finding
    beat: Finding
    cache: Finding
    cache_milliseconds: float | None
    disk: Disk | None
    disk_finding: Finding
    model: str
    """Which model embeds; "" for none."""
    without_vector: Waiting
    meaning: Finding
    warnings: list[Finding]
    models: list[ModelReport]

    @property
    def waiting(self) -> int:
        """Return how many jobs wait."""
        return self.background.count(JobState.PENDING)

    @property
    def running(self) -> int:
        """Return how many jobs run."""
        return self.background.count(JobState.RUNNING)

    @property
    def failed(self) -> int:
        """Return how many of the jobs that are kept have failed."""
        return self.background.count(JobState.FAILED)

    @property
    def findings(self) -> list[Finding]:
        """Return what was found of each part."""
        of_stores = [finding for store in self.stores for finding in (store.finding, store.index)]
        rest = [self.queue, self.worker, self.beat, self.cache, self.disk_finding]
        rest += [self.meaning, *[each.finding for each in self.models]]
        return [*of_stores, *rest, *self.warnings]

    @property
    def troubles(self) -> int:
        """Return how many things are not well."""
        return sum(finding.state != State.OK for finding in self.findings)

    @property
    def state(self) -> State:
        """Return `DOWN` where nothing can be served, `REDUCED` where something is not well."""
        is_control_up = self.stores[0].is_up
        return min(findings.worst(self.findings), State.REDUCED) if is_control_up else State.DOWN


def look(*, now: datetime, has_counts: bool = False) -> Report:
    """Return how everything is, within three seconds, whatever is silent.

    `has_counts` adds the memories of each agent.
    """
    began = time.monotonic()
    first: dict[str, Callable[[], Any]] = {"stores": _count_agents, "model": _model}
    found = probing.ask_all(first, seconds=_FIRST_SECONDS)
    known, model = found["stores"], found["model"] or ""
    stores = known or dict.fromkeys(_named_stores(), 0)
    ask = partial(store_health.look, has_counts=has_counts, model=model)
    questions: dict[str, Callable[[], Any]] = {
        f"{alias} {has_counts}": partial(ask, alias, agents) for alias, agents in stores.items()
    }
    rest: dict[str, Callable[[], Any]] = {
        _BACKGROUND: background.look,
        _BROKER: background.ask_broker,
        _CACHE: _ask_cache,
        _DISK: machine.disk,
        **{f"model of {purpose}": partial(model_health.look, purpose) for purpose in ModelPurpose},
    }
    answers = probing.ask_all(questions | rest, seconds=_SECONDS)
    reports = [
        answers[f"{alias} {has_counts}"] or store_health.silent(alias, agents, _SECONDS)
        for alias, agents in stores.items()
    ]
    if not known and reports[0].is_up:  # which there are is in the control database
        reports[0] = store_health.silent(DEFAULT_DB_ALIAS, 0, _FIRST_SECONDS)
    return _report(answers, reports, model, began, now=now)


def _report(
    answers: dict[str, Any], stores: list[StoreReport], model: str, began: float, *, now: datetime
) -> Report:
    found = answers[_BACKGROUND]
    broker = answers[_BROKER] or findings.silent(_SECONDS, background.broker_mend())
    cache, milliseconds = answers[_CACHE] or (findings.silent(_SECONDS, _cache_mend()), None)
    disk = answers[_DISK]
    unknown = findings.silent(_SECONDS, _("The disk may hang: look at df and dmesg."))
    waiting = meaning.together([store.waiting for store in stores])
    return Report(
        at=now,
        stores=stores,
        background=found or NOTHING_KNOWN,
        broker=broker,
        queue=background.of_queue(found, broker, now=now) if found else _UNKNOWN,
        worker=background.of_worker(found, now=now) if found else _UNKNOWN,
        beat=background.of_beat(found, now=now) if found else _UNKNOWN,
        cache=cache,
        cache_milliseconds=milliseconds,
        disk=disk,
        disk_finding=disk.finding if disk else unknown,
        model=model,
        without_vector=waiting,
        meaning=meaning.finding(waiting, found.model_failure if found else "", now=now),
        warnings=machine.warnings(),
        # one that is silent now has been asked, and says so at the next look
        models=[answers[f"model of {purpose}"] or ModelReport(purpose) for purpose in ModelPurpose],
        seconds=time.monotonic() - began,
    )


def _named_stores() -> list[str]:
    """Return the aliases that the settings name, the control database first."""
    return [DEFAULT_DB_ALIAS, *([MYSQL_ALIAS] if MYSQL_ALIAS in settings.DATABASES else [])]


def _count_agents() -> dict[str, int]:
    """Return the aliases of all stores, the control database first, with their agents."""
    agents = Counter(map(alias_of, MemoryConfig.objects.only("backend", "sqlite_path")))
    return {alias: agents.pop(alias, 0) for alias in known_aliases()} | agents


def _model() -> str:
    model = embedder.current()
    return model.model if model else ""


def alias_of(config: MemoryConfig) -> str:
    """Return the alias of an agent's store, of MySQL even where it is not configured."""
    try:
        return Place.of(config).alias()
    except BackendUnavailable:
        return MYSQL_ALIAS


def _ask_cache() -> tuple[Finding, float | None]:
    began = time.perf_counter()
    try:
        readiness.ask_cache()
    except Exception as error:  # noqa: BLE001  # each cache has errors of its own
        said = str(error).rstrip(".") or type(error).__name__
        reason = format_lazy(_("The cache says: {error}. Rate limits are not counted."), error=said)
        return Finding(State.REDUCED, reason, _cache_mend()), None
    return WELL, (time.perf_counter() - began) * 1000


def cache_address() -> str:
    """Return where the cache is, without user and password."""
    place = str(settings.CACHES["default"]["LOCATION"])
    return background.without_secrets(place) if "://" in place else place


def _cache_mend() -> findings.Words:
    if "://" not in str(settings.CACHES["default"]["LOCATION"]):
        mend = _("Give {address} to the account that runs Hippo (chown, chmod 700), look at df.")
    else:
        mend = _("Look whether Redis runs at {address} and whether CACHE_URL is right.")
    return format_lazy(mend, address=cache_address())
