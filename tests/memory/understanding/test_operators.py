from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.understanding.operators import parse

SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
TYPES = {"project": "project", "项目": "project", "user": "user", "feedback": "feedback"}


def read(query):
    return parse(query, types=TYPES, now=NOW, zone=SHANGHAI)


def shanghai(month, day):
    return datetime(2026, month, day, tzinfo=SHANGHAI)


@pytest.mark.parametrize(
    ("query", "types", "tags", "text"),
    [
        ("type:project deploy", ("project",), (), "deploy"),
        ("deploy type:project", ("project",), (), "deploy"),
        ("TYPE:Project", ("project",), (), ""),
        ("type:project type:user x", ("project", "user"), (), "x"),
        ("类型:项目 上线", ("project",), (), "上线"),
        ("類型：項目 上线", ("project",), (), "上线"),
        ("ｔype:project", (), (), "ｔype:project"),
        ("tag:deploy tag:night", (), ("deploy", "night"), ""),
        ('tag:"on call" rota', (), ("on call",), "rota"),
        ("标签：“值 班” 表", (), ("值 班",), "表"),
        ("标签：「值班」", (), ("值班",), ""),
    ],
)
def test_types_and_tags_narrow(query, types, tags, text):
    found = read(query)

    assert (found.types, found.tags, found.text, found.refused) == (types, tags, text, ())
    assert found.is_narrowing == bool(types or tags)


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ("after:2026-03-05", shanghai(3, 5), None),
        ("before:2026-03-05", None, shanghai(3, 5)),
        ("after:3月5日 before:4月", shanghai(3, 5), shanghai(4, 1)),
        ("after:march", shanghai(3, 1), None),
        ('after:"last week" before:yesterday', shanghai(11, 23), shanghai(11, 29)),
        ("after:monday", shanghai(11, 30), None),
        ("after:2026", shanghai(1, 1), None),
        ("之后：上个月", shanghai(10, 1), None),
        ("之前:3天前", None, shanghai(11, 27)),
        ("之後：３月５號", shanghai(3, 5), None),
        ("after:2026-03 after:2026-04", shanghai(4, 1), None),
    ],
)
def test_times_narrow_from_or_up_to_their_beginning(query, start, end):
    found = read(f"{query} deploy")

    assert (found.created_from, found.created_until) == (start, end)
    assert (found.text, found.refused) == ("deploy", ())


@pytest.mark.parametrize(
    "query",
    [
        "name:deploy", "grammar::fa", "{content} : deploy", "http://type:x", "type : project",
        "a:b", "type", "mytype:project", '"type:project"', "他说“类型:项目”", "", '"', 'say "hi',
        "-type:project", "type::project", 'tag:"half', "  two  blanks ",
    ],
)  # fmt: skip
def test_other_words_with_a_colon_are_plain_text(query):
    found = read(query)

    assert (found.text, found.is_narrowing, found.refused) == (query.strip(), False, ())


def test_a_value_that_says_nothing_is_told():
    found = read("type:bug after:never 之前：昨天是 deploy")

    assert found.text == "deploy"
    assert found.refused == (("type", "bug"), ("after", "never"), ("before", "昨天是"))
    assert not found.is_narrowing


def test_an_operator_that_is_being_typed_narrows_nothing():
    found = read("deploy type:")

    assert (found.text, found.is_narrowing, found.refused) == ("deploy", False, ())


@given(st.text() | st.text('type:tag:之前："“” 3月ab', max_size=40))
def test_no_query_is_too_odd(query):
    found = read(query)

    assert len(found.text) <= len(query)
