"""What is the same and what is alike, on the labelled pairs."""

import json
from pathlib import Path

import pytest

from memory.retrieval.likeness import SIMILAR, by_words, is_exact, is_same, wording

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "duplicates.jsonl").read_text().splitlines()
]


def likeness_of(pair):
    return by_words(wording(pair["a"]), wording(pair["b"]))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair['a']} | {pair['b']}")
def test_only_a_repetition_is_the_same_whichever_comes_first(pair):
    one, other = wording(pair["a"]), wording(pair["b"])

    assert is_same(one, other) is is_same(other, one) is (pair["label"] == "same")
    assert by_words(one, other) == pytest.approx(by_words(other, one))
    assert not is_exact(pair["a"], pair["b"]) or pair["label"] == "same"
    assert 0 <= by_words(one, other) <= 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_alike_is_told_from_different(language):
    pairs = [pair for pair in PAIRS if pair["lang"] == language]
    told = [pair for pair in pairs if likeness_of(pair) >= SIMILAR]
    right = [pair for pair in told if pair["label"] != "different"]
    alike = [pair for pair in pairs if pair["label"] != "different"]

    assert len(right) / len(told) >= 0.95
    assert len(right) / len(alike) >= 0.8


@pytest.mark.parametrize("text", ["", "?!", "\u200b", "的", "not", "the", "猫" * 5_000, "🙂"])
def test_any_text_is_like_itself_and_nothing_fails(text):
    assert is_exact(text, text)
    assert 0 <= by_words(wording(text), wording(text)) <= 1
    assert by_words(wording(text), wording("Ming likes tea")) < SIMILAR


def test_a_long_text_is_never_the_same_by_its_gist():
    beginning = "Ming deploys on Fridays. " * 300

    assert not is_same(wording(f"{beginning} one"), wording(f"{beginning} two"))
    assert by_words(wording(f"{beginning} one"), wording(f"{beginning} two")) > SIMILAR
