"""JSON is found in whatever a model says around it."""

import time

import pytest

from memory.llm.replies import ReplyUnreadable, fits, read_json

PICKED = {
    "type": "object",
    "required": ["picked"],
    "properties": {"picked": {"type": "array", "items": {"type": "integer"}}},
}
SAID = [
    '{"picked": [2, 1]}',
    '```json\n{"picked": [2, 1]}\n```',
    'Sure! Here it is:\n```\n{"picked": [2, 1],}\n```\nHope that helps {really}.',
    '<think>Perhaps {"picked": [3]}? No.</think>{"picked": [2, 1]}',
    'Perhaps {"picked": [3]}? No.</think>\n\n{"picked": [2, 1]}',
    '<think>The first [1] fits.\n{"picked": [2, 1,],\n}',
    'I weighed {"picked": [3]} and {"picked": "all"}, and come to {"picked": [2, 1]}.',
    'The memory "x, ]" fits: {"why": "a, ] \\" b", "picked": [2, 1]}',
    'A quote " stands alone {"picked": [2, 1,]}',
    '选出的是：{"picked": [2, 1]}。',
]
NOTHING = [
    "", "Doc: 5, because it fits", "[1, 2]", '{"picked": "2"}', '{"picked": [true]}',
    '{"picked": [1.5]}', '{"picked": [NaN]}', '{"order": [1]}', '{"picked": [1', "null",
    "[" * 9_000,     '{"picked":' * 9_000,
]  # fmt: skip


@pytest.mark.parametrize("said", SAID)
def test_the_answer_is_found(said):
    assert read_json(said, PICKED)["picked"] == [2, 1]


@pytest.mark.parametrize("said", NOTHING)
def test_what_has_another_shape_is_no_answer(said):
    with pytest.raises(ReplyUnreadable):
        read_json(said, PICKED)


@pytest.mark.parametrize("piece", ["<think>", "{", '{"a":[', '"', "[1,", "},"])
def test_no_reply_takes_long_to_read(piece):
    began = time.monotonic()

    with pytest.raises(ReplyUnreadable):
        read_json(piece * 100_000, PICKED)

    assert time.monotonic() - began < 5


def test_types_are_those_of_json():
    assert fits(1, {"type": "integer"})
    assert not fits(True, {"type": "integer"})
    assert fits(True, {"type": "boolean"})
    assert fits(1, {"type": "number"})
    assert fits("a", {"type": "string"})
    assert not fits(None, {"type": "string"})
