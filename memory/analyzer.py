"""The analyzer: text in, terms out; the same terms whatever engine indexes them.

Three steps, each a function: `fold` makes spellings alike, `document_terms` and
`query_terms` cut folded text into terms, `encode_term` writes a term as the plain
ASCII word that both engines' default tokenizers keep whole.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain

import rjieba
import Stemmer
import zhconv_rs

from memory.words import BASE_FORMS, LIGHT_WORDS, STOP_WORDS

ANALYZER_VERSION = 1
"""Stored with every row of terms; raise it when the same text gives other terms."""

MAX_QUERY_CHARS = 4_000
"""Longer queries are analysed by their beginning and their end."""

MAX_TERM_CHARS = 72
"""Encoded terms, scope key included, stay under InnoDB's 84."""
_KEPT_TERM_CHARS = 40

_LIGHT_WEIGHT = 0.4
_BEGINNING_WEIGHT = 0.2
_CROSS_PAIR_WEIGHT = 0.35
_CHARACTER_WEIGHT = 0.15
"""What weak evidence counts for in a query: light words, words that only begin alike,
a pair of characters across two dictionary words, one character of a longer word."""

MIN_FINDING_WEIGHT = 0.2
"""Lighter terms rank what others found: a single character of a longer word is in half
of all Chinese memories, so looking for it would cost much and find noise."""

_BEGINNING_CHARS = 5
_MAX_LITERALS = 32

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = (  # scripts written without spaces between words, or with glued particles
    _HAN + "\u3040-\u30ff\u31f0-\u31ff\u1100-\u11ff\uac00-\ud7af"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)


def _ranges(is_member: Callable[[str], bool]) -> str:
    """Return the characters for which `is_member` holds as ranges of a character class."""
    ranges: list[list[str]] = []
    # between these blocks there are none but ideographs and private characters
    for character in map(chr, chain(range(0x20000), range(0xE0000, 0xE1000))):
        if not is_member(character):
            continue
        if ranges and ord(ranges[-1][1]) == ord(character) - 1:
            ranges[-1][1] = character
        else:
            ranges.append([character, character])
    return "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges)


# combining marks belong to words, and `\w` leaves them out
_MARKS = _ranges(lambda character: unicodedata.category(character)[0] == "M")
_UNSEEN = re.compile(
    "[{}]".format(
        _ranges(lambda c: unicodedata.category(c) in ("Cc", "Cf", "Cs") and not c.isspace())
    )
)
_WORD = rf"[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}])*"
_TOKEN = re.compile(rf"(?P<run>[{_UNSPACED}]+)|(?P<word>{_WORD}(?:[-_./@:+#&=\\'\u2019]+{_WORD})*)")
_INNER_SIGNS = re.compile(r"[-_./@:+#&=\\]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_HAN_ONLY = re.compile(f"[{_HAN}]+")
_QUOTES = "\"'`\u2018\u2019\u201c\u201d()[]{}<>\u300a\u300b\u300c\u300d\u300e\u300f\u3010\u3011"
_STOPS = ".,;:?!\u2026\u3001\u3002"  # full-width ones are folded to these
_OPENING = _QUOTES + _STOPS + "-~*^+|"
_CLOSING = _QUOTES + _STOPS
_LATIN = re.compile(r"[a-z]+")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_CLITIC = re.compile(r"['\u2019](?:s|t|m|re|ve|ll|d)\b", re.IGNORECASE)

_stemmer = Stemmer.Stemmer("english")
_stemmer_lock = threading.Lock()  # it keeps state between words


def _simplified_characters() -> dict[int, str]:
    """Map each traditional character to its simplified form, one character at a time.

    Converting whole sentences is context-dependent, so that one character could be
    indexed in one way and asked for in another.
    """
    blocks = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0x20000, 0x323B0))
    characters = [chr(code) for first, end in blocks for code in range(first, end)]
    simplified = zhconv_rs.zhconv("\n".join(characters), "zh-hans").split("\n")
    changed = {
        ord(old): new
        for old, new in zip(characters, simplified, strict=True)
        if old != new and len(new) == 1
    }
    # 戱 becomes 戯, which becomes 戏
    return {old: changed.get(ord(new), new) for old, new in changed.items()}


_SIMPLIFIED = _simplified_characters()


def fold(text: str) -> str:
    """Return `text` in the spelling that is compared: NFKC, lower case, simplified.

    Format and control characters are dropped (a zero-width space is no word), white
    space becomes single spaces. Idempotent.
    """
    return _fold_case(_fold_width(text))


