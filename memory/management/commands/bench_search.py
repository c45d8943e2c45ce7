from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from agents.models import Backend
from memory.databases import mysql_obstacle
from memory.llm.embeddings import Embedder
from memory.management import bench, bench_hybrid
from memory.management.base import HippoCommand, progress
from memory.retrieval import embedder

_LATE = {"nothing cached": "cold", "after a save": "saved", "after its vector": "embedded"}


class Command(HippoCommand):
    help = "Time search, save and looking for duplicates in a scope inside tables of growing size."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rows", default="10000,1000000", help="table sizes, by commas")
        parser.add_argument(
            "--mode",
            choices=["lexical", "hybrid"],
            default="lexical",
            help="hybrid also shows what meaning adds to words",
        )
        parser.add_argument("--backend", choices=Backend.values, help="by default both")
        parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures")

    def run(self, **options: Any) -> None:
        try:
            sizes = [int(size) for size in options["rows"].split(",")]
        except ValueError:
            raise CommandError("--rows takes numbers such as 10000,1000000.") from None
        if min(sizes) < bench.SCOPE_SIZE:
            raise CommandError(f"A table has at least {bench.SCOPE_SIZE} rows.")
        backends = [options["backend"]] if options["backend"] else list(Backend.values)
        if Backend.MYSQL in backends and (obstacle := mysql_obstacle()):
            raise CommandError(f"{obstacle} Or measure with --backend sqlite.")
        model = embedder.current() if options["mode"] == "hybrid" else None
        if options["mode"] == "hybrid" and model is None:
            raise CommandError("No model embeds here; set EMBEDDINGS=embedded.")
        now = timezone.now()
        corpus = bench.make_corpus(now)
        self.stdout.write(
            f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores; "
            "milliseconds are medians, warm, limit 10"
        )
        rows: list[dict[str, Any]] = []
        for backend in backends:
            if model is None:
                rows.extend(self._measure(backend, sizes, corpus, now))
            else:
                rows.extend(self._measure_hybrid(backend, sizes, corpus, model, now))
        if options["json"]:
            options["json"].write_text(json.dumps(rows, indent=1), encoding="utf-8")

    def _measure(
        self, backend: str, sizes: list[int], corpus: bench.Corpus, now: Any
    ) -> list[dict[str, Any]]:
        """Measure one engine at every size and print its table."""
        rows: list[dict[str, Any]] = []
        first: dict[str, float] = {}
        self.stdout.write(
            f"\n{backend:10}{'':14}{'rows':>10}{'search':>10}{'÷ first':>9}"
            f"{'statements':>12}{'÷ these':>9}"
        )
        for size in sizes:
            with bench.throw_away_store(backend) as agent:
                with progress(size, f"Loading {size} rows into {backend}", unit=" rows") as bar:
                    bench.load(agent, size, corpus, bar.update)
                for kind, queries in corpus.queries.items():
                    found = bench.time_searches(agent, queries, now=now)
                    growth = found.search / first.setdefault(kind, found.search)
                    overhead = found.search / found.replay
                    self.stdout.write(
                        f"{'':10}{kind:14}{size:>10}{found.search:>10.2f}{growth:>9.2f}"
                        f"{found.replay:>12.2f}{overhead:>9.2f}"
                    )
                    rows.append({
                        "backend": backend, "rows": size, "kind": kind, "search_ms": found.search,
                        "statements_ms": found.replay, "growth": growth, "overhead": overhead,
                    })  # fmt: skip
                for kind, time in (("save", bench.time_saves), ("duplicates", bench.time_looks)):
                    taken = time(agent, corpus, now=now)
                    growth = taken / first.setdefault(kind, taken)
                    self.stdout.write(f"{'':10}{kind:14}{size:>10}{taken:>10.2f}{growth:>9.2f}")
                    rows.append({
                        "backend": backend, "rows": size, "kind": kind, "search_ms": taken,
                        "growth": growth,
                    })  # fmt: skip
        return rows

    def _measure_hybrid(
        self, backend: str, sizes: list[int], corpus: bench.Corpus, model: Embedder, now: Any
    ) -> list[dict[str, Any]]:
        """Measure one engine at every size by words and meaning, and print its table."""
        rows: list[dict[str, Any]] = []
        first: dict[str, float] = {}

        def tell(kind: str, size: int, hybrid: float, lexical: float | None = None) -> None:
            growth = hybrid / first.setdefault(kind, hybrid)
            line = f"{'':10}{kind:18}{size:>10}{hybrid:>10.2f}{growth:>9.2f}"
            row = {
                "backend": backend, "rows": size, "kind": kind, "search_ms": hybrid,
                "growth": growth,
            }  # fmt: skip
            if lexical is not None:
                line += f"{lexical:>10.2f}{hybrid - lexical:>9.2f}"
                row["lexical_ms"] = lexical
            self.stdout.write(line)
            rows.append(row)

        with progress(len(corpus.texts), "Embedding", unit=" texts") as bar:
            fill_vector = bench_hybrid.vectors_of(model, corpus, bar.update)
        queries = [query for kind in corpus.queries.values() for query in kind]
        embedding = bench_hybrid.time_embedding(model, queries)
        self.stdout.write(
            f"\n{model.model} embeds a query in {embedding:.2f} ms, which hybrid includes\n"
            f"{backend:10}{'':18}{'rows':>10}{'hybrid':>10}{'÷ first':>9}{'lexical':>10}{'more':>9}"
        )
        for size in sizes:
            with bench.throw_away_store(backend) as agent:
                with progress(size, f"Loading {size} rows into {backend}", unit=" rows") as bar:
                    bench.load(agent, size, corpus, bar.update, fill_vector)
                for kind, of_kind in corpus.queries.items():
                    pair = bench_hybrid.compare(agent, of_kind, now=now)
                    tell(kind, size, pair.hybrid, pair.lexical)
                late = bench_hybrid.time_late(agent, model, queries, now=now)
                for kind, name in _LATE.items():
                    tell(kind, size, getattr(late, name))
                tell("save", size, bench.time_saves(agent, corpus, now=now))
        return rows
