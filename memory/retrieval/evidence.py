"""What the words of a query say of a scope's memories, by the engine or from memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memory import analyzer
from memory.filters import MemoryFilter
from memory.retrieval import bm25f, candidates, lexical, postings
from memory.retrieval.bm25f import Ranked
from memory.retrieval.calibration import doubt
from memory.retrieval.candidates import Wanted
from memory.retrieval.lexical import Found
from memory.retrieval.postings import NOTHING, WordShares
from memory.retrieval.priors import Traits
from memory.understanding.names import names


@dataclass(frozen=True, slots=True)
class Evidence:
    """Memories that hold a telling word, with the share of the query's information each has.

    Or, of a query that is taken letter by letter, `literal` ones with their scores, best first.
    `words` are the plain words behind the terms. `doubt` speaks against the query's belonging to
    the scope. `alive` are the sorted ids of all that may be recalled, where that is
    known in memory, and `traits` returns what priors look at then.
    `is_askable`: there is a word to ask by; signs and greetings mean nothing.
    """

    shares: WordShares = NOTHING
    literal: Sequence[Ranked] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    doubt: float = 0.0
    alive: NDArray[np.int64] | None = None
    traits: Callable[[Iterable[int]], dict[int, Traits]] | None = None
    truncated: bool = False
    is_askable: bool = False


def gather(wanted: Wanted) -> Evidence:
    """Return what the words of a query say; from memory where the scope was asked before.

    Both ways find the same and score it alike. Filters, letters and words that are still being
    typed are the engine's.
    """
    [scope], request = wanted.scopes, wanted.request
    is_plain = wanted.filter == MemoryFilter() and not request.as_you_type
    kept = postings.of_scope(scope) if is_plain else None
    if kept and not analyzer.literals(request.query):
        queries, words = candidates.encoded(wanted)
        query = queries[scope.pk]
        shares = kept.shares(scope, query, wanted.now)
        if len(shares.ids) or request.is_message:
            return Evidence(
                shares,
                words=words,
                doubt=_doubt(wanted, shares, words),
                alive=kept.alive(wanted.now),
                traits=kept.traits,
                is_askable=bool(query.weights),
            )
    return of_engine(wanted, lexical.find(wanted))


def of_engine(wanted: Wanted, found: Found) -> Evidence:
    """Return what the engine found in a wanted scope."""
    if found.literals:
        return Evidence(
            NOTHING, found.best, found.words, truncated=found.truncated, is_askable=True
        )
    [scope] = wanted.scopes
    weighed = lexical.weigh_words(scope, found)
    terms = {memory_id: each for memory_id, _, each in weighed.documents}
    reached = (bm25f.reach(each, weighed.gains) for each in terms.values())
    shares = WordShares(
        np.fromiter(terms, np.int64, len(terms)),
        np.fromiter(reached, np.float64, len(terms)) / max(weighed.most, 1e-9),
        lambda memory_id: terms.get(memory_id, ()),
        weighed.frequency,
        weighed.nats,
    )
    return Evidence(
        shares,
        words=found.words,
        doubt=_doubt(wanted, shares, found.words),
        truncated=found.truncated,
        is_askable=found.is_askable,
    )


def _doubt(wanted: Wanted, shares: WordShares, words: Mapping[str, str]) -> float:
    """Return the doubt in a query; a name is known where most of its terms are."""
    counts = {word: shares.frequency.get(term, 0) for term, word in words.items()}
    known = [
        2 * sum(counts[term] > 0 for term in terms) > len(terms)
        for terms in names(wanted.request.query, counts.keys())
    ]
    return doubt(shares.nats, known)
