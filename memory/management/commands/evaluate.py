from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from agents.models import Backend
from memory.databases import migrate_store, mysql_alias, mysql_obstacle
from memory.management.base import HippoCommand, progress
from memory.services.evaluation import APART, METRICS, Figures, evaluate, read_sets


class Command(HippoCommand):
    help = "Measure retrieval on labelled sets, on SQLite and, where configured, on MySQL."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR")
        parser.add_argument("--backend", choices=Backend.values, help="by default both")
        parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures")

    def run(self, **options: Any) -> None:
        try:
            sets = read_sets(options["folder"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        if not sets:
            raise CommandError(f"{options['folder']} holds no *.memories.jsonl with queries.")
        rows: list[dict[str, Any]] = []
        for backend in self._backends(options["backend"]):
            main: list[dict[str, float]] = []
            self.stdout.write(f"{'set':24}{'lang':6}{'backend':9}{'queries':>8}" + _heads())
            for labelled in progress_over(sets, backend):
                try:
                    figures = evaluate(labelled, backend, now=timezone.now())
                except ValueError as error:
                    raise CommandError(str(error)) from error
                for (language, group), found in sorted(figures.items()):
                    rows.append(self._tell(labelled.name, language, backend, group, found))
                    if not group:
                        main.append(found.means())
            if not main:
                raise CommandError("No set holds a question to measure.")
            means = {name: sum(each[name] for each in main) / len(main) for name in METRICS}
            self.stdout.write(f"{'mean':30}{backend:9}{'':8}" + _cells(means))
            rows.append({"set": "mean", "backend": backend, **means})
        if options["json"]:
            options["json"].write_text(json.dumps(rows, indent=1), encoding="utf-8")

    def _backends(self, wanted: str | None) -> list[str]:
        if wanted == Backend.SQLITE:
            return [wanted]
        if obstacle := mysql_obstacle():
            if wanted:
                raise CommandError(obstacle)
            self.stderr.write(f"SQLite only. {obstacle}")
            return [Backend.SQLITE]
        migrate_store(mysql_alias())
        return [wanted] if wanted else [Backend.SQLITE, Backend.MYSQL]

    def _tell(
        self, name: str, language: str, backend: str, group: str, found: Figures
    ) -> dict[str, Any]:
        means = found.means()
        shown = f"{name} ({APART})" if group else name
        self.stdout.write(f"{shown:24.24}{language:6}{backend:9}{found.queries:>8}" + _cells(means))
        return {
            "set": name, "language": language, "backend": backend, "group": group,
            "queries": found.queries, **means,
        }  # fmt: skip


def progress_over(sets: list[Any], backend: str) -> Any:
    """Yield the sets with a progress bar beside."""
    with progress(len(sets), f"Evaluating on {backend}", unit=" sets") as bar:
        for labelled in sets:
            yield labelled
            bar.update()


def _heads() -> str:
    return "".join(f"{name:>11}" for name in METRICS)


def _cells(means: dict[str, float]) -> str:
    return "".join(f"{means[name]:>11.3f}" for name in METRICS)
