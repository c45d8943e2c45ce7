from __future__ import annotations

import os
import platform
from typing import Any

from django.core.management.base import CommandError, CommandParser

from agents.models import Backend
from memory.databases import mysql_obstacle
from memory.management import bench_overview, bench_pages
from memory.management.base import HippoCommand
from memory.management.bench_overview import Size

_HEADING = ("few", "p95", "many", "p95", "÷", "queries")
_LINE = "{:24}{:>9}{:>9}{:>9}{:>9}{:>7}{:>10}"


class Command(HippoCommand):
    help = "Time the overview of many agents, with few memories and with many."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rows", default="1000,1000000", help="few and many, by a comma")
        parser.add_argument("--agents", type=int, default=200)
        parser.add_argument("--per-user", type=int, default=400, help="memories of each user")
        parser.add_argument("--backend", choices=Backend.values, default=Backend.SQLITE)
        parser.add_argument("--rounds", type=int, default=20, help="how often each is asked for")

    def run(self, **options: Any) -> None:
        try:
            few, many = (int(size) for size in options["rows"].split(","))
        except ValueError:
            raise CommandError("--rows takes two numbers such as 1000,1000000.") from None
        if min(few, many, options["agents"], options["per_user"]) < 1:
            raise CommandError("--rows, --agents and --per-user are 1 or more.")
        if options["rounds"] < 2:
            raise CommandError("--rounds is at least 2.")
        backend = options["backend"]
        if backend == Backend.MYSQL and (obstacle := mysql_obstacle()):
            raise CommandError(f"{obstacle} Or measure with --backend sqlite.")
        self.stdout.write(
            f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores; "
            f"gunicorn with one worker of one thread; {options['agents']} agents with {few} and "
            f"{many} memories in all, {options['per_user']} a user; medians and p95 in ms, warm"
        )
        small, big = (Size(size, options["agents"], options["per_user"]) for size in (few, many))
        with (
            bench_overview.visited(backend, small) as first,
            bench_overview.visited(backend, big) as second,
        ):
            self.stdout.write(_LINE.format(backend, *_HEADING))
            for name, (who, path) in bench_overview.PAGES.items():
                visitors = [first[who], second[who]]
                times = bench_pages.compare(
                    visitors, [path] * 2, target="", rounds=options["rounds"]
                )
                self._row(name, times)

    def _row(self, name: str, times: list[bench_pages.Times]) -> None:
        few, many = times
        self.stdout.write(
            _LINE.format(
                name,
                *(f"{value:.1f}" for each in times for value in (each.median, each.p95)),
                f"{many.median / few.median:.2f}",
                f"{few.queries}/{many.queries}",
            )
        )
