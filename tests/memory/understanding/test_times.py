from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.understanding import days
from memory.understanding.times import Span, preference, spans

SHANGHAI, NEW_YORK = ZoneInfo("Asia/Shanghai"), ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)  # a Monday in both zones
DATES = st.dates(date(2000, 1, 1), date(2026, 11, 30))
NUMERALS = "零一二三四五六七八九十"
MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
]  # fmt: skip


def named(text, now=NOW, zone=SHANGHAI):
    """Return (words, first day, day after the last) of each time in a text."""
    return [
        (span.words, f"{span.start:%Y-%m-%d}", f"{span.end:%Y-%m-%d}")
        for span in spans(text, now=now, zone=zone)
    ]


def stretches(text, **given):
    return [each[1:] for each in named(text, **given)]


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("what did Ming say today?", "2026-11-30", "2026-12-01"),
        ("yesterday's meeting", "2026-11-29", "2026-11-30"),
        ("the day before yesterday", "2026-11-28", "2026-11-29"),
        ("remind me tomorrow", "2026-12-01", "2026-12-02"),
        ("last night", "2026-11-29", "2026-11-30"),
        ("last week", "2026-11-23", "2026-11-30"),
        ("this week", "2026-11-30", "2026-12-07"),
        ("next week", "2026-12-07", "2026-12-14"),
        ("last weekend", "2026-11-28", "2026-11-30"),
        ("this month", "2026-11-01", "2026-12-01"),
        ("last month", "2026-10-01", "2026-11-01"),
        ("last quarter", "2026-07-01", "2026-10-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("3 days ago", "2026-11-27", "2026-11-28"),
        ("three days ago", "2026-11-27", "2026-11-28"),
        ("a couple of days ago", "2026-11-28", "2026-11-29"),
        ("a few days ago", "2026-11-24", "2026-11-29"),
        ("a week ago", "2026-11-20", "2026-11-27"),
        ("two months ago", "2026-09-01", "2026-10-01"),
        ("a year ago", "2025-01-01", "2026-01-01"),
        ("in the last 3 days", "2026-11-27", "2026-12-01"),
        ("the past week", "2026-11-23", "2026-12-01"),
        ("in the next 2 weeks", "2026-11-30", "2026-12-15"),
        ("on Monday", "2026-11-30", "2026-12-01"),
        ("last Monday", "2026-11-23", "2026-11-24"),
        ("what we said last Friday", "2026-11-27", "2026-11-28"),
        ("next Tuesday", "2026-12-08", "2026-12-09"),
        ("on fri", "2026-11-27", "2026-11-28"),
        ("in March", "2026-03-01", "2026-04-01"),
        ("in may", "2026-05-01", "2026-06-01"),
        ("March 2025", "2025-03-01", "2025-04-01"),
        ("last March", "2026-03-01", "2026-04-01"),
        ("March 5", "2026-03-05", "2026-03-06"),
        ("march 5th", "2026-03-05", "2026-03-06"),
        ("5 March 2025", "2025-03-05", "2025-03-06"),
        ("March 5, 2025", "2025-03-05", "2025-03-06"),
        ("on the 5th of May", "2026-05-05", "2026-05-06"),
        ("Sept. 3rd", "2026-09-03", "2026-09-04"),
        ("last summer", "2026-06-01", "2026-09-01"),
        ("last winter", "2025-12-01", "2026-03-01"),
        ("summer of 2024", "2024-06-01", "2024-09-01"),
        ("in Q3", "2026-07-01", "2026-10-01"),
        ("Q2 2025", "2025-04-01", "2025-07-01"),
        ("first quarter of 2026", "2026-01-01", "2026-04-01"),
        ("in 2023", "2023-01-01", "2024-01-01"),
        ("2026-03-05", "2026-03-05", "2026-03-06"),
        ("2026-03-05T09:30:00Z", "2026-03-05", "2026-03-06"),
        ("2026/3/5", "2026-03-05", "2026-03-06"),
        ("2026.3.5", "2026-03-05", "2026-03-06"),
        ("2026-03", "2026-03-01", "2026-04-01"),
        ("since March", "2026-03-01", "2026-12-01"),
        ("since last week", "2026-11-23", "2026-12-01"),
        ("今天", "2026-11-30", "2026-12-01"),
        ("明昨天的会", "2026-11-29", "2026-11-30"),
        ("昨晚", "2026-11-29", "2026-11-30"),
        ("前天", "2026-11-28", "2026-11-29"),
        ("大前天", "2026-11-27", "2026-11-28"),
        ("明天提醒我", "2026-12-01", "2026-12-02"),
        ("上周", "2026-11-23", "2026-11-30"),
        ("上上周", "2026-11-16", "2026-11-23"),
        ("上周五上线", "2026-11-27", "2026-11-28"),
        ("上个星期天", "2026-11-29", "2026-11-30"),
        ("上週五", "2026-11-27", "2026-11-28"),
        ("下周二", "2026-12-08", "2026-12-09"),
        ("周五说了什么", "2026-11-27", "2026-11-28"),
        ("上周末", "2026-11-28", "2026-11-30"),
        ("上个月", "2026-10-01", "2026-11-01"),
        ("上個月", "2026-10-01", "2026-11-01"),
        ("这个月", "2026-11-01", "2026-12-01"),
        ("上个月5号", "2026-10-05", "2026-10-06"),
        ("去年", "2025-01-01", "2026-01-01"),
        ("前年", "2024-01-01", "2025-01-01"),
        ("三天前", "2026-11-27", "2026-11-28"),
        ("3天前", "2026-11-27", "2026-11-28"),
        ("３天前", "2026-11-27", "2026-11-28"),
        ("两周前", "2026-11-13", "2026-11-20"),
        ("三个月前", "2026-08-01", "2026-09-01"),
        ("三年之前", "2023-01-01", "2024-01-01"),
        ("最近三天", "2026-11-27", "2026-12-01"),
        ("过去两周", "2026-11-16", "2026-12-01"),
        ("前几天", "2026-11-23", "2026-11-30"),
        ("3月5日", "2026-03-05", "2026-03-06"),
        ("3月5號", "2026-03-05", "2026-03-06"),
        ("三月五号", "2026-03-05", "2026-03-06"),
        ("十一月三十日", "2026-11-30", "2026-12-01"),
        ("3月", "2026-03-01", "2026-04-01"),
        ("十一月", "2026-11-01", "2026-12-01"),
        ("今年三月", "2026-03-01", "2026-04-01"),
        ("去年10月1日", "2025-10-01", "2025-10-02"),
        ("2026年3月5号", "2026-03-05", "2026-03-06"),
        ("二〇二六年三月", "2026-03-01", "2026-04-01"),
        ("26年3月", "2026-03-01", "2026-04-01"),
        ("2024年", "2024-01-01", "2025-01-01"),
        ("去年夏天", "2025-06-01", "2025-09-01"),
        ("第三季度", "2026-07-01", "2026-10-01"),
        ("2025年第二季度", "2025-04-01", "2025-07-01"),
        ("上个季度", "2026-07-01", "2026-10-01"),
        ("2026-03-05上线", "2026-03-05", "2026-03-06"),
        ("3月以来", "2026-03-01", "2026-12-01"),
    ],
)
def test_a_time_is_understood(text, first, end):
    assert stretches(text) == [(first, end)]


