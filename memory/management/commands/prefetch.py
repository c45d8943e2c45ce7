from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.drafts import parse_user_id
from memory.management.base import HippoCommand, find_agent
from memory.services.context import prefetch


class Command(HippoCommand):
    help = "Print the block that an agent gets for a message; nothing where nothing fits."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent")
        parser.add_argument("user", metavar="USER")
        parser.add_argument("message")

    def run(self, **options: Any) -> None:
        agent = find_agent(options["agent"])
        user_id = parse_user_id(options["user"])
        found = prefetch(agent, user_id, options["message"], now=timezone.now())
        if not found.enabled:
            self.stderr.write(f"Memory is off for agent {agent.name}.")
        elif found.block:
            self.stdout.write(found.block)
