"""What the words of a query say of a scope's memories, by the engine or from memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from memory import analyzer
from memory.filters import MemoryFilter
from memory.retrieval import candidates, lexical, postings
from memory.retrieval.bm25f import Ranked
from memory.retrieval.candidates import Wanted
from memory.retrieval.lexical import Found
from memory.retrieval.postings import WordShares

NOTHING = WordShares(np.zeros(0, dtype=np.int64), np.zeros(0), lambda _: ())


@dataclass(frozen=True, slots=True)
class Evidence:
    """Memories that hold a telling word, with the share of the query's information each has.

    Or, of a query that is taken letter by letter, `literal` ones with their scores, best first.
    `words` are the plain words behind the terms. `alive` picks the ids that may be recalled, where
    that is known in memory. `is_askable`: there is a word to ask by; signs and greetings mean
    nothing.
    """

    shares: WordShares = NOTHING
    literal: Sequence[Ranked] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    alive: Callable[[Iterable[int]], set[int]] | None = None
    truncated: bool = False
    is_askable: bool = False


def gather(wanted: Wanted) -> Evidence:
    """Return what the words of a query say; from memory where the scope was asked before.

    Both ways find the same and score it alike. Filters, letters and words that are still being
    typed are the engine's.
    """
    [scope], request = wanted.scopes, wanted.request
    is_plain = wanted.filter == MemoryFilter() and not request.as_you_type
    if is_plain and not analyzer.literals(request.query):
        kept = postings.of_scope(scope)
        if kept:
            queries, words = candidates.encoded(wanted)
            query = queries[scope.pk]
            shares = kept.shares(scope, query, wanted.now)
            if len(shares.ids) or request.is_message:
                return Evidence(
                    shares,
                    words=words,
                    alive=lambda ids: kept.alive(ids, wanted.now),
                    is_askable=bool(query.weights),
                )
    return of_engine(wanted, lexical.find(wanted))


def of_engine(wanted: Wanted, found: Found) -> Evidence:
    """Return what the engine found in a wanted scope."""
    [scope] = wanted.scopes

    if found.literals:
        return Evidence(
            NOTHING, found.best, found.words, truncated=found.truncated, is_askable=True
        )
    shares = lexical.shares(scope, found)
    return Evidence(
        WordShares(
            np.fromiter(shares, np.int64, len(shares)),
            np.fromiter((share for share, _ in shares.values()), np.float64, len(shares)),
            lambda memory_id: shares[memory_id][1],
        ),
        words=found.words,
        truncated=found.truncated,
        is_askable=found.is_askable,
    )