def unify(text: str) -> str:
    """Return `text` folded but for its case."""
    return _fold_width(text).translate(_SIMPLIFIED)


def _fold_width(text: str) -> str:
    return " ".join(_UNSEEN.sub("", unicodedata.normalize("NFKC", text)).split())


def _fold_case(text: str) -> str:
    # casefold can undo the composition that NFKC made (and the other way round)
    return unicodedata.normalize("NFKC", text.casefold()).translate(_SIMPLIFIED)


def document_terms(text: str) -> list[str]:
    """Return every term of `text` in its order, repeats kept, stop words kept.

    A word gives its stem, itself where that differs (typing finds it by prefix), and
    its beginning (`compe~` for competition and compete); an identifier gives itself and
    its parts; Chinese gives dictionary words, overlapping pairs and characters.
    """
    terms: list[str] = []
    for kind, token in _tokens(text):
        if kind == "word":
            for word in token:
                terms.extend(_word_terms(word))
        else:
            terms.extend(term for term, _ in _run_terms(token[0]))
    return terms


def query_terms(
    text: str, *, keep_stop_words: bool = True, said: Counter[str] | None = None
) -> dict[str, float]:
    """Return the terms to look for with their weights in (0, 1], in order of appearance.

    Stop words are dropped unless nothing else is left and they are to be kept then. `said`
    is given how often each term occurs. Past `MAX_QUERY_CHARS` the middle of the text is left out.
    """
    if len(text) > MAX_QUERY_CHARS:
        half = MAX_QUERY_CHARS // 2
        text = f"{text[:half]} {text[-half:]}"
    telling: dict[str, float] = {}
    silent: dict[str, float] = {}
    for word, term, weight in _weighted_terms(text):
        weights = silent if word in STOP_WORDS else telling
        weights[term] = max(weight, weights.get(term, 0.0))
        if said is not None:
            said[term] += 1
    return telling or (silent if keep_stop_words else {})


def stop_words(text: str) -> tuple[str, ...]:
    """Return the words of a query that are so common that they tell nothing, in their order."""
    words = (word for word, _term, _weight in _weighted_terms(text[:MAX_QUERY_CHARS]))
    return tuple(dict.fromkeys(word for word in words if word in STOP_WORDS))


def literals(text: str) -> tuple[str, ...]:
    """Return the folded words of a query to be taken letter by letter, or ().

    That is a query in which every word holds a sign inside or behind it (`100%`,
    `file_name`, `c++`): cut into terms it would find its parts. Signs alone are no
    literal, and those that people put round words (quotes, brackets, a minus in front)
    are taken off.
    """
    words = _bare_words(text)
    return words if all(map(_has_sign, words)) else ()


def short_words(text: str) -> tuple[str, ...]:
    """Return the folded words of a query of one or two letters or of symbols only, or ().

    Where these are no words of any memory they may still be parts of some.
    """
    words = _bare_words(text)
    short = (len(word) <= 2 or not any(map(str.isalnum, word)) for word in words)
    return words if all(short) else ()


def last_word(text: str) -> str:
    """Return the word that is being typed: the end of `text`, folded, or ''."""
    tokens = list(_tokens(text))
    if not tokens or text[-1:].isspace():
        return ""
    kind, token = tokens[-1]
    return token[-1] if kind == "word" else token[0][-2:]


def _bare_words(text: str) -> tuple[str, ...]:
    """Return the distinct folded words of `text` without the signs round them.

    A text of more than `_MAX_LITERALS` is no literal and gives ().
    """
    if len(text) > MAX_QUERY_CHARS:
        return ()
    words = (word.lstrip(_OPENING).rstrip(_CLOSING) for word in fold(text).split())
    bare = tuple(dict.fromkeys(word for word in words if any(map(_is_searchable, word))))
    return bare if len(bare) <= _MAX_LITERALS else ()


