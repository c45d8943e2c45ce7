"""How much two texts say the same: what is equal in wording, and what is only alike.

Numbers, signs, names, negations and the order of words decide what is the same, so that an
update or a contradiction never passes for a repetition: "likes" and "does not like", Friday
and Monday, 12月3日 and 12月5日, C++ and C# are alike and no more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from memory.analyzer import MAX_QUERY_CHARS, fold, query_terms

SIMILAR = 0.5
"""From this likeness on a person would want to see the other text; chosen on
tests/data/duplicates.jsonl, with vectors and without (docs/retrieval.md has the table)."""

_FEWEST_TERMS = 2.0
"""A text of one telling word is not alike to all that hold the word."""
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_QUOTES = "\"'`\u2018\u2019\u201c\u201d()[]<>\u300a\u300b\u300c\u300d\u300e\u300f\u3010\u3011"
_STOPS = ".,;:?!\u2026\u3001\u3002"  # full-width ones are folded to these
_SIGNS = re.escape(_QUOTES + _STOPS)
_BESIDE_HAN = re.compile(rf"(?<=[{_HAN}])[\s{_SIGNS}]+|[\s{_SIGNS}]+(?=[{_HAN}])")
_TOKEN = re.compile(rf"[{_HAN}]|[^\s{_HAN}]+")
_CONTRACTED = re.compile(r"\b(wo|ca|sha)n['\u2019]t\b|n['\u2019]t\b")
_WHOLE = {"wo": "will", "ca": "can", "sha": "shall"}
_FILLERS = frozenset(
    "a an the please really very quite just also so actually basically "
    "的 吧 啊 呢 呀 哦 嘛 啦 请 很 挺".split()
)
_LONG_FILLERS = re.compile("非常|特别|真的|一下")


@dataclass(frozen=True, slots=True)
class Wording:
    """A text as it is compared: its telling terms with their weights, and its gist.

    The gist is what is left, in order, without words that say nothing; of a text past
    `MAX_QUERY_CHARS` there is none, and the terms are those of its beginning and end.
    """

    terms: Mapping[str, float]
    gist: tuple[str, ...] = ()


def wording(text: str) -> Wording:
    """Return what is compared of a text."""
    terms = query_terms(text)
    if len(text) > MAX_QUERY_CHARS:
        return Wording(terms)
    whole = _CONTRACTED.sub(lambda found: f"{_WHOLE.get(found[1], '')} not", fold(text))
    tokens = _tokens(_LONG_FILLERS.sub("", whole))
    gist = tuple(_singular(token) for token in tokens if token not in _FILLERS)
    return Wording(terms, gist or tokens)


def is_exact(one: str, other: str) -> bool:
    """Return whether two texts differ in case, width, stops, quotes and spaces at most."""
    return one == other or _tokens(fold(one)) == _tokens(fold(other))


def is_same(one: Wording, other: Wording) -> bool:
    """Return whether two texts say the same in nearly the same words."""
    return bool(one.gist) and one.gist == other.gist


def by_words(one: Wording, other: Wording) -> float:
    """Return how much of their telling terms two texts share, in [0, 1].

    The mean of the share of all terms (Jaccard) and of the shorter text's (containment): a
    text that another one goes on from is alike, whatever else is said there.
    """
    if is_same(one, other):
        return 1.0
    common = one.terms.keys() & other.terms.keys()
    shared = sum(min(one.terms[term], other.terms[term]) for term in common)
    if not shared:
        return 0.0
    sizes = sum(one.terms.values()), sum(other.terms.values())
    jaccard = shared / (sum(sizes) - shared)
    return min((jaccard + shared / max(min(sizes), _FEWEST_TERMS)) / 2, 1.0)


def _tokens(folded: str) -> tuple[str, ...]:
    """Return words without the stops and quotes round them, and every Chinese character."""
    found = _TOKEN.findall(_BESIDE_HAN.sub(" ", folded))
    words = (word.lstrip(_QUOTES).rstrip(_QUOTES + _STOPS) for word in found)
    # signs alone, such as "?!", are what they are where there is nothing else
    return tuple(word for word in words if word) or tuple(found)


def _singular(word: str) -> str:
    """Return a word without the s of a plural or of a third person."""
    is_plural = word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural and len(word) > 3 and word.isalpha() else word
