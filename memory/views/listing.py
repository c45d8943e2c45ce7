"""What the list of memories shows: a page of it, the counts beside the types, what is near."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.preferences import PageRequest
from memory.errors import InvalidMemory
from memory.filters import MemoryFilter
from memory.forms import TYPE_LABELS, BrowseForm, refusals
from memory.models import Job, JobState, MemoryType
from memory.numbers import whole_number
from memory.ordering import ORDERS
from memory.services import bulk, jobs, library
from memory.services.library import Listing, Shelf, TypeCounts
from memory.understanding.operators import Operators
from memory.views.answers import undo_address

PAGE = 30
MAX_HITS = 200
COUNTED_AT_ONCE = 10_000
"""Where more memories than this are listed, their types are counted by a request of its own."""


def list_context(request: PageRequest) -> dict[str, Any]:
    """Return what the list shows."""
    form = BrowseForm(request.GET)
    every, unreachable = library.reachable_shelves(request.user)
    shelves = chosen(every, form)
    started = time.perf_counter()
    listing, counts = _found(shelves, form) if form.text else _listed(shelves, form)
    elapsed = time.perf_counter() - started
    kept = form.narrowing
    total = _total(shelves, form, counts)
    return {
        "browse": form,
        "refusals": refusals(form.typed),
        "text": form.text,
        "address": f"?{urlencode(kept)}" if kept else "",
        "entries": listing.entries,
        "next": following(kept, listing.next) if listing.next else "",
        "milliseconds": max(round(elapsed * 1000), 1),
        "query": kept,
        "agents": sorted({shelf.agent for shelf in every}, key=lambda agent: agent.name),
        "unreachable": unreachable,
        "types": [(name, counts.by_type[name] if counts else None) for name in TYPE_LABELS],
        "counts": counts,
        "total": total,
        "is_counting": counts is None,
        "is_narrowed": bool(kept.keys() - {"sort"}),
        "has_more_filters": bool(kept.keys() & set(form.MORE)),
        "filters": _filters_in_words(form),
        "without": None if listing.entries else _without_filters(every, form),
        **job_context(request, bulk.latest_for(request.user.pk, now=timezone.now())),
    }


def type_counts(request: PageRequest) -> dict[str, Any]:
    """Return the counts beside the types, however many memories there are."""
    form = BrowseForm(request.GET)
    shelves = chosen(library.reachable_shelves(request.user)[0], form)
    counts = library.count_by_type(shelves, form.to_filter(now=timezone.now()))
    return {
        "query": form.narrowing,
        "types": [(name, counts.by_type[name]) for name in TYPE_LABELS],
        "counts": counts,
        "total": sum(counts.by_type.values()),
    }


def job_context(request: PageRequest, job: Job | None) -> dict[str, Any]:
    """Return how far a change of many memories is, and where it can be undone once it ended."""
    if job is None or not jobs.has_ended(job):
        return {"job": job}
    is_undoable = job.state == JobState.DONE and job.payload["action"] != "undo"
    at = datetime.fromisoformat(job.payload["at"])
    undo = undo_address(request, at, job="1") if is_undoable else ""
    return {"job": job, "has_ended": True, "undo": undo}


def chosen(shelves: list[Shelf], form: BrowseForm) -> list[Shelf]:
    """Return the shelves of the agent that was chosen, or all."""
    name = form.value["agent"]
    return [shelf for shelf in shelves if name in {"", shelf.agent.name}]


def following(narrowing: dict[str, str], cursor: str) -> str:
    """Return the address of the page that begins at a cursor."""
    return f"{reverse('home')}?{urlencode({**narrowing, 'cursor': cursor})}"


def narrowing_of(request: PageRequest) -> str:
    """Return the part of an address that narrows the list, to be kept beside a memory."""
    kept = BrowseForm(request.GET).narrowing
    return f"?{urlencode(kept)}" if kept else ""


def _listed(shelves: list[Shelf], form: BrowseForm) -> tuple[Listing, TypeCounts | None]:
    wanted = form.to_filter(now=timezone.now())
    cursor = form.value["cursor"]
    try:
        listing = library.browse(
            shelves, wanted, order=ORDERS[form.value["sort"] or "newest"], cursor=cursor, limit=PAGE
        )
    except InvalidMemory as error:  # a cursor that somebody made up
        raise Http404 from error
    is_long = sum(shelf.scope.memory_count for shelf in shelves) > COUNTED_AT_ONCE
    return listing, None if cursor or is_long else library.count_by_type(shelves, wanted)


def _found(shelves: list[Shelf], form: BrowseForm) -> tuple[Listing, TypeCounts]:
    """Return a page of the hits: the cursor says how many were shown before."""
    now, query, cursor = timezone.now(), form.text, form.value["cursor"]
    wanted = form.to_filter(now=now)
    number = whole_number(cursor or "0", digits=3)
    if number is None:
        raise Http404
    shown = min(number, MAX_HITS)
    upto = min(shown + PAGE, MAX_HITS)
    found = library.seek(shelves, query, wanted, limit=upto, now=now)
    counts = found.counts
    if wanted.types and not cursor:
        counts = library.seek(shelves, query, replace(wanted, types=()), limit=1, now=now).counts
    more = str(upto) if len(found.entries) == upto < MAX_HITS else ""
    return Listing(found.entries[shown:], more), counts


def _total(shelves: list[Shelf], form: BrowseForm, counts: TypeCounts | None) -> int | None:
    """Return how many memories are listed, None where that is being counted."""
    kinds = form.to_filter(now=timezone.now()).types
    if counts:
        return sum(counts.by_type[kind] for kind in kinds or counts.by_type)
    is_all = form.to_filter(now=timezone.now()) == MemoryFilter()
    return sum(shelf.scope.memory_count for shelf in shelves) if is_all else None


def _filters_in_words(form: BrowseForm) -> list[tuple[str, str]]:
    """Return the filters in force as (label, value) that people read."""
    words = []
    for name in ("type", "agent", *form.MORE):
        if value := form.value[name]:
            choices = dict(getattr(form.fields[name], "choices", ()))
            words.append((str(form.fields[name].label), str(choices.get(value, value))))
    return words + _operators_in_words(form.typed)


def _operators_in_words(typed: Operators) -> list[tuple[str, str]]:
    fields = BrowseForm.base_fields
    words = [
        (str(fields["type"].label), str(TYPE_LABELS[MemoryType(each)])) for each in typed.types
    ]
    words += [(str(fields["tag"].label), tag) for tag in typed.tags]
    if typed.created_from:
        words.append((str(fields["after"].label), f"{typed.created_from:%Y-%m-%d}"))
    if typed.created_until:
        words.append((_("Created before"), f"{typed.created_until:%Y-%m-%d}"))
    return words


def _without_filters(shelves: list[Shelf], form: BrowseForm) -> int | None:
    """Return how many a search would find without its filters, None where it has none."""
    query = form.text
    is_narrowed = form.typed.is_narrowing or form.narrowing.keys() - {"q", "sort"}
    if not query or not is_narrowed:
        return None
    found = library.seek(shelves, query, MemoryFilter(), limit=1, now=timezone.now())
    return sum(found.counts.by_type.values())
