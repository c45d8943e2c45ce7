from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError

from agents.models import Agent
from memory.databases import store_alias
from memory.errors import HippoError
from memory.management.base import HippoCommand, add_agents_argument, chosen_agents, progress
from memory.services import maintenance


class Command(HippoCommand):
    help = "Compare every agent's memories with its full-text index; exit status 1 on a fault."

    def add_arguments(self, parser: CommandParser) -> None:
        add_agents_argument(parser)

    def run(self, **options: Any) -> None:
        faults = 0
        stores = set()
        for agent in chosen_agents(options["agents"]):
            try:
                faults += self._check(agent)
                stores.add(store_alias(agent))
            except (DatabaseError, HippoError) as error:
                faults += 1
                self.stderr.write(f"{agent.name}: its store fails: {error}")
        for alias in sorted(stores):  # those that answer, whatever the others do
            if orphans := maintenance.find_orphans(alias):
                faults += 1
                self.stderr.write(f"{alias}: {orphans} memories of agents that are no more")
        if faults:
            raise CommandError(f"{faults} faults; reindex_memory mends those of an index.")
        self.stdout.write("No faults.")

    def _check(self, agent: Agent) -> int:
        count = maintenance.count_memories(agent)
        faults = 0
        with progress(count, f"Checking {agent.name}") as bar:
            for fault in maintenance.check(agent, bar.update):
                faults += 1
                where = f"memory {fault.memory_id}" if fault.memory_id else "all"
                self.stderr.write(f"{agent.name}/{fault.user_id} {where}: {fault.problem}")
        self.stdout.write(f"{agent.name}: {count} memories checked")
        return faults
