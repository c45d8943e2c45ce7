"""Quoted words of a query, which must occur as they stand."""

from __future__ import annotations

import re

from memory.analyzer import fold

MAX_PHRASES = 8
MAX_CHARS = 200
"""Longer than this is no phrase to look for but a text that somebody quotes."""

MAX_BESIDE_CHARS = 80
"""Past so many characters beside the quotes it is prose, in which quotes only name things."""

_SMALLEST = 2
_PAIRS = re.compile(
    r"“([^“”]+)”|「([^「」]+)」|『([^『』]+)』|｢([^｢｣]+)｣"
    # straight ones open behind no letter or digit and close before none: 5" nails, don't
    r'|(?<![A-Za-z0-9])["＂]([^"＂]+)["＂](?![A-Za-z0-9])'
    r"|(?<!\w)'(\S[^']*)'(?!\w)|(?<!\w)‘(\S[^‘’]*)’(?!\w)"
)
_MARKS = re.compile('["＂“”「」『』｢｣]')


def phrases(text: str) -> tuple[str, ...]:
    """Return the distinct phrases in quotes, folded, in their order.

    A quote without its other half is plain text, and so are quotes round less than a word,
    round blanks, or single ones that may be apostrophes. Prose has none.
    """
    if len(text) > MAX_PHRASES * MAX_CHARS:
        return ()
    if len(_PAIRS.sub("", text)) > MAX_BESIDE_CHARS:
        return ()
    found: dict[str, None] = {}
    for match in _PAIRS.finditer(text):
        is_single = bool(match[6] or match[7])
        quoted = next(group for group in match.groups() if group)
        phrase = fold(quoted)
        letters = sum(map(str.isalnum, phrase))
        is_blank = quoted[0].isspace() or quoted[-1].isspace()
        least = _SMALLEST if is_single else 1
        if letters >= least and len(quoted) <= MAX_CHARS and not is_blank:
            found[phrase] = None
    return tuple(found)[:MAX_PHRASES]


def loosened(text: str) -> str:
    """Return a question without its quotes, '' for what is none.

    Where no memory holds what a question quotes, say the title of a book, an answer to it may
    still be there.
    """
    if not text.rstrip().endswith(("?", "？")):
        return ""
    bare = _MARKS.sub(" ", _PAIRS.sub(lambda match: f" {match.group()[1:-1]} ", text))
    return "" if phrases(bare) else bare
