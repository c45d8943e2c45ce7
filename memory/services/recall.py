"""Recall for agents: a search whose results count as used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agents.models import Agent, Pause
from memory.errors import MemoryOff, MemoryPaused
from memory.models import Memory
from memory.retrieval.calibration import MIN_SCORE
from memory.retrieval.lexical import Hit, SearchRequest
from memory.retrieval.rerank import CANDIDATES, rerank
from memory.retrieval.search import MODES as MODES
from memory.retrieval.search import search
from memory.services import memories
from memory.services.figures import recall_counts

MAX_REMINDERS = 5
NOT_RERANKED = "not_reranked"


@dataclass(frozen=True, slots=True)
class Recall:
    """Hits, best first; how they were found, and what could not be done as asked.

    `degraded` holds `no_vectors` where meaning was asked for and no model embeds,
    `embedding_failed` where the one that does failed, and `truncated` where more memories matched
    than were ranked. `abstained` where there is only noise, of which `nearest` is the best.
    `has_more` where others follow. `reranked`: whether a model picked among the best, None where
    none was asked; `not_reranked` is in `degraded` where it failed.
    """

    hits: tuple[Hit, ...]
    mode: str
    degraded: tuple[str, ...]
    abstained: bool = False
    nearest: tuple[Hit, ...] = ()
    has_more: bool = False
    reranked: bool | None = None


def is_paused(agent: Agent, user_id: str) -> bool:
    """Return whether the user does not want to be remembered by the agent for now."""
    return Pause.objects.filter(agent=agent, user_id=user_id).exists()


def require_on(agent: Agent, user_id: str) -> None:
    """Raise MemoryOff or MemoryPaused where nothing may be recalled or saved.

    The operator switches an agent's memory off, a user pauses it for himself.
    """
    if is_paused(agent, user_id):
        raise MemoryPaused(
            f"User {user_id} has paused the memory of agent {agent.name}: go on without it."
        )
    if not agent.memory_config.enabled:
        raise MemoryOff(
            f"The memory of agent {agent.name} is switched off: go on without it, or ask the "
            "operator to switch it on."
        )


def least_score(agent: Agent) -> float:
    """Return the score below which a hit is noise to this agent."""
    own = agent.memory_config.min_score
    return MIN_SCORE if own is None else own


def recall(
    agent: Agent, user_id: str, request: SearchRequest, *, mode: str = "auto", now: datetime
) -> Recall:
    """Return what a user's memories hold for a query, and note that it was recalled.

    Raises MemoryOff, MemoryPaused.
    """
    require_on(agent, user_id)
    found = pick(agent, user_id, request, mode=mode, now=now)
    note(agent, user_id, found.hits, now=now)
    return found


def look(
    agent: Agent, user_id: str, request: SearchRequest, *, mode: str = "auto", now: datetime
) -> Recall:
    """Return what a recall would, for those who try it: nothing is noted or counted."""
    found = search(agent, user_id, request, mode=mode, now=now)
    return Recall(
        found.hits,
        found.mode,
        found.all_degraded,
        found.abstained,
        found.nearest,
        found.has_more,
    )


def pick(
    agent: Agent, user_id: str, request: SearchRequest, *, mode: str = "auto", now: datetime
) -> Recall:
    """Return what `look` does; for an agent that wants it a model picks among the best hits.

    It sees twenty, on the first page alone. Where it fails the order stays, after 3 s at most.
    """
    if not agent.memory_config.reranks or request.offset:
        return look(agent, user_id, request, mode=mode, now=now)
    wider = replace(request, limit=max(request.limit, CANDIDATES))
    found = look(agent, user_id, wider, mode=mode, now=now)
    given = rerank(request.query, found.hits, limit=request.limit, language=agent.language)
    is_asked = len(found.hits) > 1
    return replace(
        found,
        hits=given.hits,
        has_more=found.has_more or len(found.hits) > len(given.hits),
        reranked=given.reranked if is_asked else None,
        degraded=(*found.degraded, NOT_RERANKED)
        if is_asked and not given.reranked
        else found.degraded,
    )


def note(
    agent: Agent,
    user_id: str,
    hits: Sequence[Hit],
    *,
    took_ms: float | None = None,
    now: datetime,
) -> None:
    """Note which memories were recalled, and count the recall, also one that found nothing.

    `took_ms` for a prefetch.
    """
    if hits:
        memories.touch(agent, user_id, [hit.memory.pk for hit in hits], now=now)
    recall_counts.add(agent, user_id, found=bool(hits), took_ms=took_ms, now=now)


def due_reminders(agent: Agent, user_id: str, *, now: datetime) -> list[Memory]:
    """Return live memories whose `due_at` has come, the longest due first, at most five."""
    live = Memory.objects.in_scope(agent, user_id).live(now)
    return list(live.filter(due_at__lte=now).order_by("due_at", "id")[:MAX_REMINDERS])
