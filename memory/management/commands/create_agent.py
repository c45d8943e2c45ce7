from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, transaction
from django.utils import timezone

from agents import audit, keys
from agents.keys import NewKey
from agents.models import Agent, AuditAction, Backend
from memory.databases import migrate_store, mysql_alias, mysql_obstacle, store_alias
from memory.errors import BackendUnavailable
from memory.management.base import HippoCommand


class Command(HippoCommand):
    help = "Create an agent and its first API key; the last line printed is the key."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="letters, digits, '-', '_' and '.' of any script")
        parser.add_argument("--backend", choices=Backend.values, default=Backend.SQLITE)
        parser.add_argument("--sqlite-path", default="memory.db", help="a file of DATA_DIR/memory")
        parser.add_argument("--display-name", default="")
        parser.add_argument("--language", choices=dict(settings.LANGUAGES), default="zh-hans")
        parser.add_argument("--user", default="", help="bind the key to this user_id")

    def run(self, **options: Any) -> None:
        if Agent.objects.filter(name=options["name"]).exists():
            raise CommandError(f"There is an agent {options['name']} already.")
        if options["backend"] == Backend.MYSQL:
            if obstacle := mysql_obstacle():
                raise BackendUnavailable(obstacle)
            migrate_store(mysql_alias())
        try:
            with transaction.atomic(using="default"):
                agent = Agent.objects.create_agent(
                    options["name"],
                    backend=options["backend"],
                    sqlite_path=options["sqlite_path"],
                    display_name=options["display_name"],
                    language=options["language"],
                )
                now = timezone.now()
                audit.note(None, AuditAction.AGENT_CREATED, agent=agent, now=now)
                wanted = NewKey("first key", options["user"])
                _, key = keys.create(agent, wanted, actor=None, now=now)
                alias = store_alias(agent)  # a store that cannot be opened leaves no agent
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except DatabaseError as error:
            raise CommandError(f"The store {options['sqlite_path']} fails: {error}") from error
        self.stdout.write(f"Created agent {agent.name}; its memories are in {alias}.")
        self.stdout.write("Its key, shown only this once:")
        self.stdout.write(key)
