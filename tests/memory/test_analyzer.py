"""One text, the same terms everywhere: folding, cutting, encoding."""

import re
import string
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.analyzer import (
    MAX_QUERY_CHARS,
    MAX_TERM_CHARS,
    document_terms,
    encode_term,
    fold,
    last_word,
    literals,
    query_terms,
    scope_key,
    short_words,
)

# lone surrogates, controls and unassigned characters included
ANY_TEXT = st.text(st.characters(categories=None), max_size=40)
# the shapes that the analyzer treats in their own way, mixed
SPECIAL = "支付 模組 戏 カ 결제 ภาษา gen-itgc fileName C++ it's went 3rd 50 条 Ａ e\u0301 🎉 / @"
MIXED_TEXT = st.lists(
    st.sampled_from([*SPECIAL.split(), " ", "\u200b", "\ud800"]) | ANY_TEXT, max_size=8
).map("".join)
TERMS = st.text(string.ascii_lowercase + string.digits + "qz-_./~é支付模块🎉", min_size=1)
KEYS = st.integers(min_value=1, max_value=2**63 - 1).map(scope_key)


# --- folding ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("Ｍｉｎｇ　ｄｅｐｌｏｙｓ", "ming deploys"),
        ("５０％", "50%"),
        ("ﬁnal", "final"),
        ("①", "1"),
        ("GRACE", "grace"),
        ("Straße", "strasse"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("Cafe\u0301", "café"),
        ("ｶﾞ", "ガ"),
        ("支付模組週五上線", "支付模组周五上线"),
        ("軟體開發", "软体开发"),
        ("支\u200b付", "支付"),
        ("\ufeffMing\u200d", "ming"),
        ("Ming\x00deploys", "mingdeploys"),
        ("half \ud83d a pair", "half a pair"),
        (" Ming \t deploys\r\n on\u3000Fridays ", "ming deploys on fridays"),
        ("\u200b", ""),
        ("", ""),
    ],
)
def test_fold_makes_spellings_alike(written, folded):
    assert fold(written) == folded


@given(MIXED_TEXT)
@example("戱曲")
@example("苧麻")
@example("e\u200d\u0301")
@example("\u1100\u200b\u1161")
def test_folding_twice_is_folding_once(text):
    assert fold(fold(text)) == fold(text)


def test_one_character_folds_alike_in_every_company():
    alone, before, after = fold("后"), fold("皇后"), fold("后天")

    assert (before[-1], after[0]) == (alone, alone)
    assert fold("乾隆乾淨") == fold("乾") + fold("隆") + fold("乾") + fold("淨")


# --- words -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("gen-itgc", ["gen", "itgc"]),
        ("file_name", ["file", "name"]),
        ("opt/icu4c@78/lib", ["opt", "icu4c", "78", "lib"]),
        ("ming@example.org", ["ming", "exampl", "example", "org"]),
        ("v2.3.1", ["v2", "3", "1"]),
        ("Grammar::FA", ["grammar", "fa"]),
        ("payment.retryCount", ["payment", "retri", "count"]),
        ("C:\\Users\\ming", ["c", "ming"]),
    ],
)
def test_an_identifier_is_kept_whole_and_in_parts(identifier, parts):
    terms = document_terms(identifier)

    assert {identifier.casefold(), *parts} <= set(terms)


def test_an_identifier_glued_to_chinese_is_found():
    terms = document_terms("步骤2 重跑gen-itgc后50条悬空引用清零")

    assert {"gen-itgc", "gen", "itgc", "2", "50", "50条", "重跑", "悬空", "清零"} <= set(terms)


def test_camel_case_is_taken_apart():
    assert {"filename", "file", "name"} <= set(document_terms("fileName"))


@pytest.mark.parametrize(
    ("form", "other"),
    [
        ("deploys", "deployed"),
        ("went", "go"),
        ("children", "child"),
        ("bought", "buy"),
        ("mice", "mouse"),
        ("left", "leave"),
        ("invoices", "invoice"),
        ("3rd", "3"),
        ("21st", "21"),
        ("Ming's", "Ming"),
        ("Ming’s", "Ming"),
        ("résumé", "re\u0301sume\u0301"),
        ("ＡＰＩ", "api"),
        ("支付模組", "支付"),
        ("週五", "周五"),
        ("周五", "週五"),
        ("体", "體"),
    ],
)
def test_a_query_in_another_form_meets_the_memory(form, other):
    assert set(query_terms(other)) & set(document_terms(form))
    assert set(query_terms(form)) & set(document_terms(other))


