from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from memory.management.base import HippoCommand, add_agents_argument, chosen_agents, progress
from memory.services import maintenance


class Command(HippoCommand):
    help = "Analyse memories again and rebuild their full-text index; searches go on meanwhile."

    def add_arguments(self, parser: CommandParser) -> None:
        add_agents_argument(parser)

    def run(self, **options: Any) -> None:
        for agent in chosen_agents(options["agents"]):
            with progress(maintenance.count_memories(agent), f"Reindexing {agent.name}") as bar:
                done = maintenance.reindex(agent, bar.update)
            self.stdout.write(f"{agent.name}: {done} memories reindexed")