@pytest.mark.parametrize(
    "text",
    [
        "", "may I ask", "this may break", "it may 5x the load", "version 5 may fail", "march on",
        "march 5 miles", "the second run", "a sun hat", "sat down on Sundays", "mon ami",
        "Ming deploys on Fridays", "a 3 day trip", "in 2000 rows", "Feb 30", "2026-13",
        "2026-02-30", "fileQ3-x", "v2026-03-05x", "build-2026-03-05-7", "10.2026.3.5",
        "/logs/2026-03-05.txt", "2026-03-05.log", "fall back", "spring boot", "next step",
        "last one", "March", "day 3", "before March", "until last week", "in 20261 pieces",
        "天天", "号码", "日", "日记", "聪明天真", "以上周期", "以后天天", "马上月底", "file3月x",
        "a_3月", "月亮", "5月亮", "三月薪水", "后天性", "每周五", "周一到周五", "上周围",
        "一月一次", "三月之前", "20年", "3个月", "第三月", "十年", "三天", "13月", "2月30日",
        "5号楼", "上海", "支付模块", "上线前两小时", "2026级",
    ],
)  # fmt: skip
def test_what_is_no_time_names_none(text):
    assert named(text) == []


def test_words_are_told_in_order_and_none_twice():
    found = named("Compare last week with 三天前 and 2026-03-05, March 5 2026")

    assert [words for words, _, _ in found] == [
        "last week", "三天前", "2026-03-05", "March 5 2026",
    ]  # fmt: skip