def test_words_that_begin_alike_share_a_weak_term():
    assert "compe~" in document_terms("competition")
    assert query_terms("compete")["compe~"] < query_terms("compete")["compet"]


def test_a_document_keeps_repeats_and_order():
    terms = document_terms("tea, then tea")

    assert terms == ["tea", "then", "tea"]


# --- Chinese ---------------------------------------------------------------------------


def test_chinese_gives_words_pairs_and_characters():
    terms = document_terms("讨论人工智能方案")

    assert "人工智能" in terms
    assert {"讨论", "论人", "人工", "工智", "智能", "能方", "方案"} <= set(terms)
    assert set("讨论人工智能方案") <= set(terms)


def test_a_pair_inside_a_word_counts_more_than_one_across_two():
    weights = query_terms("支付模块")

    assert weights["支付"] == weights["模块"] == 1.0
    assert weights["付模"] < 1.0
    assert weights["支"] < weights["支付"]


def test_traditional_and_simplified_give_the_same_terms():
    traditional, simplified = "支付模組週五上線，請聯繫運維", "支付模组周五上线，请联系运维"

    assert document_terms(traditional) == document_terms(simplified)
    assert query_terms(traditional) == query_terms(simplified)


@pytest.mark.parametrize("text", ["50条悬空引用", "５０条悬空引用", "50條懸空引用"])
def test_a_number_and_its_counter_are_one_term_and_two(text):
    assert {"50条", "50", "条"} <= set(document_terms(text))


def test_a_number_apart_from_its_counter_is_no_term_with_it():
    assert "50条" not in document_terms("50 条")


@pytest.mark.parametrize(("text", "pair"), [("결제 모듈", "결제"), ("決済モジュール", "モジ")])
def test_other_scripts_without_spaces_give_pairs(text, pair):
    assert pair in document_terms(text)
    assert pair in query_terms(text)


# --- queries ---------------------------------------------------------------------------


def test_stop_words_are_dropped_from_queries_only():
    assert "where" not in query_terms("where does Ming deploy")
    assert "where" in document_terms("where does Ming deploy")
    assert "的" not in query_terms("支付的")
    assert "的" in document_terms("支付的")


@pytest.mark.parametrize("query", ["are", "in the", "where is it", "我们"])
def test_a_query_of_stop_words_alone_keeps_them(query):
    assert query_terms(query)


@pytest.mark.parametrize(
    "query", ["", " ", "\n", "?!...", "。。。", "\u200b", "\x00", "%", "_", "\\"]
)
def test_signs_are_no_terms(query):
    assert (query_terms(query), literals(query), short_words(query)) == ({}, (), ())
    assert last_word(query) == ""


def test_a_long_query_is_read_at_both_ends():
    terms = query_terms(f"invoice {'tea ' * MAX_QUERY_CHARS}kumquat")

    assert {"invoic", "tea", "kumquat"} <= set(terms)


def test_the_middle_of_a_long_query_is_left_out():
    padding = "tea " * MAX_QUERY_CHARS

    assert "kumquat" not in query_terms(f"{padding}kumquat {padding}")


@given(MIXED_TEXT)
def test_a_query_asks_only_for_terms_that_its_text_has(text):
    weights = query_terms(text)

    assert set(weights) <= set(document_terms(text))
    assert all(0 < weight <= 1 for weight in weights.values())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("100%", ("100%",)),
        ("１００％", ("100%",)),
        ("file_name", ("file_name",)),
        ("C++", ("c++",)),
        ("C++, C#", ("c++", "c#")),
        ("“file_name”", ("file_name",)),
        ("(gen-itgc).", ("gen-itgc",)),
        ("-deploy", ()),
        ("name:deploy now", ()),
        ('"deploy"', ()),
        ("Ming's", ()),
        ("file_name rule", ()),
        ("支付？", ()),
        ("%", ()),
    ],
)
def test_literals_are_words_with_signs_inside_or_behind(query, expected):
    assert literals(query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("支", ("支",)),
        ("支付", ("支付",)),
        ("QA", ("qa",)),
        ("go 支付", ("go", "支付")),
        ('"支付"！', ("支付",)),
        ("🎉", ("🎉",)),
        ("tea", ()),
        ("支付模块", ()),
        ("ok deploy", ()),
        ("?", ()),
    ],
)
def test_short_words_are_all_of_one_or_two_letters(query, expected):
    assert short_words(query) == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("Ming dep", "dep"),
        ("Ming DEP", "dep"),
        ("gen-it", "it"),
        ("支付模", "付模"),
        ("付", "付"),
        ("週五", "周五"),
        ("Ming deploys ", ""),
        ("支付　", ""),
        ("deploys.", "deploys"),
        ("...", ""),
    ],
)
def test_last_word_is_the_one_being_typed(typed, expected):
    assert last_word(typed) == expected


