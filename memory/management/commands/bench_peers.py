from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from memory.management import bench_peers, peers
from memory.management.base import HippoCommand, progress
from memory.management.bench_peers import Material
from memory.management.peers import Embedding, Peer
from memory.retrieval import embedder
from memory.services.evaluation.sets import APART, LabelledSet, read_sets

_PACKAGES = {"chromadb": "chromadb", "langgraph-checkpoint-sqlite": "langgraph.store.sqlite"}
_HIPPO, _LANGGRAPH, _CHROMA = peers.OPEN
_LINE = "{:26}{:>10}{:>10}{:>10}{:>12}{:>9}"


class Command(HippoCommand):
    help = """Compare search and save with LangGraph's SqliteStore and Chroma: same texts, same
    embedding, one run. Needs the packages of requirements-bench.txt."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR", help="labelled sets")
        parser.add_argument("--others", default="2000,20000,100000", help="sizes, by commas")
        parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures")

    def run(self, **options: Any) -> None:
        try:
            sizes = sorted(int(size) for size in options["others"].split(","))
            sets = read_sets(options["folder"])
        except ValueError as error:
            raise CommandError(str(error)) from None
        if not sets:
            raise CommandError(f"{options['folder']} holds no *.memories.jsonl with queries.")
        if sizes[0] < 1:
            raise CommandError("--others takes numbers such as 2000,20000.")
        _require_packages()
        model = embedder.current()
        if model is None:
            raise CommandError("No model embeds here; set EMBEDDINGS=embedded.")
        versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
        self.stdout.write(
            f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, "
            f"SQLite {sqlite3.sqlite_version}; {versions}; {model.model} for all"
        )
        embedding, now = Embedding(model), timezone.now()
        texts = [
            text for each in sets for texts in bench_peers.read_texts(each, now=now).values()
            for text in texts
        ]  # fmt: skip
        with progress(len(texts), "Embedding", unit=" texts") as bar:
            bench_peers.prepare(embedding, texts, bar.update)
        material = bench_peers.choose(sets, texts)
        figures = {
            "times": self._time(embedding, material, sizes, now),
            "recall": self._recall(embedding, sets, now),
        }
        if options["json"]:
            options["json"].write_text(json.dumps(figures, indent=1), encoding="utf-8")

    def _time(
        self,
        embedding: Embedding,
        material: Material,
        sizes: Sequence[int],
        now: datetime,
    ) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        self.stdout.write(
            f"\nThe {peers.LIMIT} best of one user's {len(material.own)}, medians in ms; "
            "then saves a second\n" + _LINE.format("", "others", *peers.OPEN, "÷ LangG.")
        )
        with bench_peers.opened(embedding, now=now) as stores:
            bench_peers.add_own(stores, material)
            for before, size in zip([0, *sizes], sizes, strict=False):
                self._grow(stores, material, before, size)
                times = bench_peers.time_searches(stores, embedding, material.queries)
                alone = times.embedding
                self._tell("search", size, times.searches)
                without = {name: taken - alone for name, taken in times.searches.items()}
                self._tell(f"  less {alone:.2f} to embed it", size, without)
                rows.append({"others": size, "embedding_ms": alone, **times.searches})
            saves = {each.name: bench_peers.saves_a_second(each, material) for each in stores}
            self._tell("saves a second", sizes[-1], saves)
            rows.append({"others": sizes[-1], "saves_a_second": saves})
        return rows

    def _grow(self, stores: Sequence[Peer], material: Material, before: int, size: int) -> None:
        for store in stores:
            name = f"Adding {size - before} memories to {store.name}"
            with progress(size - before, name) as bar:
                bench_peers.add_others(store, material, before, size, bar.update)

    def _tell(self, name: str, size: int, figures: dict[str, float]) -> None:
        cells = (f"{figures[each]:.2f}" for each in peers.OPEN)
        ratio = figures[_HIPPO] / figures[_LANGGRAPH]
        self.stdout.write(_LINE.format(name, size, *cells, f"{ratio:.2f}"))

    def _recall(
        self, embedding: Embedding, sets: Sequence[LabelledSet], now: datetime
    ) -> dict[str, Any]:
        self.stdout.write(
            f"\nrecall@{peers.LIMIT}, each question asked in its scope\n"
            + _LINE.format("set", "questions", *peers.OPEN, "ahead")
        )
        found: dict[str, dict[str, float]] = {}
        with bench_peers.opened(embedding, now=now) as stores:
            for each in sets:
                with progress(None, f"Asking {each.name}", unit=" questions") as bar:
                    found[each.name] = shares = bench_peers.recalls(
                        stores, each, bar.update, now=now
                    )
                ahead = shares[_HIPPO] - max(shares[_LANGGRAPH], shares[_CHROMA])
                cells = (f"{shares[name]:.3f}" for name in peers.OPEN)
                asked = sum(query.category != APART for query in each.queries)
                self.stdout.write(_LINE.format(each.name, asked, *cells, f"{ahead:+.3f}"))
        return found


def _require_packages() -> None:
    """Raise CommandError that says what to install where something is missing."""
    missing = [name for name, module in _PACKAGES.items() if not _is_there(module)]
    if missing:
        raise CommandError(
            f"Not installed: {', '.join(missing)}. ./run bench_peers installs them, into an "
            "environment of their own."
        )
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        raise CommandError(
            "LangGraph's store loads an extension into SQLite, which this Python was built "
            "without; Debian's and Ubuntu's own python3 can."
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