def test_a_coming_date_may_be_meant_as_well_as_the_last_one():
    assert stretches("12月25日") == [("2025-12-25", "2025-12-26"), ("2026-12-25", "2026-12-26")]
    assert stretches("in January") == [("2026-01-01", "2026-02-01"), ("2027-01-01", "2027-02-01")]
    assert stretches("in April") == [("2026-04-01", "2026-05-01")]


def test_a_leap_day_without_a_year_is_the_last_that_there_was():
    assert stretches("February 29") == [("2024-02-29", "2024-03-01")]


def test_days_are_those_of_the_zone():
    late = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)  # in Shanghai it is 1 December already

    assert stretches("today", now=late, zone=SHANGHAI) == [("2026-12-01", "2026-12-02")]
    [span] = spans("today", now=late, zone=NEW_YORK)
    assert (span.start, span.end) == (
        datetime(2026, 11, 30, 5, 0, tzinfo=UTC),
        datetime(2026, 12, 1, 5, 0, tzinfo=UTC),
    )


def test_a_day_on_which_clocks_change_has_its_own_length():
    [span] = spans("2026-11-01", now=NOW, zone=NEW_YORK)

    length = span.end.astimezone(UTC) - span.start.astimezone(UTC)
    assert length == timedelta(hours=25)


@given(DATES)
def test_every_way_to_write_a_date_names_its_day(day):
    numeral = f"{'' if day.day < 20 else NUMERALS[day.day // 10]}十" if day.day > 9 else ""
    numeral += NUMERALS[day.day % 10] if day.day % 10 else ""
    month = MONTHS[day.month - 1]
    ways = [
        f"{day:%Y-%m-%d}", f"{day.year}/{day.month}/{day.day}",
        f"{day.year}年{day.month}月{day.day}日", f"{day.year}年{day.month}月{numeral}号",
        f"{month} {day.day}, {day.year}", f"{day.day} {month[:3]} {day.year}",
        f"the {day.day}th of {month.upper()} {day.year}",
    ]  # fmt: skip
    for way in ways:
        text = f"what about {way} 呢"
        assert stretches(text) == [(f"{day}", f"{day + timedelta(days=1)}")], text


@given(st.integers(1, 999))
def test_so_many_days_ago_is_that_day(count):
    day = date(2026, 11, 30) - timedelta(days=count)

    for text in (f"{count} days ago", f"{count}天前", f"{count} 天之前".replace(" ", "")):
        assert stretches(text) == [(f"{day}", f"{day + timedelta(days=1)}")]


@given(DATES, st.integers(0, 6))
def test_the_latest_weekday_is_within_the_last_seven_days(today, number):
    found = days.latest_weekday(today, number)

    assert found.first.weekday() == number
    assert timedelta(0) <= today - found.first < timedelta(days=7)


@given(st.text() | st.text("月日号年前上周个天1234567890/-.三十 marchyQs", max_size=60))
def test_no_text_is_too_odd(text):
    for span in spans(text, now=NOW, zone=SHANGHAI):
        assert span.start < span.end
        assert preference([span], span.start) == 1.0


def test_of_a_long_text_both_ends_are_read():
    text = f"last week{' log' * 100_000} yesterday"

    assert [words for words, _, _ in named(text)] == ["last week", "yesterday"]


# --- preference ------------------------------------------------------------------------


def test_preference_has_soft_edges():
    [span] = spans("2026-03", now=NOW, zone=UTC)

    assert preference([span], datetime(2026, 3, 1, tzinfo=UTC)) == 1.0
    assert preference([span], datetime(2026, 3, 31, 23, 59, tzinfo=UTC)) == 1.0
    assert preference([span], span.end + timedelta(days=15.5)) == pytest.approx(0.5)
    assert preference([span], span.start - timedelta(days=31)) == pytest.approx(0.25)
    assert preference([], NOW) == 0.0


def test_of_several_times_the_nearest_counts():
    found = spans("yesterday or last year", now=NOW, zone=UTC)

    assert preference(found, datetime(2025, 6, 1, tzinfo=UTC)) == 1.0
    assert preference(found, datetime(2026, 11, 29, 12, tzinfo=UTC)) == 1.0


@given(st.datetimes(datetime(1900, 1, 1), datetime(2999, 1, 1)), st.integers(1, 100_000))
def test_preference_falls_with_distance_and_stays_within_bounds(moment, hours):
    span = Span("", datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC))
    moment = moment.replace(tzinfo=UTC)

    assert 0.0 <= preference([span], moment) <= 1.0
    later = span.end + timedelta(hours=hours)
    assert preference([span], later + timedelta(hours=1)) <= preference([span], later)
