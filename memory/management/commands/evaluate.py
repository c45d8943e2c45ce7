from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from agents.models import Backend
from memory.databases import migrate_store, mysql_alias, mysql_obstacle
from memory.management.base import HippoCommand, progress
from memory.retrieval import embedder
from memory.retrieval.calibration import MIN_SCORE
from memory.services.evaluation import runs
from memory.services.evaluation.measuring import Measured, Way, evaluate
from memory.services.evaluation.metrics import SHARES, Figures, mean_of
from memory.services.evaluation.runs import KeptRun
from memory.services.evaluation.sets import APART, LabelledSet, read_sets
from memory.services.recall import MODES

_COLUMNS = (*SHARES, "p50 ms", "p95 ms")
_HEADS = {"silent elsewhere": "elsewhere"}


class Command(HippoCommand):
    help = """Measure retrieval on labelled sets, on SQLite and, where configured, on MySQL.
    Of all that is ranked: recall, MRR, nDCG. Of what reaches the threshold, at most ten:
    precision, recall, and the share of questions that nothing answers (silent), also of those
    that were asked where their answer is not (elsewhere)."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR")
        parser.add_argument("--mode", choices=MODES, default="auto")
        parser.add_argument(
            "--backend", choices=[*Backend.values, "both"], help="by default both, where there are"
        )
        parser.add_argument("--threshold", type=float, default=MIN_SCORE, metavar="SCORE")
        parser.add_argument(
            "--compare", action="store_true", help="with the last run of this mode and engine"
        )
        parser.add_argument(
            "--tolerance", type=float, default=0.01, help="a larger fall ends with status 1"
        )
        parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures")

    def run(self, **options: Any) -> None:
        if not 0 <= options["threshold"] <= 1:
            raise CommandError("--threshold is a score from 0 to 1.")
        try:
            sets = read_sets(options["folder"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        if not sets:
            raise CommandError(f"{options['folder']} holds no *.memories.jsonl with queries.")
        way = Way(options["mode"], options["threshold"])
        measured = [self._measure(sets, name, way) for name in self._backends(options["backend"])]
        if len(measured) == 2:
            self._tell_difference(*measured)
        if options["json"]:
            rows = [{"backend": run.backend, **row} for run in measured for row in run.rows]
            options["json"].write_text(json.dumps(rows, indent=1), encoding="utf-8")
        falls = [fall for run in measured for fall in self._keep(run, options)]
        if falls:
            raise CommandError(f"Worse than before: {'; '.join(falls)}.")

    def _backends(self, wanted: str | None) -> list[str]:
        if wanted == Backend.SQLITE:
            return [wanted]
        if obstacle := mysql_obstacle():
            if wanted:
                raise CommandError(obstacle)
            self.stderr.write(f"SQLite only. {obstacle}")
            return [Backend.SQLITE]
        migrate_store(mysql_alias())
        return [Backend.MYSQL] if wanted == Backend.MYSQL else [Backend.SQLITE, Backend.MYSQL]

    def _measure(self, sets: list[LabelledSet], backend: str, way: Way) -> KeptRun:
        """Measure every set on one engine, and print a line for each."""
        rows: list[dict[str, Any]] = []
        main: list[dict[str, float | None]] = []
        whole = Measured()
        self.stdout.write(f"{'set':24}{'lang':6}{'backend':9}{'queries':>8}{_heads()}")
        for labelled in _progress_over(sets, backend):
            try:
                measured = evaluate(labelled, backend, way, now=timezone.now())
            except ValueError as error:
                raise CommandError(str(error)) from error
            whole.modes |= measured.modes
            whole.degraded |= measured.degraded
            for (language, group), found in sorted(measured.figures.items()):
                rows.append(self._tell(labelled.name, language, backend, group, found))
                if not group:
                    main.append(found.means())
        if not main:
            raise CommandError("No set holds a question to measure.")
        means = mean_of(main)
        self.stdout.write(f"{'mean':30}{backend:9}{'':8}{_cells(means)}")
        answered = ", ".join(sorted(whole.modes)) + "".join(f", {d}" for d in whole.degraded)
        self.stdout.write(f"Threshold {way.threshold:g}; answered by: {answered}.")
        model = embedder.current()
        return KeptRun(
            at=timezone.now().isoformat(),
            mode=way.mode,
            backend=backend,
            threshold=way.threshold,
            model=model.model if model else "",
            rows=[*rows, {"set": "mean", **means}],
        )

    def _tell(
        self, name: str, language: str, backend: str, group: str, found: Figures
    ) -> dict[str, Any]:
        means = found.means()
        shown = f"{name} ({APART})" if group else name
        self.stdout.write(f"{shown:24.24}{language:6}{backend:9}{found.queries:>8}{_cells(means)}")
        return {
            "set": name, "language": language, "group": group, "queries": found.queries, **means,
        }  # fmt: skip

    def _tell_difference(self, one: KeptRun, other: KeptRun) -> None:
        """Print by how much two engines differ: the most of any set, for each figure."""
        most = dict.fromkeys(SHARES, 0.0)
        for change in runs.compare(one, other, tolerance=0):
            most[change.metric] = max(most[change.metric], abs(change.after - change.before))
        self.stdout.write(f"{'greatest difference':47}{_cells(most)}")

    def _keep(self, run: KeptRun, options: dict[str, Any]) -> list[str]:
        """Keep a run; print what has changed since the last, and return what fell."""
        folder = settings.EVALUATIONS_DIR
        before = runs.last(folder, run.mode, run.backend) if options["compare"] else None
        runs.keep(folder, run)
        if not options["compare"]:
            return []
        if before is None:
            self.stdout.write(f"{run.backend}: there is no earlier run of this mode to compare.")
            return []
        self.stdout.write(f"{run.backend}: changes since {before.at[:19]}")
        for what in ("threshold", "model"):
            if (old := getattr(before, what)) != (new := getattr(run, what)):
                self.stdout.write(f"  {what}: {old or 'none'} → {new or 'none'}")
        falls = []
        for change in runs.compare(before, run, tolerance=options["tolerance"]):
            moved = f"{change.metric} {change.before:.3f} → {change.after:.3f}"
            self.stdout.write(f"  {change.name:24} {moved}{' !' if change.is_fall else ''}")
            if change.is_fall:
                falls.append(f"{change.name} on {run.backend}: {moved}")
        return falls


def _progress_over(sets: Sequence[LabelledSet], backend: str) -> Iterator[LabelledSet]:
    with progress(len(sets), f"Evaluating on {backend}", unit=" sets") as bar:
        for labelled in sets:
            yield labelled
            bar.update()


def _heads() -> str:
    return "".join(f"{_HEADS.get(name, name):>10}" for name in _COLUMNS)


def _cells(means: Mapping[str, float | None]) -> str:
    shown = ("" if (value := means.get(name)) is None else f"{value:.3f}" for name in _COLUMNS)
    return "".join(f"{text:>10}" for text in shown)