# --- encoding --------------------------------------------------------------------------


@given(TERMS, TERMS, KEYS)
@example("qz", "q", "b1")
@example("支", "q0jzj", "b1")
def test_two_terms_never_encode_alike(one, other, key):
    assert (encode_term(one, key) == encode_term(other, key)) == (one == other)


@pytest.mark.parametrize("beginning", ["a" * 37, "a" * 36, "a" * 35, "a" * 34])
def test_a_long_term_is_no_other_term_that_spells_its_hash(beginning):
    long = beginning + "支付模块" * 10
    encoded = encode_term(long, "b1")

    # what a reader of the encoding makes of it, character by character
    read = re.sub(
        r"q(q|[0-9a-n][0-9a-z]{3})",
        lambda found: "q" if found[1] == "q" else chr(int(found[1], 36)),
        encoded.removeprefix("b1"),
    )

    assert encode_term(read, "b1") != encoded


@given(TERMS, TERMS, KEYS, KEYS)
@example("1a", "a", "b1", "c11")
def test_two_scopes_never_share_a_term(one, other, key, other_key):
    if key != other_key:
        assert encode_term(one, key) != encode_term(other, other_key)


@given(KEYS, KEYS)
@example(scope_key(1), scope_key(36))
@example(scope_key(1), scope_key(46))
def test_no_scopes_key_begins_anothers(key, other_key):
    assert key == other_key or not other_key.startswith(key)


def test_the_first_scopes_keys_are_distinct_and_none_begins_another():
    keys = sorted(scope_key(number) for number in range(1, 50_000))

    assert not any(after.startswith(key) for key, after in pairwise(keys))


@given(MIXED_TEXT, KEYS)
def test_every_term_of_any_text_encodes_to_a_plain_word(text, key):
    for term in {*document_terms(text), *query_terms(text)}:
        assert re.fullmatch(rf"[a-z0-9]{{3,{MAX_TERM_CHARS}}}", encode_term(term, key))


@pytest.mark.parametrize("term", ["a" * 300, "支付" * 300, "q" * 300, "🎉" * 70, "gen-itgc/" * 50])
def test_a_long_term_keeps_its_beginning_within_the_limit(term):
    encoded = encode_term(term, "b1")

    assert len(encoded) <= MAX_TERM_CHARS
    assert encoded.startswith(encode_term(term[:3], "b1"))
    assert encoded != encode_term(f"{term}a", "b1")


@given(TERMS, KEYS, st.data())
def test_encoding_keeps_prefixes(term, key, data):
    length = data.draw(st.integers(1, len(term)))

    whole, beginning = encode_term(term, key), encode_term(term[:length], key)

    if "qz" not in whole.replace("qq", ""):  # not hashed
        assert whole.startswith(beginning)


# --- anything --------------------------------------------------------------------------


@given(MIXED_TEXT)
@example("\ud800")
@example("\udfff支付\ud800")
@example("\u0378\ue000\U0010ffff")
@example("\ufdfa")
@example("İ")
def test_no_text_is_too_odd(text):
    key = scope_key(7)

    assert isinstance(fold(text), str)
    assert "\n" not in fold(text)
    assert all(encode_term(term, key).isascii() for term in document_terms(text))
    assert all(encode_term(term, key).isascii() for term in query_terms(text))
    for words in (literals(text), short_words(text)):
        assert all(word in fold(text) for word in words)
    assert isinstance(last_word(text), str)


@given(MIXED_TEXT)
@example("İ")
def test_what_is_being_typed_begins_a_term_of_the_text(text):
    if typed := last_word(text):
        assert any(term.startswith(typed) for term in document_terms(text))


@pytest.mark.parametrize(
    "text",
    ["a-" * 30_000, "a" + "-" * 60_000, "支" * 20_000, "e" + "\u0301" * 30_000, "'" * 60_000],
)
def test_repetition_does_not_slow_the_analyzer_down(text):
    assert len(document_terms(text)) <= 3 * len(text)


@pytest.mark.parametrize("query", ["Müller", "muller", "MULLER"])
def test_accents_do_not_keep_a_name_apart(query):
    assert set(query_terms(query)) & set(document_terms("Frau Müller"))


def test_stop_words_alone_can_be_left_out():
    assert query_terms("ok thanks", keep_stop_words=False) == {}
    assert query_terms("ok thanks tea", keep_stop_words=False).keys() == {"tea"}
