from __future__ import annotations

from typing import Any

from memory.databases import known_aliases, migrate_store
from memory.management.base import HippoCommand


class Command(HippoCommand):
    help = "Migrate the control database and every memory store that is configured or in use."

    def run(self, **options: Any) -> None:
        migrate_store("default")  # first: it knows the other stores
        for alias in known_aliases():
            migrate_store(alias)
            self.stdout.write(f"{alias}: up to date")
