import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.analyzer import fold
from memory.understanding.phrases import MAX_PHRASES, loosened, phrases


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('when is "the release"', ("the release",)),
        ("“上线前 两小时” 冻结", ("上线前 两小时",)),
        ("「上線」和『冻结』", ("上线", "冻结")),
        ("｢ｶﾅ｣", ("カナ",)),
        ('他说"上线"了', ("上线",)),
        ("＂ＡＢＣ＂", ("abc",)),
        ("find 'file name' here", ("file name",)),
        ("find ‘file name’ here", ("file name",)),
        ('"Deploy  Bot" "deploy bot"', ("deploy bot",)),
        ('"file_name"', ("file_name",)),
        ('"100%"', ("100%",)),
    ],
)
def test_what_is_in_quotes_is_a_phrase(text, found):
    assert phrases(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "", '"', 'say "hi', '"opt', '""', '" "', '"?!"', "“上线", "上线」", "don't and won't",
        "'tis the season 'round here", "rock 'n' roll", "the students' and teachers' rooms",
        "it’s Ming’s", '5" and 6" nails', "a\"b\"c", "'", "''",
    ],
)  # fmt: skip
def test_other_quotes_are_plain_text(text):
    assert phrases(text) == ()


def test_a_quote_that_is_not_closed_leaves_the_others():
    assert phrases('"deploy bot" and "the rest') == ("deploy bot",)


def test_quotes_in_prose_name_things_and_demand_nothing():
    prose = (
        "Last time we spoke of the plan that I call " + '"pay yourself first", ' + "do you " * 20
    )

    assert phrases(prose) == ()
    assert phrases('"pay yourself first" plan') == ("pay yourself first",)


def test_there_are_only_so_many_phrases():
    assert len(phrases(" ".join(f'"{number}"' for number in range(30)))) == MAX_PHRASES


@given(st.text("ab 支付.-", min_size=1, max_size=30), st.sampled_from(['""', "“”", "「」", "『』"]))
def test_a_quoted_word_is_found_as_the_index_has_it(text, marks):
    quoted = f"x {marks[0]}{text.strip()}{marks[1]} y"

    is_word = any(map(str.isalnum, text))
    assert phrases(quoted) == ((fold(text),) if is_word else ())


@given(st.text() | st.text("\"'“”‘’「」『』 ab支"))
def test_phrases_are_folded_words_of_the_text(text):
    for phrase in phrases(text):
        assert phrase == fold(phrase)
        assert phrase in fold(text)
        assert any(map(str.isalnum, phrase))


@given(st.text() | st.text("\"'“”‘’「」『』 ab支?"))
def test_a_loosened_question_demands_nothing(text):
    assert phrases(loosened(f"{text}?")) == ()
    assert loosened(f"{text}.") == ""
