"""Proper names and titles in a query: what somebody would know who is asked about them."""

from __future__ import annotations

import re
from collections.abc import Collection

from memory import analyzer
from memory.words import STOP_WORDS

_CALENDAR = frozenset(
    """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """.split()
)
# no acronyms and no CamelCase: these are often new to whom they are told
_CAPITALISED = re.compile(r"\b[A-Z][a-z]+\b")
_BEGINS_SENTENCE = ".!?:\n\u3002\uff01\uff1f"
_OPENING = " \"\u201c'(*"
_TITLE = re.compile(
    r"\u300a([^\u300b]{2,40})\u300b|\u300c([^\u300d]{2,40})\u300d|\u201c([^\u201d]{2,40})\u201d"
    # an inch sign stands behind a digit
    r'|(?<![A-Za-z0-9])"([^"]{2,40})"(?![A-Za-z0-9])'
    r"|\*([^*\n]{2,40})\*|(?<!\w)'([^']{2,40})'(?!\w)"
)


def names(query: str, asked: Collection[str]) -> list[tuple[str, ...]]:
    """Return the terms of each distinct name and quoted title, those alone that are `asked`.

    A name is a capitalised word that does not begin a sentence and is no month or weekday.
    Chinese writes no capitals, so there only titles (《三体》) count.
    """
    text = query if len(query) <= analyzer.MAX_QUERY_CHARS else query[: analyzer.MAX_QUERY_CHARS]
    found: dict[tuple[str, ...], None] = {}
    for match in _CAPITALISED.finditer(text):
        before = text[: match.start()].rstrip(_OPENING)
        word = match.group().lower()
        if before and before[-1] not in _BEGINS_SENTENCE and word not in _CALENDAR | STOP_WORDS:
            found[_terms(word, asked)] = None
    for match in _TITLE.finditer(text):
        found[_terms(next(filter(None, match.groups())), asked)] = None
    return [terms for terms in found if terms]


def _terms(text: str, asked: Collection[str]) -> tuple[str, ...]:
    """Return the telling terms of a name: neither light words nor mere beginnings."""
    terms = analyzer.query_terms(text, keep_stop_words=False)
    return tuple(
        term
        for term, weight in terms.items()
        if weight >= 1 and not term.endswith("~") and term in asked
    )
