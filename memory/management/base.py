"""What the commands share: naming an agent, and errors as one clear line."""

from __future__ import annotations

import os
import sys
from typing import Any, Literal

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection
from django.utils import translation
from tqdm import tqdm

from agents.models import Agent
from memory.errors import HippoError


class HippoCommand(BaseCommand):
    """A command whose `run` may raise HippoError; the operator reads its message."""

    # they load every page, half the time of a short command; migrate_stores does them at each start
    requires_system_checks: list[str] | Literal["__all__"] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Call `run`; a command speaks English, whatever the server's language is."""
        try:
            with translation.override("en"):
                self.run(**options)
        except BrokenPipeError:  # whoever read the output has seen enough
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        except HippoError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(_explain(error)) from error
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise CommandError(what) from error

    def run(self, **options: Any) -> None:
        """Do the command's work."""
        raise NotImplementedError


def _explain(error: DatabaseError) -> str:
    try:
        if Agent._meta.db_table not in connection.introspection.table_names():
            return "There are no tables yet: run migrate_stores first."
    except DatabaseError:
        return f"The control database fails: {error}"
    return f"A database fails: {error} (--traceback shows where)"


def find_agent(name: str) -> Agent:
    """Return the agent called `name`. Raises CommandError that lists the ones there are."""
    try:
        return Agent.objects.named(name)
    except Agent.DoesNotExist:
        names = ", ".join(Agent.objects.values_list("name", flat=True)[:20])
        known = f"There are: {names}." if names else "There is none yet: use create_agent."
        raise CommandError(f"There is no agent {name}. {known}") from None


def add_agents_argument(parser: CommandParser) -> None:
    """Let a command take agents by name; none means all."""
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="by default every agent")


def chosen_agents(names: list[str]) -> list[Agent]:
    """Return the named agents, or all."""
    if names:
        return [find_agent(name) for name in names]
    return list(Agent.objects.select_related("memory_config"))


def progress(total: int | None, description: str, unit: str = " memories") -> tqdm[Any]:
    """Return a progress bar on stderr; silent where that is no terminal."""
    return tqdm(total=total, desc=description, unit=unit, unit_scale=True, disable=None)
