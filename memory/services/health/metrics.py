"""Figures for Prometheus, all of them from the databases: true however many processes run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from django.db import Error

from agents.models import Agent, ApiKey
from memory.models import SAVED
from memory.services.figures import sums
from memory.services.health import machine, survey
from memory.services.health.findings import State
from memory.services.health.survey import Report

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Samples = list[tuple[dict[str, str], float]]


@dataclass(frozen=True, slots=True)
class Metric:
    """One name with its samples, each labels and a value."""

    name: str
    help: str
    samples: Samples
    kind: str = "gauge"

    def lines(self) -> Iterator[str]:
        """Yield the lines of Prometheus' text format, version 0.0.4."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples:
            named = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            yield f"{self.name}{f'{{{named}}}' if named else ''} {value:.15g}"


_DONE = (
    ("hippo_saved_total", "Memories saved.", SAVED),
    ("hippo_changed_total", "Memories changed.", ("changed",)),
    ("hippo_deleted_total", "Memories deleted.", ("deleted",)),
    ("hippo_recalls_total", "Searches, tool calls and prefetches.", ("recalls",)),
    ("hippo_recalls_answered_total", "Those that returned something.", ("answered",)),
)
Collector = Callable[[Report], Iterable[Metric]]


def render(report: Report) -> str:
    """Return the whole answer; what needs a database that fails is left out of it."""
    metrics = [metric for collect in COLLECTORS for metric in _collected(collect, report)]
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines())


def _collected(collect: Collector, report: Report) -> list[Metric]:
    try:
        return list(collect(report))
    except Error:  # hippo_store_up says which
        return []


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _states(report: Report) -> Iterator[Metric]:
    labels = {name.lower(): text for name, text in machine.versions().items()}
    parts = {"queue": report.queue, "worker": report.worker, "beat": report.beat}
    parts |= {"cache": report.cache, "disk": report.disk_finding, "meaning": report.meaning}
    samples: Samples = [({"part": name}, finding.state) for name, finding in parts.items()]
    yield Metric("hippo_info", "Versions.", [(labels, 1)])
    yield Metric("hippo_state", "0: all is well, 1: reduced, 2: down.", [({}, report.state)])
    yield Metric("hippo_part_state", "0: well, 1: reduced, 2: down.", samples)
    yield Metric("hippo_unsafe_settings", "Settings to mend.", [({}, len(report.warnings))])


def _stores(report: Report) -> Iterator[Metric]:
    stores = [({"store": store.alias}, store) for store in report.stores]
    up: Samples = [(labels, store.is_up) for labels, store in stores]
    index: Samples = [
        (labels, store.index.state == State.OK) for labels, store in stores if store.is_up
    ]
    answers: Samples = [
        (labels, store.milliseconds / 1000) for labels, store in stores if store.milliseconds
    ]
    sizes: Samples = [
        (labels, store.size_bytes) for labels, store in stores if store.size_bytes is not None
    ]
    if report.model:
        parts = [(labels, store.waiting) for labels, store in stores if store.is_up]
        waiting: Samples = [(labels, part.total) for labels, part in parts]
        refused: Samples = [(labels, part.refused) for labels, part in parts]
        yield Metric("hippo_vectors_waiting", "Memories without a vector of the model.", waiting)
        yield Metric("hippo_vectors_refused", "Those that the model refuses.", refused)
    yield Metric("hippo_store_up", "Whether a store answers.", up)
    yield Metric("hippo_store_index_ok", "Whether its full-text index looks whole.", index)
    yield Metric("hippo_store_answer_seconds", "Time of a small query.", answers)
    yield Metric("hippo_store_bytes", "Size; of MySQL by its statistics.", sizes)


def _agents(report: Report) -> Iterator[Metric]:
    """Memories of each agent where it keeps them now, not old copies elsewhere; what it did."""
    agents = Agent.objects.select_related("memory_config").exclude(memory_config=None)
    counts = {store.alias: store.memories for store in report.stores if store.is_up}
    # one that is silent would be waited for
    aliases = {agent: survey.alias_of(agent.memory_config) for agent in agents}
    asked = [agent for agent, alias in aliases.items() if alias in counts]
    samples: Samples = [
        ({"agent": agent.name}, counts[aliases[agent]].get(agent.pk, 0)) for agent in asked
    ]
    yield Metric("hippo_memories", "Memories of an agent, the trash left out.", samples)
    done = sums.counts_by_agent(asked)
    for name, help_text, of in _DONE:
        figures: Samples = [
            ({"agent": agent.name}, sum(done[agent.pk][each] for each in of))
            for agent in asked
            if agent.pk in done
        ]
        yield Metric(name, help_text, figures, "counter")


def _keys(report: Report) -> Iterator[Metric]:
    live = ApiKey.objects.live(report.at).filter(agent__is_active=True)
    yield Metric("hippo_api_keys_live", "Keys that are taken.", [({}, live.count())])


def _jobs(report: Report) -> Iterator[Metric]:
    found = report.background
    jobs: Samples = [
        ({"state": state, "kind": kind}, count) for (state, kind), count in found.jobs.items()
    ]
    waits = (report.at - found.oldest_waiting).total_seconds() if found.oldest_waiting else 0.0
    ages: Samples = [
        ({"of": name}, (report.at - at).total_seconds()) for name, at in found.pulses.items()
    ]
    yield Metric("hippo_jobs", "Jobs; ended ones are kept for 30 days.", jobs)
    yield Metric("hippo_job_oldest_waiting_seconds", "Since the oldest was left.", [({}, waits)])
    yield Metric("hippo_pulse_age_seconds", "Since the last sign of life.", ages)


def _disk(report: Report) -> Iterator[Metric]:
    if report.disk is None:
        return
    yield Metric("hippo_disk_free_bytes", "Free for DATA_DIR.", [({}, report.disk.free_bytes)])
    yield Metric("hippo_disk_bytes", "Of the disk.", [({}, report.disk.total_bytes)])
    yield Metric("hippo_data_bytes", "Taken by DATA_DIR.", [({}, report.disk.used_bytes)])
    if at := report.disk.backed_up_at:
        yield Metric("hippo_backup_time_seconds", "Of the latest.", [({}, at.timestamp())])


COLLECTORS: list[Collector] = [_states, _stores, _agents, _keys, _jobs, _disk]
"""Each yields whole metrics, by a fixed number of queries."""
