"""Whole numbers from texts that anybody may send."""

import pytest

from memory.numbers import whole_number


@pytest.mark.parametrize(
    "text", ["", " 1", "+1", "-1", "1.0", "1_0", "１２", "٣", "²", "9" * 19, "9" * 5_000]
)
def test_what_is_no_number_of_ours_is_none(text):
    assert whole_number(text) is None


def test_a_number_is_read_whatever_it_begins_with_and_no_longer_than_is_allowed():
    assert (whole_number("0"), whole_number("007"), whole_number("9" * 18)) == (0, 7, 10**18 - 1)
    assert (whole_number("999", 3), whole_number("1000", 3)) == (999, None)
