from __future__ import annotations

import json
import os
import platform
import statistics
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from agents.models import Backend
from memory.databases import mysql_obstacle
from memory.management import bench, bench_server
from memory.management.base import HippoCommand

_ROUNDS = 10


class Command(HippoCommand):
    help = "Time recall over HTTP beside a bare view of the same server, then press it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--backend", choices=Backend.values, help="by default both")
        parser.add_argument("--seconds", type=float, default=30, help="how long it is pressed")
        parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures")

    def run(self, **options: Any) -> None:
        backends = [options["backend"]] if options["backend"] else list(Backend.values)
        if Backend.MYSQL in backends and (obstacle := mysql_obstacle()):
            raise CommandError(f"{obstacle} Or measure with --backend sqlite.")
        corpus = bench.make_corpus(timezone.now())
        self.stdout.write(
            f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores; "
            f"gunicorn with one worker of {bench_server.THREADS} threads; medians in ms, warm"
        )
        rows = [self._measure(backend, corpus, options["seconds"]) for backend in backends]
        if options["json"]:
            options["json"].write_text(json.dumps(rows, indent=1), encoding="utf-8")
        if any(row["errors"] for row in rows):
            raise CommandError("There were errors under load.")

    def _measure(self, backend: str, corpus: bench.Corpus, seconds: float) -> dict[str, Any]:
        queries = [query for kind in corpus.queries.values() for query in kind]
        with bench_server.running(backend, corpus) as server:
            client = bench_server.Client(server)
            for query in queries:
                client.recall(query)
            bare, recalls = [], []
            for query in queries * _ROUNDS:
                bare.append(bench.milliseconds(client.bare))
                recalls.append(bench.milliseconds(lambda: client.recall(query)))  # noqa: B023
            load = bench_server.press(server, queries, seconds)
        row: dict[str, Any] = {
            "backend": backend,
            "bare_ms": statistics.median(bare),
            "recall_ms": statistics.median(recalls),
            "ratio": statistics.median(recalls) / statistics.median(bare),
            "calls": len(load.milliseconds),
            "per_second": len(load.milliseconds) / seconds,
            "p95_ms": statistics.quantiles(load.milliseconds, n=20)[-1],
            "errors": len(load.errors),
        }
        self.stdout.write(
            "{backend:8} bare view {bare_ms:.2f}  recall {recall_ms:.2f}  ÷ bare {ratio:.2f}\n"
            "         under load {calls} calls, {per_second:.0f} a second, p95 {p95_ms:.0f} ms, "
            "{errors} errors".format(**row)
        )
        for error in sorted(set(load.errors))[:5]:
            self.stderr.write(error)
        return row
