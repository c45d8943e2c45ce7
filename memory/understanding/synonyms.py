"""Words that mean the same to an agent's users: who looks for one finds the others too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory import analyzer

Groups = Sequence[Sequence[str]]

MAX_GROUPS, MAX_WORDS, MAX_WORD_CHARS = 200, 10, 60
WEIGHT = 0.7
"""What a synonym counts where the word itself counts 1."""
MAX_ADDED_TERMS = 48

_ASCII_WORD = re.compile(r"[a-z0-9]")


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a group: how it is spelt, folded, its terms, and the one that stands for it."""

    folded: str
    terms: Mapping[str, float]
    only: str


def expand(query: str, terms: Mapping[str, float], groups: Groups) -> dict[str, float]:
    """Return the terms that synonyms add to a query, with their weights, none of `terms`.

    A word of a group counts as asked for where the folded query holds it, in any form of an
    English word, and not as a part of a longer one. The others of its group are added, not
    what is in a group with those. The terms of one synonym share its weight.
    """
    if not groups:
        return {}
    folded = analyzer.fold(query[: analyzer.MAX_QUERY_CHARS])
    added: dict[str, float] = {}
    for group in _prepared(tuple(map(tuple, groups))):
        asked = [_is_asked(word, folded, terms) for word in group]
        if not any(asked):
            continue
        for word, is_asked in zip(group, asked, strict=True):
            for term, weight in () if is_asked else _shared(word):
                if term not in terms:
                    added[term] = max(weight, added.get(term, 0.0))
    return dict(list(added.items())[:MAX_ADDED_TERMS])


def spelt_out(query: str, groups: Groups) -> str:
    """Return a query with the synonyms of its words behind it, for a model to read."""
    if not groups:
        return query
    folded = analyzer.fold(query[: analyzer.MAX_QUERY_CHARS])
    terms = analyzer.query_terms(query)
    also = []
    for group, prepared in zip(groups, _prepared(tuple(map(tuple, groups))), strict=True):
        asked = [_is_asked(word, folded, terms) for word in prepared]
        if any(asked):
            also += [word for word, is_asked in zip(group, asked, strict=True) if not is_asked]
    return f"{query} ({', '.join(also)})" if also else query


@lru_cache(maxsize=64)
def _prepared(groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[_Word, ...], ...]:
    return tuple(tuple(map(_word, group)) for group in groups)


def _word(text: str) -> _Word:
    folded, terms = analyzer.fold(text), analyzer.query_terms(text)
    strong = [term for term in terms if not term.endswith("~")]
    # a word of one term is found in its other forms, and one character not inside words
    is_single = " " not in folded and len(strong) == 1
    return _Word(folded, terms, strong[0] if is_single else "")


def _is_asked(word: _Word, query: str, terms: Mapping[str, float]) -> bool:
    if word.only and terms.get(word.only, 0.0) > analyzer.MIN_FINDING_WEIGHT:
        return True
    if len(word.folded) == 1 and not word.folded.isascii():
        return False
    at = query.find(word.folded)
    while at >= 0 and word.folded:
        end = at + len(word.folded)
        if not (_is_within(query, at) or _is_within(query, end)):
            return True
        at = query.find(word.folded, at + 1)
    return False


def _is_within(text: str, at: int) -> bool:
    """Return whether a word in Latin letters goes on there."""
    around = text[max(at - 1, 0) : at + 1]
    return 0 < at < len(text) and all(map(_ASCII_WORD.match, around))


def _shared(word: _Word) -> list[tuple[str, float]]:
    """Return a synonym's terms with their shares of its weight; each that finds, still finds."""
    least = analyzer.MIN_FINDING_WEIGHT
    finding = sum(weight >= least for weight in word.terms.values())
    shares = []
    for term, weight in word.terms.items():
        share = weight * WEIGHT / max(finding, 1)
        shares.append((term, max(share, least) if weight >= least else share))
    return shares