def _is_searchable(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LNM" or category == "So"


def _has_sign(word: str) -> bool:
    return any(not _is_searchable(character) and character not in "'\u2019" for character in word)


def _tokens(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield ("word", forms of one word or identifier) and ("run", [unspaced characters])."""
    wide = _fold_width(text)
    previous_number, previous_end = "", -1
    for match in _TOKEN.finditer(wide):
        token = match.group()
        if match.lastgroup == "run":
            run = _fold_case(token)
            if previous_number and match.start() == previous_end:
                yield "word", [previous_number + run[0]]  # 50条, 12月
            yield "run", [run]
        else:
            yield "word", _word_forms(token)
        previous_number = token if token.isdigit() else ""
        previous_end = match.end()


def _word_forms(token: str) -> list[str]:
    """Return the word, or an identifier's whole and its parts, folded and distinct."""
    token = _CLITIC.sub("", token).replace("'", "").replace("\u2019", "")
    parts = [part for piece in _INNER_SIGNS.split(token) for part in _CAMEL.split(piece)]
    forms = [_fold_case(token), *(_fold_case(part) for part in parts)]
    return list(dict.fromkeys(form for form in forms if form))


def _run_terms(run: str) -> list[tuple[str, float]]:
    """Return the terms of unspaced text with their weights in a query.

    Dictionary words of three characters or more, every pair, every character.
    """
    words = rjieba.cut(run) if _HAN_ONLY.fullmatch(run) else [run]
    found: list[tuple[str, float]] = []
    starts, position = set(), 0
    for word in words:
        starts.add(position)
        position += len(word)
        if len(word) > 2 and len(words) > 1:
            found.append((word, 1.0))
    for index in range(len(run) - 1):
        crosses = index + 1 in starts
        found.append((run[index : index + 2], _CROSS_PAIR_WEIGHT if crosses else 1.0))
    for word in words:
        weight = 1.0 if len(word) == 1 else _CHARACTER_WEIGHT
        found.extend((character, weight) for character in word)
    return found


@lru_cache(maxsize=65_536)
def _word_terms(word: str) -> tuple[str, ...]:
    """Return a word's stem, the word where it differs, and its beginning if it is longer."""
    if ordinal := _ORDINAL.fullmatch(word):
        return ordinal[1], word
    plain = _without_accents(word)
    if not _LATIN.fullmatch(plain):
        return (word,)
    with _stemmer_lock:
        stem = _stemmer.stemWord(BASE_FORMS.get(plain, plain))
    terms = dict.fromkeys((stem, word))
    if len(stem) >= _BEGINNING_CHARS:
        terms[f"{stem[:_BEGINNING_CHARS]}~"] = None
    return tuple(terms)


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def _weighted_terms(text: str) -> Iterator[tuple[str, str, float]]:
    """Yield every word of a query with each of its terms and the term's weight."""
    for kind, token in _tokens(text):
        if kind == "word":
            for word in token:
                for term, weight in _weighted_word(word):
                    yield word, term, weight
        else:
            for term, weight in _run_terms(token[0]):
                yield term, term, weight


def _weighted_word(word: str) -> list[tuple[str, float]]:
    terms = _word_terms(word)
    stem, last = terms[0], terms[-1]
    weight = _LIGHT_WEIGHT if word in LIGHT_WORDS or stem in LIGHT_WORDS else 1.0
    found = [(stem, weight)]
    if last.endswith("~"):
        found.append((last, weight * _BEGINNING_WEIGHT))
    return found


def scope_key(number: int) -> str:
    """Return a scope's number as the self-delimiting prefix of its terms.

    The first letter tells how many base-36 digits follow, so no key is the beginning
    of another and no term of one scope can equal a term of another.
    """
    digits = _base36(number)
    return chr(ord("a") + len(digits)) + digits


def encode_term(term: str, key: str) -> str:
    """Return `term` behind its scope's `key` as 3 to 72 ASCII letters and digits.

    One to one and prefix-preserving: letters and digits stand for themselves but `q`,
    which is doubled; any other character is `q` and four base-36 digits. Terms past
    the limit keep their beginning and end in a hash.
    """
    encoded = list(map(_encode_character, term))
    word = key + "".join(encoded)
    if len(word) <= MAX_TERM_CHARS:
        return word
    beginning = key
    for character in encoded:
        if len(beginning) + len(character) > _KEPT_TERM_CHARS:
            break
        beginning += character
    digest = hashlib.blake2b(word.encode(), digest_size=12).hexdigest()
    # `qz` opens no character: the first digit of four never passes `n`
    return f"{beginning}qz{digest}"


@lru_cache(maxsize=32_768)
def _encode_character(character: str) -> str:
    if character.isascii() and character.isalnum():
        return "qq" if character == "q" else character.lower()
    return "q" + _base36(ord(character)).rjust(4, "0")


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
        if not number:
            return digits
