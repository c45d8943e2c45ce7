from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.drafts import parse_user_id
from memory.management.base import HippoCommand, find_agent
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search


class Command(HippoCommand):
    help = "Print a user's memories ranked for a query, with scores and milliseconds."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent")
        parser.add_argument("user", metavar="USER")
        parser.add_argument("query")
        parser.add_argument("--limit", type=int, default=10)
        parser.add_argument("--min-score", type=float, default=0.0)
        parser.add_argument(
            "--as-you-type", action="store_true", help="the last word may be unfinished"
        )

    def run(self, **options: Any) -> None:
        agent = find_agent(options["agent"])
        user_id = parse_user_id(options["user"])
        request = SearchRequest(
            options["query"],
            limit=options["limit"],
            min_score=options["min_score"],
            as_you_type=options["as_you_type"],
        )
        search(agent, user_id, request, now=timezone.now())  # opens the store, loads dictionaries
        started = time.perf_counter()
        result = search(agent, user_id, request, now=timezone.now())
        milliseconds = (time.perf_counter() - started) * 1000
        for hit in result.hits:
            memory = hit.memory
            self.stdout.write(f"{hit.score:.3f}  [{memory.type}] {memory.name}")
            content = " ".join(memory.content.split())
            self.stdout.write(f"       {content[:160]}{'…' if len(content) > 160 else ''}")
            self.stdout.write(f"       id {memory.pk} · matched {', '.join(hit.matched)}")
        cut = ", of the 2,000 nearest candidates" if result.truncated else ""
        found = f"{len(result.hits)} {'memory' if len(result.hits) == 1 else 'memories'}"
        self.stdout.write(f"{found} in {milliseconds:.1f} ms, warm{cut}")
