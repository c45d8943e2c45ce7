"""What may become a memory, field by field."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.drafts import (
    MAX_CONTENT_BYTES,
    MAX_DESCRIPTION_CHARS,
    MAX_METADATA_BYTES,
    MAX_NAME_CHARS,
    MAX_TAG_CHARS,
    MAX_TAGS,
    derive_name,
    parse_changes,
    parse_draft,
    parse_user_id,
)
from memory.errors import InvalidMemory

FRIDAYS = {"type": "user", "content": "Ming deploys on Fridays"}
PROCEDURE = {"when": "a deploy fails", "steps": ["read the log", "回滚上一个版本"]}
FACT = {"subject": "Ming", "predicate": "deploys on", "object": "Fridays"}


def faults(data):
    """Return the fields that a draft is refused for."""
    with pytest.raises(InvalidMemory) as caught:
        parse_draft(data)
    return caught.value.fields


def is_accepted(**fields):
    parse_draft({**FRIDAYS, **fields})
    return True


# --- the whole -------------------------------------------------------------------------


def test_a_type_and_a_content_are_enough():
    draft = parse_draft(FRIDAYS)

    assert (draft.type, draft.content, draft.name) == ("user", FRIDAYS["content"], draft.content)
    assert (draft.kind, draft.tier, draft.status) == ("observation", "long_term", "active")
    assert (draft.importance, draft.confidence, draft.visibility) == (0.5, 1.0, "private")
    assert (draft.tags, draft.metadata, draft.detail) == ((), {}, {})
    assert (draft.pinned, draft.core, draft.due_at, draft.expires_at) == (False, False, None, None)


def test_every_field_at_fault_is_named():
    data = {"type": "nonsense", "content": "", "importance": 2, "tags": "deploy", "colour": "red"}

    assert set(faults(data)) == set(data)


def test_type_and_content_are_required():
    assert set(faults({})) == {"type", "content"}
    assert set(faults({"type": "user"})) == {"content"}
    assert set(faults({"content": "Ming deploys on Fridays"})) == {"type"}


@pytest.mark.parametrize("field", ["id", "version", "created_at", "scope", "user_id", "", 7, None])
def test_what_the_author_cannot_decide_is_refused(field):
    assert set(faults({**FRIDAYS, field: "1"})) == {str(field)}


def test_changes_check_only_what_they_change():
    assert parse_changes({}) == {}
    assert parse_changes({"importance": 1}) == {"importance": 1.0}
    with pytest.raises(InvalidMemory) as caught:
        parse_changes({"importance": 1, "type": None, "version": 3})
    assert set(caught.value.fields) == {"type", "version"}


@pytest.mark.parametrize("name", ["", "  ", "\u200b"])
def test_a_name_cannot_be_changed_to_nothing(name):
    with pytest.raises(InvalidMemory) as caught:
        parse_changes({"name": name})
    assert set(caught.value.fields) == {"name"}


# --- text ------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", "  \n\t ", "\u200b", "\u3000", "\ufeff\u200d", "\r\n"])
def test_a_blank_content_is_refused(content):
    assert set(faults({"type": "user", "name": "a", "content": content})) == {"content"}


@pytest.mark.parametrize("value", [None, 7, True, b"bytes", ["Ming"], {"Ming": 1}])
@pytest.mark.parametrize("field", ["content", "name", "description", "source", "type", "kind"])
def test_text_must_be_text(field, value):
    assert set(faults({**FRIDAYS, field: value})) == {field}


@pytest.mark.parametrize(
    ("field", "longest"),
    [("name", MAX_NAME_CHARS), ("description", MAX_DESCRIPTION_CHARS), ("source", 50)],
)
def test_text_has_a_limit_in_characters(field, longest):
    assert is_accepted(**{field: "支" * longest})
    assert is_accepted(**{field: "🎉" * longest})
    assert set(faults({**FRIDAYS, field: "支" * (longest + 1)})) == {field}


def test_content_has_a_limit_in_bytes():
    assert is_accepted(content="支" * (MAX_CONTENT_BYTES // 3))
    assert is_accepted(content="t" * MAX_CONTENT_BYTES)
    assert set(faults({**FRIDAYS, "content": "t" * (MAX_CONTENT_BYTES + 1)})) == {"content"}
    assert set(faults({**FRIDAYS, "content": "支" * (MAX_CONTENT_BYTES // 3 + 1)})) == {"content"}


@pytest.mark.parametrize("bad", ["Ming\x00deploys", "Ming \ud83d", "\udfff"])
@pytest.mark.parametrize(
    ("field", "wrap"),
    [
        ("content", lambda bad: bad),
        ("name", lambda bad: bad),
        ("description", lambda bad: bad),
        ("source", lambda bad: bad),
        ("tags", lambda bad: ["deploy", bad]),
        ("metadata", lambda bad: {"note": bad}),
        ("metadata", lambda bad: {bad: "note"}),
        ("metadata", lambda bad: {"deep": [{"note": [bad]}]}),
        ("metadata", lambda bad: {"deep": [{bad: 1}]}),
    ],
)
def test_what_no_database_can_hold_is_refused_in_every_text(field, wrap, bad):
    assert set(faults({**FRIDAYS, field: wrap(bad)})) == {field}


@pytest.mark.parametrize("bad", ["Ming\x00deploys", "\ud83d"])
@pytest.mark.parametrize(
    ("kind", "detail", "field"),
    [
        ("fact", FACT, "subject"),
        ("fact", FACT, "predicate"),
        ("fact", FACT, "object"),
        ("procedure", PROCEDURE, "when"),
        ("procedure", PROCEDURE, "steps"),
        ("procedure", PROCEDURE, "keywords"),
        ("procedure", PROCEDURE, "cautions"),
        ("summary", {}, "session_id"),
    ],
)
def test_what_no_database_can_hold_is_refused_in_a_detail(kind, detail, field, bad):
    value = [bad] if field in {"steps", "keywords", "cautions"} else bad
    data = {**FRIDAYS, "kind": kind, "detail": {**detail, field: value}}

    assert set(faults(data)) == {f"detail.{field}"}


@pytest.mark.parametrize(
    "text",
    [
        "👨‍👩‍👧 family",
        "e\u0301",
        " both ends ",
        "line\r\nline",
        "\ufeffBOM",
        "\ufffe",
        "ring\x07",
        "𠮷野家",
    ],
)
def test_text_is_kept_letter_by_letter(text):
    draft = parse_draft({"type": "user", "content": text, "name": text, "description": text})

    assert (draft.content, draft.name, draft.description) == (text, text, text)


# --- derived names ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("支付模块周五上线", "支付模块周五上线"),
        ("\n\n  Ming deploys on Fridays  \nnever on Mondays", "Ming deploys on Fridays"),
        ("\u200b\nMing deploys", "Ming deploys"),
        ("支" * 60, "支" * 60),
        ("支" * 61, "支" * 60 + "…"),
        ("Ming " * 20, "Ming " * 11 + "Ming…"),
        ("a" * 70, "a" * 60 + "…"),
    ],
)
def test_a_name_is_the_first_line_of_the_content(content, name):
    assert parse_draft({"type": "user", "content": content}).name == name


@pytest.mark.parametrize("name", ["", "   ", "\u200b"])
def test_a_blank_name_is_derived_too(name):
    assert parse_draft({**FRIDAYS, "name": name}).name == "Ming deploys on Fridays"


def test_a_long_line_is_cut_at_a_word():
    name = derive_name("Ming asks for the conclusion first, then for the reasons that support it")

    assert name == "Ming asks for the conclusion first, then for the reasons…"


@given(st.text(max_size=80))
def test_a_name_can_be_made_of_every_content(text):
    content = f"{text}\nMing"

    name = derive_name(content)

    assert 0 < len(name) <= 61
    assert len(name.splitlines()) == 1


# --- choices, numbers, flags -----------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "accepted"),
    [
        ("type", ["user", "project", "feedback", "reference"]),
        ("tier", ["short_term", "long_term"]),
        ("visibility", ["private", "team", "global"]),
        ("status", ["active", "paused", "archived", "trashed", "superseded"]),
    ],
)
def test_a_choice_is_one_of_a_few(field, accepted):
    for value in accepted:
        draft = parse_draft({**FRIDAYS, field: value})
        assert getattr(draft, field) == value
        assert type(getattr(draft, field)) is str
    for value in ["", "nonsense", accepted[0].upper(), f"{accepted[0]} ", None, 1, [], {}]:
        assert set(faults({**FRIDAYS, field: value})) == {field}


@pytest.mark.parametrize("field", ["importance", "confidence"])
def test_a_share_is_a_number_from_0_to_1(field):
    for value in [0, 1, 0.0, 0.25, 1.0, 5e-324]:
        assert getattr(parse_draft({**FRIDAYS, field: value}), field) == value
        assert type(getattr(parse_draft({**FRIDAYS, field: value}), field)) is float
    for value in [-0.01, 1.01, 7, math.nan, math.inf, -math.inf, True, False, "0.5", None, []]:
        assert set(faults({**FRIDAYS, field: value})) == {field}


@pytest.mark.parametrize("field", ["importance", "confidence"])
def test_a_number_past_every_float_is_refused(field):
    assert set(faults({**FRIDAYS, field: 10**400})) == {field}
    assert set(faults({**FRIDAYS, field: -(10**400)})) == {field}


@pytest.mark.parametrize("field", ["pinned", "core"])
def test_a_flag_is_true_or_false(field):
    assert is_accepted(**{field: True})
    assert is_accepted(**{field: False})
    for value in [0, 1, "true", None, []]:
        assert set(faults({**FRIDAYS, field: value})) == {field}


# --- times -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-12-03T09:00:00Z", datetime(2026, 12, 3, 9, tzinfo=UTC)),
        ("2026-12-03T09:00:00", datetime(2026, 12, 3, 9, tzinfo=UTC)),
        ("2026-12-03T17:00:00+08:00", datetime(2026, 12, 3, 9, tzinfo=UTC)),
        ("2026-12-03", datetime(2026, 12, 3, tzinfo=UTC)),
        ("2026-12-03T09:00:00.123456Z", datetime(2026, 12, 3, 9, 0, 0, 123456, tzinfo=UTC)),
        (datetime(2026, 12, 3, 9), datetime(2026, 12, 3, 9, tzinfo=UTC)),
        (
            datetime(2026, 12, 3, 17, tzinfo=timezone(timedelta(hours=8))),
            datetime(2026, 12, 3, 9, tzinfo=UTC),
        ),
        (None, None),
    ],
)
@pytest.mark.parametrize("field", ["due_at", "expires_at"])
def test_a_time_is_utc(field, value, moment):
    parsed = getattr(parse_draft({**FRIDAYS, field: value}), field)

    assert parsed == moment
    assert parsed is None or parsed.tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    ["", "Friday", "2026-13-01", "2026-12-03T25:00", 1_764_752_400, True, "0001-01-01T00:00+14:00",
     "9999-12-31T23:59-14:00"],
)  # fmt: skip
def test_what_is_no_time_is_refused(value):
    assert set(faults({**FRIDAYS, "due_at": value})) == {"due_at"}


# --- tags ------------------------------------------------------------------------------


def test_tags_are_trimmed_and_kept_once_in_order():
    assert parse_draft({**FRIDAYS, "tags": [" deploy ", "支付", "deploy"]}).tags == (
        "deploy",
        "支付",
    )


def test_tags_that_differ_in_case_are_two():
    assert parse_draft({**FRIDAYS, "tags": ["QA", "qa"]}).tags == ("QA", "qa")


def test_tags_have_a_number_and_a_length():
    assert is_accepted(tags=[f"tag {number}" for number in range(MAX_TAGS)])
    assert is_accepted(tags=["deploy"] * 1_000)
    assert is_accepted(tags=["支" * MAX_TAG_CHARS])
    assert set(faults({**FRIDAYS, "tags": [str(n) for n in range(MAX_TAGS + 1)]})) == {"tags"}
    assert set(faults({**FRIDAYS, "tags": ["支" * (MAX_TAG_CHARS + 1)]})) == {"tags"}


@pytest.mark.parametrize(
    "tags", ["deploy", None, {"deploy": 1}, [""], ["  "], ["\u200b"], [7], [None], [["deploy"]]]
)
def test_tags_are_a_list_of_words(tags):
    assert set(faults({**FRIDAYS, "tags": tags})) == {"tags"}


@pytest.mark.parametrize("between", ["\n", "\r", "\r\n", "\u2028", "\x85", "\x0b", "\x1e"])
def test_a_tag_is_one_line(between):
    assert set(faults({**FRIDAYS, "tags": [f"deploy{between}friday"]})) == {"tags"}


# --- metadata --------------------------------------------------------------------------


@pytest.mark.parametrize("metadata", [None, "text", 7, [], ["a"], True])
def test_metadata_is_an_object(metadata):
    assert set(faults({**FRIDAYS, "metadata": metadata})) == {"metadata"}


def test_metadata_keeps_every_json_value_exactly():
    metadata = {
        "a": None, "list": [1, "x", None, []], "deep": {"k": {"k": [{}]}}, "empty": {},
        "big": 9007199254740993, "bigger": 2**200, "small": -0.0, "whole": 1.0, "yes": True,
        'key with "quote" and .dot': "v", "": "empty key", "юни": "код",
    }  # fmt: skip

    assert repr(parse_draft({**FRIDAYS, "metadata": metadata}).metadata) == repr(metadata)


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, b"x", {"a", "b"}, (1, 2), datetime(2026, 12, 3), object(), 1j],
)
@pytest.mark.parametrize("nest", [lambda v: {"a": v}, lambda v: {"a": [{"b": v}]}])
def test_what_json_cannot_say_is_refused(nest, value):
    assert set(faults({**FRIDAYS, "metadata": nest(value)})) == {"metadata"}


@pytest.mark.parametrize("metadata", [{1: "a"}, {None: "a"}, {"a": {True: 1}}])
def test_keys_of_metadata_are_text(metadata):
    assert set(faults({**FRIDAYS, "metadata": metadata})) == {"metadata"}


def test_metadata_has_a_limit_in_bytes():
    frame = len('{"note": ""}')

    assert is_accepted(metadata={"note": "t" * (MAX_METADATA_BYTES - frame)})
    assert set(faults({**FRIDAYS, "metadata": {"note": "支" * (MAX_METADATA_BYTES // 3)}}))
    assert set(faults({**FRIDAYS, "metadata": {"note": "t" * (MAX_METADATA_BYTES - frame + 1)}}))


def test_metadata_has_a_limit_in_depth():
    def nested(levels):
        return {"a": nested(levels - 1)} if levels else "leaf"

    assert is_accepted(metadata=nested(32))
    assert set(faults({**FRIDAYS, "metadata": nested(33)})) == {"metadata"}
    assert set(faults({**FRIDAYS, "metadata": nested(500)})) == {"metadata"}


def test_an_integer_of_thousands_of_digits_is_refused():
    assert set(faults({**FRIDAYS, "metadata": {"pi": 10**5_000}})) == {"metadata"}


# --- details ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("observation", {}),
        ("fact", FACT),
        ("procedure", PROCEDURE),
        ("procedure", {**PROCEDURE, "keywords": ["deploy", "部署"], "cautions": ["not on Friday"]}),
        ("procedure", {**PROCEDURE, "steps": ["a step"] * 100}),
        ("summary", {}),
        ("summary", {"source_ids": [7, 8], "session_id": "s-1"}),
        ("summary", {"source_ids": list(range(1_000))}),
    ],
)
def test_a_kind_has_its_detail(kind, detail):
    assert parse_draft({**FRIDAYS, "kind": kind, "detail": detail}).detail == detail


@pytest.mark.parametrize(
    ("kind", "detail", "named"),
    [
        ("observation", {"subject": "Ming"}, {"detail.subject"}),
        ("fact", {}, {"detail.subject", "detail.predicate", "detail.object"}),
        ("fact", {**FACT, "object": ""}, {"detail.object"}),
        ("fact", {**FACT, "object": "  \u200b"}, {"detail.object"}),
        ("fact", {**FACT, "object": 7}, {"detail.object"}),
        ("fact", {**FACT, "object": "支" * (MAX_DESCRIPTION_CHARS + 1)}, {"detail.object"}),
        ("fact", {**FACT, "steps": []}, {"detail.steps"}),
        ("procedure", {}, {"detail.when", "detail.steps"}),
        ("procedure", {**PROCEDURE, "steps": "read the log"}, {"detail.steps"}),
        ("procedure", {**PROCEDURE, "steps": [""]}, {"detail.steps"}),
        ("procedure", {**PROCEDURE, "steps": ["a step"] * 101}, {"detail.steps"}),
        ("procedure", {**PROCEDURE, "keywords": [None]}, {"detail.keywords"}),
        ("summary", {"source_ids": [True]}, {"detail.source_ids"}),
        ("summary", {"source_ids": ["7"]}, {"detail.source_ids"}),
        ("summary", {"source_ids": [7.0]}, {"detail.source_ids"}),
        ("summary", {"source_ids": 7}, {"detail.source_ids"}),
        ("summary", {"source_ids": list(range(1_001))}, {"detail.source_ids"}),
        ("summary", {"session_id": ""}, {"detail.session_id"}),
        ("summary", {"when": "later"}, {"detail.when"}),
    ],
)
def test_a_detail_of_another_form_is_refused(kind, detail, named):
    assert set(faults({**FRIDAYS, "kind": kind, "detail": detail})) == named


@pytest.mark.parametrize("detail", [None, [], "text", 7])
def test_a_detail_is_an_object(detail):
    assert set(faults({**FRIDAYS, "detail": detail})) == {"detail"}


# --- users -----------------------------------------------------------------------------


@pytest.mark.parametrize("user_id", ["ming", " ", "0", "null", "%2F", "../anna", "🙂" * 255, "u1 "])
def test_a_user_id_is_any_text_of_1_to_255_characters(user_id):
    assert parse_user_id(user_id) == user_id


@pytest.mark.parametrize(
    "user_id", ["", "🙂" * 256, "ming\x00", "\ud800", None, 7, b"ming", ["ming"]]
)
def test_what_cannot_name_a_user_is_refused(user_id):
    with pytest.raises(InvalidMemory) as caught:
        parse_user_id(user_id)
    assert set(caught.value.fields) == {"user_id"}
