"""Nothing that holds what is asked for is missed: words cut from stored texts, paged to the end."""

import random
import re

import pytest
import zhconv_rs

from memory import analyzer
from memory.models import Memory, Scope
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services.transfers.transfer import import_lines
from tests.conftest import NOW
from tests.memory.services.test_evaluation import DATA

SETS = ("memorybank-zh", "madial-zh")
PAGE = 100
_HAN = re.compile(r"[\u3400-\u9fff]+")
_SHORT = re.compile(r"(?<![a-z0-9])[a-z]{1,2}(?![a-z0-9])")


@pytest.fixture(params=SETS)
def shelf(request, agent):
    """The user of a set with most memories, and the folded fields of each by its id."""
    with (DATA / f"{request.param}.memories.jsonl").open("rb") as lines:
        assert not import_lines(agent, lines, now=NOW).errors
    user_id = Scope.objects.for_agent(agent).order_by("-memory_count", "pk")[0].user_id
    rows = Memory.objects.in_scope(agent, user_id).values_list(
        "pk", "name", "description", "content"
    )
    return agent, user_id, {pk: list(map(analyzer.fold, fields)) for pk, *fields in rows}


def found_by(agent, user_id, query):
    """Return the ids that a query finds, page by page to the end."""
    ids = []
    while True:
        request = SearchRequest(query, limit=PAGE, offset=len(ids), min_score=0.0)
        result = search(agent, user_id, request, now=NOW)
        assert not result.truncated
        ids += [hit.memory.pk for hit in result.hits]
        if not result.has_more:
            assert len(ids) == len(set(ids))
            return set(ids)


def holding(texts, holds):
    return {pk for pk, fields in texts.items() if any(map(holds, fields))}


def cut(texts, size, count, seed=20):
    """Return so many different pieces of the Chinese in the texts, always the same."""
    pieces = {
        run[at : at + size]
        for fields in texts.values()
        for text in fields
        for run in _HAN.findall(text)
        for at in range(len(run) - size + 1)
    }
    return random.Random(seed).sample(sorted(pieces), min(count, len(pieces)))


def test_two_characters_find_every_text_that_holds_them(shelf):
    agent, user_id, texts = shelf
    for pair in cut(texts, 2, 120):
        wanted = holding(texts, lambda text, pair=pair: pair in text)

        assert wanted
        assert wanted <= found_by(agent, user_id, pair), pair


def test_one_character_finds_every_text_that_holds_it(shelf):
    agent, user_id, texts = shelf
    for character in cut(texts, 1, 40):
        wanted = holding(texts, lambda text, character=character: character in text)

        assert found_by(agent, user_id, character) == wanted, character


def test_a_word_of_a_letter_or_two_finds_every_text_that_holds_it(shelf):
    agent, user_id, texts = shelf
    words = {word for fields in texts.values() for text in fields for word in _SHORT.findall(text)}
    for word in words | {"ai"}:
        wanted = holding(texts, lambda text, word=word: word in _SHORT.findall(text))

        assert wanted <= found_by(agent, user_id, word), word
        assert wanted <= found_by(agent, user_id, word.upper()), word


def test_traditional_characters_find_what_simplified_ones_do(shelf):
    agent, user_id, texts = shelf
    pairs = [(pair, zhconv_rs.zhconv(pair, "zh-hant")) for pair in cut(texts, 2, 400)]
    others = [each for each in pairs if each[0] != each[1]][:30]

    assert len(others) == 30
    for simplified, traditional in others:
        assert found_by(agent, user_id, traditional) == found_by(agent, user_id, simplified)
