from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db import DatabaseError, connections, transaction
from django.db.models.signals import post_delete, post_migrate, pre_delete
from django.utils.translation import gettext_lazy as _


class MemoryConfig(AppConfig):
    name = "memory"
    verbose_name = _("Memory")

    def ready(self) -> None:
        from agents.models import Agent

        post_migrate.connect(restore_index, sender=self)
        pre_delete.connect(erase_memories, sender=Agent)
        post_delete.connect(forget_store, sender=Agent)


def restore_index(using: str, plan: Any = (), **kwargs: Any) -> None:
    """Put the index back where a migration remade its table and so dropped the triggers."""
    from memory import fts

    connection = connections[using]
    if fts.TERMS_TABLE in connection.introspection.table_names() and not fts.has_index(connection):
        fts.rebuild_index(connection)


def erase_memories(instance: Any, **kwargs: Any) -> None:
    """Erase what an agent remembers before the agent is deleted; no foreign key does it."""
    from agents.models import AgentNotErased
    from memory.errors import HippoError
    from memory.services.erasure import erase_agent

    if not hasattr(instance, "memory_config"):
        return
    try:
        erase_agent(instance)
    except (HippoError, DatabaseError) as error:
        raise AgentNotErased(f"{instance.name}: {error}") from error


def forget_store(instance: Any, using: str, **kwargs: Any) -> None:
    """Take away the mark that kept writers out, once nobody can see the agent any more."""
    from memory.services.erasure import forget_agent

    if hasattr(instance, "memory_config"):
        agent_id = instance.pk  # the instance loses it
        transaction.on_commit(lambda: forget_agent(instance, agent_id), using=using)
