from __future__ import annotations

import os
import platform
from typing import Any

from django.core.management.base import CommandError, CommandParser

from agents.models import Backend
from memory.databases import mysql_obstacle
from memory.management import bench_pages, bench_server
from memory.management.base import HippoCommand
from memory.management.bench_pages import Times, Visitor

_HEADING = ("", "small", "p95", "big", "p95", "÷", "queries", "rows")
_LINE = "{:24}{:>9}{:>9}{:>9}{:>9}{:>7}{:>10}{:>10}"
_WORST = 5


class Command(HippoCommand):
    help = "Time the list of memories and its search, of few memories and of many in one store."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rows", default="1000,100000", help="few and many, by a comma")
        parser.add_argument("--backend", choices=Backend.values, default=Backend.SQLITE)
        parser.add_argument("--rounds", type=int, default=20, help="how often each is asked for")

    def run(self, **options: Any) -> None:
        try:
            small, big = (int(size) for size in options["rows"].split(","))
        except ValueError:
            raise CommandError("--rows takes two numbers such as 1000,100000.") from None
        if min(small, big) < 2 * bench_pages.NEEDLES:
            raise CommandError(f"--rows are {2 * bench_pages.NEEDLES} memories or more each.")
        if options["rounds"] < 2:
            raise CommandError("--rounds is at least 2.")
        if options["backend"] == Backend.MYSQL and (obstacle := mysql_obstacle()):
            raise CommandError(f"{obstacle} Or measure with --backend sqlite.")
        self.stdout.write(
            f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores; "
            f"gunicorn with one worker of one thread; {small} and {big} memories in one store; "
            "medians and p95 in ms, warm"
        )
        with bench_server.installed(options["backend"]) as environment:
            filled = bench_pages.prepare(environment, options["backend"], [small, big])
            application = "bench_pages_wsgi:application"
            with bench_server.served(environment, application, threads=1) as port:
                visitors = [Visitor(port, filled.sessions[name]) for name in bench_pages.PEOPLE]
                self._measure(visitors, filled.words, options["rounds"], options["backend"])
                for visitor in visitors:
                    visitor.close()

    def _measure(
        self, visitors: list[Visitor], words: dict[str, list[str]], rounds: int, backend: str
    ) -> None:
        self.stdout.write(_LINE.format(backend, *_HEADING[1:]))

        def row(name: str, *paths: str, target: str = "list") -> None:
            pair = paths if len(paths) == 2 else paths * 2
            self._row(name, bench_pages.compare(visitors, pair, target=target, rounds=rounds))

        row("list, whole page", "/memories/", target="")
        for name, query in bench_pages.LISTS.items():
            row(name, f"/memories/{query}")
        row("page 50 of the scroll", *(v.deep_page() for v in visitors), target="next")
        row("counts", "/memories/counts/", target="chips")
        row("found: 150", bench_pages.search_path(bench_pages.NEEDLE))
        keystrokes = []
        for kind, chosen in words.items():
            of_kind = [Times(), Times()]
            for query in dict.fromkeys(text for word in chosen for text in bench_pages.typed(word)):
                path = bench_pages.search_path(query)
                times = bench_pages.compare(visitors, [path] * 2, target="list", rounds=rounds)
                keystrokes.append((times[1].p95, query))
                for total, own in zip(of_kind, times, strict=True):
                    total.answers += own.answers
            self._row(f"typed: {kind}", of_kind)
        slowest = ", ".join(
            f"{query} {p95:.0f}" for p95, query in sorted(keystrokes)[: -_WORST - 1 : -1]
        )
        self.stdout.write(f"slowest of {len(keystrokes)} keystrokes among many, p95: {slowest}")

    def _row(self, name: str, times: list[Times]) -> None:
        small, big = times
        self.stdout.write(
            _LINE.format(
                name,
                *(f"{value:.1f}" for each in times for value in (each.median, each.p95)),
                f"{big.median / small.median:.2f}",
                f"{small.queries}/{big.queries}",
                f"{small.rows}/{big.rows}",
            )
        )
