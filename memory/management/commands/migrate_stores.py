from __future__ import annotations

from typing import Any

from django.db import DatabaseError

from memory.databases import MYSQL_ALIAS, known_aliases, migrate_store, mysql_obstacle
from memory.errors import HippoError
from memory.management.base import HippoCommand
from memory.services.backups.restoring import require_none_unfinished


class Command(HippoCommand):
    help = "Migrate the control database and every memory store that is configured or in use."
    requires_system_checks = "__all__"

    def run(self, **options: Any) -> None:
        require_none_unfinished()
        migrate_store("default")  # first: it knows the other stores
        for alias in known_aliases():
            if alias == MYSQL_ALIAS and (obstacle := mysql_obstacle()):
                # agents on SQLite need not wait for it
                self.stderr.write(f"{alias}: not migrated. {obstacle}")
                continue
            try:
                migrate_store(alias)
            except (DatabaseError, HippoError) as error:
                self.stderr.write(f"{alias}: not migrated, its agents have no memory. {error}")
                continue
            self.stdout.write(f"{alias}: up to date")
