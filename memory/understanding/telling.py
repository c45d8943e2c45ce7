"""What of a long message tells what it is about, in bounded time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from memory import analyzer

MAX_TERMS = 96
"""A query looks for so many terms at most."""
MAX_SEEN_CHARS = 600_000
MAX_READ_CHARS = 16_000
"""Of what is left of a longer message without its like lines, the beginning, the end and a few
slices between are read."""

_SLICES = 4
MAX_EXCERPT_CHARS = 2_500
_LINE_CHARS = 300
_EDGE_CHARS = 600
"""So much of the beginning and of the end is kept: there people say what they want."""
_PATTERN_BYTES = 200
_MAX_LINES = 20_000
_SENTENCE = re.compile(r"[^\n。！？!?；;]+[。！？!?；;]*")
_NAME = re.compile(r"(?<=[a-z0-9,] )[A-Z]\w+|\b\w*[a-z][A-Z]\w*|\b\w+(?:[_./]\w+)+\b|\b[A-Z]{2,}\b")
_NOISE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b0x[0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{8,}\b|\b\d{6,}\b"
    r"|(?<![A-Za-z0-9+/=_-])(?=[A-Za-z+/=_-]*\d)[A-Za-z0-9+/=_-]{32,}"
)
_NUMBER = re.compile(r"\d+")


def query_terms(
    text: str, *, keep_stop_words: bool = True, limit: int = MAX_TERMS
) -> dict[str, float]:
    """Return at most `limit` terms to look for with their weights, in order of appearance.

    Those of an ordinary question are all of its terms. Of more, and of a text past
    `analyzer.MAX_QUERY_CHARS`, those are chosen that tell most: of repeated topics, names
    and long words, and of the beginning and the end. Timestamps, hashes and other ids count
    only where there is nothing else.
    """
    if len(text) <= analyzer.MAX_QUERY_CHARS:
        terms = analyzer.query_terms(text, keep_stop_words=keep_stop_words)
        if len(terms) <= limit:
            return terms
    short, said = excerpt(text), Counter[str]()
    terms = analyzer.query_terms(short, keep_stop_words=keep_stop_words, said=said)
    if len(terms) <= limit:
        return terms
    worth = _worth(short, terms, said)
    best = sorted(terms, key=lambda term: -worth[term])[:limit]
    chosen = set(best)
    return {term: weight for term, weight in terms.items() if term in chosen}


def excerpt(text: str) -> str:
    """Return at most about `MAX_EXCERPT_CHARS` of a text: its telling sentences, in order."""
    sentences = list(_distinct(_read(text)))
    if not sentences:
        half = MAX_EXCERPT_CHARS // 2
        return text if len(text) <= 2 * half else f"{text[:half]} {text[-half:]}"
    size = sum(len(each) + 1 for each in sentences)
    if size > MAX_EXCERPT_CHARS:
        sentences = _best(sentences)
    return "\n".join(sentences)


def _read(text: str) -> str:
    """Return what is read of a text: its lines, of like ones the first, as far as there is room."""
    if len(text) <= MAX_READ_CHARS:
        return text
    text = _sampled(text, MAX_SEEN_CHARS)
    lines: dict[bytes, str] = {}
    # a log's lines differ by their numbers and ids
    patterns = text.encode("utf-8", "surrogatepass").translate(None, b"0123456789abcdef")
    pairs = zip(text.split("\n", _MAX_LINES), patterns.split(b"\n", _MAX_LINES), strict=True)
    for line, pattern in pairs:
        lines.setdefault(pattern[:_PATTERN_BYTES], line)
    return _sampled("\n".join(lines.values()), MAX_READ_CHARS)


def _sampled(text: str, most: int) -> str:
    """Return a text of at most about `most` characters: both ends, and slices between."""
    if len(text) <= most:
        return text
    edge = most // 3
    length = edge // _SLICES
    step = (len(text) - 2 * edge - length) // (_SLICES - 1)
    starts = (edge + number * step for number in range(_SLICES))
    slices = (text[start : start + length] for start in starts)
    return "\n".join([text[:edge], *slices, text[-edge:]])


def _distinct(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a text without noise, of like ones the first."""
    seen = set()
    for match in _SENTENCE.finditer(text):
        sentence = " ".join(_NOISE.sub(" ", match.group()).split())
        pattern = _NUMBER.sub("0", sentence.casefold())
        if any(map(str.isalnum, sentence)) and pattern not in seen:
            seen.add(pattern)
            yield sentence


def _best(sentences: list[str]) -> list[str]:
    """Return the sentences of both ends, and of the others those of the most told topics."""
    left = MAX_EXCERPT_CHARS
    kept: set[int] = set()
    for order in (range(len(sentences)), range(len(sentences) - 1, -1, -1)):
        used = 0
        for number in order:
            sentences[number] = sentences[number][:_EDGE_CHARS]
            used += len(sentences[number]) + 1
            if (used > _EDGE_CHARS and used > len(sentences[number]) + 1) or number in kept:
                break
            kept.add(number)
            left -= len(sentences[number]) + 1
    counts = Counter(word for each in sentences for word in set(_words(each)))
    value = {}
    for number, sentence in enumerate(sentences):
        words = set(_words(sentence))
        names = len(_NAME.findall(sentence))
        repeated = sum(1 for word in words if 1 < counts[word] <= 20)
        value[number] = (repeated + 2 * names + len(words) / 4) / (20 + len(sentence)) ** 0.5
    for number in sorted(value, key=lambda each: (-value[each], each)):
        cost = len(sentences[number]) + 1
        if number not in kept and cost <= left:
            kept.add(number)
            left -= cost
    return [sentences[number] for number in sorted(kept)]


def _words(sentence: str) -> list[str]:
    return [word for word in sentence.casefold().split() if len(word) > 3]


def _worth(text: str, terms: dict[str, float], said: Counter[str]) -> dict[str, float]:
    """Return how much each term tells: its weight, raised for topics, names and both ends."""
    names = set(analyzer.document_terms(" ".join(_NAME.findall(text))))
    lines = text.split("\n")
    ends = set(analyzer.document_terms(f"{lines[0][:_LINE_CHARS]} {lines[-1][-_LINE_CHARS:]}"))
    worth = {}
    for term, weight in terms.items():
        repeats = min(said[term], 4) - 1
        value = weight * (1 + 0.25 * repeats) * (1 + min(len(term), 12) / 24)
        worth[term] = value * (1.5 if term in names else 1) * (1.5 if term in ends else 1)
    return worth
