"""Answers to a fragment that say in a toast what was done."""

from __future__ import annotations

import json
from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import reverse

from agents.preferences import PageRequest
from memory.forms import BrowseForm


def toasted(
    response: HttpResponse,
    text: str,
    undo: str = "",
    *,
    changed: int | None = None,
    relist: bool = False,
) -> HttpResponse:
    """Return the response with a toast; `undo` is the address that takes it back.

    `changed` is a memory whose row in the list is not what it says any more; `relist` says
    that the whole list is not.
    """
    events: dict[str, object] = {"toast": {"text": text, "undo": undo}}
    if relist:
        events["relist"] = {}
    if changed:
        events["changed"] = {"row": f"row-{changed}"}
    # JSON of ASCII only: a header has no other characters, and no memory's name ends it
    response.headers["HX-Trigger"] = json.dumps(events)
    return response


def undo_address(request: PageRequest, at: datetime, **more: str) -> str:
    """Return the address that puts back what was changed at a moment, and shows the list again."""
    narrowing = BrowseForm(request.GET).narrowing
    parameters = {**narrowing, **more, "at": at.isoformat()}
    return f"{reverse('memory-undo')}?{urlencode(parameters)}"
