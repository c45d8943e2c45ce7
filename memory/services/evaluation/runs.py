"""Measurements that were kept, a JSON line each, and what has changed since the last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memory.services.evaluation.metrics import SHARES

_FILE = "runs.jsonl"
_LESS_IS_BETTER = {"silent"}


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One measurement: how, when, and the figures of each set; `at` is an ISO time.

    A row is {"set", "language", "group", "queries", and the figures}.
    """

    at: str
    mode: str
    backend: str
    threshold: float
    model: str
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a figure of a set; `is_fall` where it is worse by more than tolerated."""

    name: str
    metric: str
    before: float
    after: float
    is_fall: bool


def keep(folder: Path, run: KeptRun) -> None:
    """Add a run to those that are kept."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / _FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def last(folder: Path, mode: str, backend: str) -> KeptRun | None:
    """Return the latest run that was kept of a mode on an engine."""
    found = (run for run in _read(folder) if (run.mode, run.backend) == (mode, backend))
    return max(found, key=lambda run: run.at, default=None)


def compare(before: KeptRun, after: KeptRun, *, tolerance: float) -> list[Change]:
    """Return every share of what both runs measured that differs; times are left out."""
    earlier = {_key(row): row for row in before.rows}
    changes = []
    for row in after.rows:
        for metric in SHARES:
            old, new = earlier.get(_key(row), {}).get(metric), row.get(metric)
            if old is None or new is None or old == new:
                continue
            gain = old - new if metric in _LESS_IS_BETTER else new - old
            # what the floating point adds is no fall
            is_fall = gain < -tolerance - 1e-9
            changes.append(Change(" ".join(filter(None, _key(row))), metric, old, new, is_fall))
    return changes


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["set"], row.get("language", ""), row.get("group", "")


def _read(folder: Path) -> Iterator[KeptRun]:
    path = folder / _FILE
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                yield KeptRun(**json.loads(line))
            except (ValueError, TypeError):  # cut off where the process died while it wrote
                continue
