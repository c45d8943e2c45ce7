"""The agents as operators see them: when each was last called, and by how many keys it may be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max

from agents.models import Agent, ApiKey, live_at


@dataclass(frozen=True, slots=True)
class Entry:
    """An agent, when one of its keys was last used (to a minute), and how many can be."""

    agent: Agent
    last_call: datetime | None
    keys: int


def entries(*, now: datetime) -> list[Entry]:
    """Return all agents by name; two queries."""
    agents = Agent.objects.filter(memory_config__isnull=False).select_related("memory_config")
    of_agent = ApiKey.objects.order_by().values_list("agent_id")
    used = {
        agent_id: (last_call, keys)
        for agent_id, last_call, keys in of_agent.annotate(
            last_call=Max("last_used_at"), keys=Count("pk", filter=live_at(now))
        )
    }
    return [Entry(agent, *used.get(agent.pk, (None, 0))) for agent in agents.order_by("name")]
