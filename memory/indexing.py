"""From a memory to its index row: which text is searched, in which field."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memory.analyzer import ANALYZER_VERSION, document_terms, encode_term, fold, scope_key
from memory.drafts import MemoryDraft
from memory.models import Memory, MemoryTerms, MemoryVector, Scope

EMBEDDED_CHARS = 1_200
"""More of a text is not embedded: most models would cut it, and each word would tell less."""
_MAX_REPEATS = 16
"""Past this a further repeat changes a score by less than anyone could see."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The terms of a memory's three fields, before they carry a scope, and its content's digest."""

    fields: tuple[list[str], list[str], list[str]]
    folded: str
    digest: str


def analyze(memory: Memory | MemoryDraft) -> Analysis:
    """Return the terms of `memory`; the costly part of indexing, without a query.

    The description's field also holds the tags and the texts of the detail.
    """
    described = " \n".join([memory.description, *_texts(memory.detail), *memory.tags])
    texts = (memory.name, described, memory.content)
    name, description, content = (_bounded(document_terms(text)) for text in texts)
    folded = "\n".join(map(fold, texts))
    return Analysis((name, description, content), folded, content_digest(memory.content))


def content_digest(content: str) -> str:
    """Return what is equal for contents that differ in case, width, signs or space alone."""
    return folded_digest(fold(content))


def folded_digest(folded: str) -> str:
    """Return the digest of a content that `fold` has folded.

    Of a content without a letter or digit it is that of its signs.
    """
    telling = "".join(filter(str.isalnum, folded))
    return hashlib.blake2b((telling or folded).encode(), digest_size=16).hexdigest()


def index_row(memory: Memory, scope: Scope, analysis: Analysis) -> MemoryTerms:
    """Return the unsaved index row of `memory` in `scope`."""
    key = scope_key(scope.pk)
    fields = ("".join(f" {encode_term(term, key)} " for term in field) for field in analysis.fields)
    return MemoryTerms(
        memory_id=memory.pk,
        scope_id=scope.pk,
        terms="\n".join(fields),
        folded=analysis.folded,
        content_terms=len(analysis.fields[-1]),
        analyzer_version=ANALYZER_VERSION,
    )


def vector_row(memory: Memory, scope: Scope, analysis: Analysis) -> MemoryVector:
    """Return the unsaved row in which the vector of `memory` will be."""
    return MemoryVector(memory_id=memory.pk, scope_id=scope.pk, digest=analysis.digest)


def embedding_text(memory: Memory) -> str:
    """Return the text whose vector stands for a memory; of a long content its beginning.

    The name comes first even where the content begins with it: that serves short memories best.
    """
    parts = (memory.name, memory.description, memory.content)
    return ". ".join(part for part in parts if part.strip())[:EMBEDDED_CHARS]


def take_over(row: MemoryVector, other: MemoryVector | None) -> None:
    """Give an unsaved row the vector that another row of the same memory has, if it is whole."""
    if other and other.digest == row.digest and is_whole(other):
        row.model, row.dimension, row.vector = other.model, other.dimension, other.vector


def is_whole(row: MemoryVector) -> bool:
    """Return whether a row holds as many numbers as it says; none where none was made."""
    is_made = bool(row.model)
    return is_made == bool(row.dimension) and len(row.vector) == 2 * row.dimension


def _bounded(terms: list[str]) -> list[str]:
    if len(terms) <= _MAX_REPEATS:
        return terms
    seen: Counter[str] = Counter()
    kept = []
    for term in terms:
        seen[term] += 1
        if seen[term] <= _MAX_REPEATS:
            kept.append(term)
    return kept


def _texts(detail: Any) -> Iterator[str]:
    if isinstance(detail, str):
        yield detail
    elif isinstance(detail, dict):
        for value in detail.values():
            yield from _texts(value)
    elif isinstance(detail, list):
        for value in detail:
            yield from _texts(value)
