"""Recall: what an agent asks for, found and noted as used."""

from __future__ import annotations

from datetime import datetime

from agents.models import Agent
from memory.retrieval.lexical import SearchRequest, SearchResult, search
from memory.services import memories


def recall(agent: Agent, user_id: str, request: SearchRequest, *, now: datetime) -> SearchResult:
    """Search and count each hit as one access of its memory."""
    result = search(agent, user_id, request, now=now)
    if result.hits:
        memories.touch(agent, user_id, [hit.memory.pk for hit in result.hits], now=now)
    return result
