"""Times in buckets: a quantile read from them is off by no more than is promised."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.latency import LAST, LONGEST_MS, bound_of, bucket_of, quantile


def counts_of(times):
    counts = [0] * (LAST + 1)
    for each in times:
        counts[bucket_of(each)] += 1
    return counts


@pytest.mark.parametrize(
    ("milliseconds", "bucket"),
    [(0, 0), (1, 0), (1.01, 1), (math.sqrt(2), 1), (1.42, 2), (2, 2), (1024, 20), (1025, 21)],
)
def test_a_bucket_holds_its_bound(milliseconds, bucket):
    assert bucket_of(milliseconds) == bucket


def test_every_bound_is_in_its_bucket():
    assert [bucket_of(bound_of(number)) for number in range(LAST)] == list(range(LAST))


@given(
    st.lists(st.floats(1.001, LONGEST_MS), min_size=1, max_size=60), st.sampled_from([0.5, 0.95])
)
def test_a_quantile_is_off_by_less_than_the_square_root_of_two(times, share):
    true = sorted(times)[math.ceil(share * len(times)) - 1]

    found = quantile(counts_of(times), share)

    assert true / math.sqrt(2) <= found * 1.000001
    assert found <= true * math.sqrt(2) * 1.000001


def test_below_and_past_what_is_told_apart():
    assert quantile([0] * (LAST + 1), 0.5) is None
    assert 0 < quantile(counts_of([0.1, 0.2, 0.3]), 0.5) <= 1
    assert quantile(counts_of([2, 5000, 6000]), 0.95) == LONGEST_MS
