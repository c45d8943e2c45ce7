"""Times in Chinese, folded to simplified: patterns, and what each means seen from today."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from memory.understanding import days
from memory.understanding.days import Days
from memory.understanding.english import Meaning, Rule

_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_NUMERALS = "一二三四五六七八九十"
_N = rf"(?P<n>\d{{1,3}}|[两{_NUMERALS}]{{1,3}})"
_UNIT = r"(?P<unit>天|日|个?周|个?星期|个?礼拜|个月|年)"
_UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month",
          "年": "year"}  # fmt: skip
_NEAR = {"大前天": -3, "前天": -2, "昨": -1, "今": 0, "明": 1, "后天": 2, "大后天": 3}
_SHIFTS = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_SHIFT = r"(?P<which>上上|上|这|本|下下|下)一?"
_WEEKDAY = "[一二三四五六日天]"
_YEARS = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}
_YEAR = (
    r"(?P<year>(?:19|20)\d\d年|[一二][零〇一二三四五六七八九]{3}年"
    rf"|{'|'.join(sorted(_YEARS, key=len, reverse=True))})的?"
)
_MONTH_YEAR = _YEAR.replace("(?P<year>", r"(?P<year>\d\d年|")
_MONTH = r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])月份?"
_DAY = rf"(?P<day>[12]\d|3[01]|0?[1-9]|[{_NUMERALS}]{{1,3}})(?:日|号(?!码|线|楼|机|店|位))"
# the moon and what is paid each month; 一月一次 is how often
_NO_MONTH = r"(?![亮饼薪租嫂子球光费卡经息]|[一两三几]次|怀胎|\d{1,2}[日号])"
_FREE = rf"(?<![A-Za-z0-9_./第个{_NUMERALS}-])"
_SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_QUARTER = r"第?(?P<q>[一二三四1-4])季度"


def number(text: str) -> int:
    """Return a number up to 99 in digits or Chinese numerals; 0 for what is none."""
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if len(tens) > 1 or len(ones) > 1:
        return 0
    return (_DIGITS.get(tens, 1) * 10 if ten else 0) + _DIGITS.get(ones, 0)


def _near_day(match: re.Match[str], today: date) -> list[Days]:
    words = match.group()
    shift = _NEAR[words] if words in _NEAR else _NEAR[words[0]]
    return [days.day(today + timedelta(days=shift))]


def _lately(match: re.Match[str], today: date) -> list[Days]:
    first, end = {"前几天": (7, 0), "前些天": (14, 0), "前两天": (3, 0), "这几天": (3, -1),
                  "这两天": (2, -1)}.get(match.group(), (60, 5))  # fmt: skip
    return [Days(today - timedelta(days=first), today - timedelta(days=end))]


def _unit(match: re.Match[str]) -> str:
    return _UNITS[match["unit"].removeprefix("个")]


def _ago(match: re.Match[str], today: date) -> list[Days]:
    return [days.ago(today, number(match["n"]), _unit(match))]


def _half_ago(match: re.Match[str], today: date) -> list[Days]:
    length = 183 if match["unit"] == "年" else 15
    return [days.day(today - timedelta(days=length + length // 4), length // 2)]


def _few_ago(match: re.Match[str], today: date) -> list[Days]:
    unit = _unit(match)
    return [Days(days.back(today, 6, unit), days.back(today, 1, unit))]


def _rolling(match: re.Match[str], today: date) -> list[Days]:
    count, unit = number(match["n"]), _unit(match)
    if match["which"] in {"未来", "接下来"}:
        return [Days(today, days.back(today, -count, unit) + timedelta(days=1))]
    if match["which"] == "前" and count < 2:  # the day before what was spoken of
        return []
    return [Days(days.back(today, count, unit), today + timedelta(days=1))]


def _week(match: re.Match[str], today: date) -> list[Days]:
    shift, name = _SHIFTS[match["which"]], match["day"]
    if name == "末":
        return [days.weekend(today, shift)]
    return [days.weekday(today, _weekday_number(name), shift) if name else days.week(today, shift)]


def _weekday_number(name: str) -> int:
    return "一二三四五六日".index(name.replace("天", "日"))


def _weekday(match: re.Match[str], today: date) -> list[Days]:
    return [days.latest_weekday(today, _weekday_number(match["day"]))]


def _weekend(match: re.Match[str], today: date) -> list[Days]:
    return [days.day(days.latest_weekday(today, 5).first, 2)]


def _near_month(match: re.Match[str], today: date) -> list[Days]:
    month = days.month(today.year, today.month + _SHIFTS[match["which"]])
    if not match["day"]:
        return [month]
    return [days.day(month.first.replace(day=number(match["day"])))]


def _date(match: re.Match[str], today: date) -> list[Days]:
    month, day = number(match["month"]), number(match["day"])
    return _in_year(match, lambda year: days.day(date(year, month, day)), today)


def _month(match: re.Match[str], today: date) -> list[Days]:
    return _in_year(match, lambda year: days.month(year, number(match["month"])), today)


def _season(match: re.Match[str], today: date) -> list[Days]:
    return _in_year(match, lambda year: days.season(year, _SEASONS[match["season"]]), today)


def _quarter(match: re.Match[str], today: date) -> list[Days]:
    return _in_year(match, lambda year: days.quarter(year, number(match["q"])), today)


def _near_quarter(match: re.Match[str], today: date) -> list[Days]:
    shift = _SHIFTS[match["which"]]
    return [days.quarter(today.year, (today.month + 2) // 3 + shift)]


def _year(match: re.Match[str], today: date) -> list[Days]:
    return _in_year(match, days.whole_year, today)


def _in_year(match: re.Match[str], make: Callable[[int], Days], today: date) -> list[Days]:
    words = match["year"]
    if not words:
        return days.in_some_year(make, today)
    if words in _YEARS:
        return [make(today.year + _YEARS[words])]
    signs = (sign if sign.isdecimal() else str(_DIGITS[sign]) for sign in words[:-1])
    year = int("".join(signs))
    return [make(year if year > 99 else 2000 + year)]


def _rule(pattern: str, meaning: Meaning) -> Rule:
    return re.compile(pattern), meaning


RULES: tuple[Rule, ...] = (
    _rule(
        r"大前天|大后天|前天|后天(?!性|形成)|昨[天日晚夜]|今[天日早晚晨夜]|明[天日早晚]",
        _near_day,
    ),
    _rule(r"前几天|前些天|前两天|这几天|这两天|前阵子|前段时间|前一阵子", _lately),
    _rule(rf"{_FREE}{_N}{_UNIT}[以之]?前", _ago),
    _rule(r"半(?P<unit>年|个月)[以之]?前", _half_ago),
    _rule(rf"几{_UNIT}[以之]?前", _few_ago),
    _rule(rf"(?P<which>过去|最近|近|前|这|未来|接下来)的?{_N}{_UNIT}(?!前|之前|以前)", _rolling),
    _rule(
        rf"{_SHIFT}个?(?:周|星期|礼拜)(?P<day>{_WEEKDAY}|末)?(?![围期边密岁折转全])",
        _week,
    ),
    _rule(rf"(?<![每个到至])(?:周|星期|礼拜)(?P<day>{_WEEKDAY})(?![到至])", _weekday),
    _rule(r"(?<!每)(?<!每个)周末", _weekend),
    _rule(rf"{_SHIFT}个?月(?!饼|亮|球)(?:{_DAY})?", _near_month),
    _rule(rf"{_FREE}(?:{_MONTH_YEAR})?{_MONTH}{_DAY}", _date),
    _rule(rf"{_FREE}(?:{_MONTH_YEAR})?{_MONTH}{_NO_MONTH}", _month),
    _rule(rf"{_FREE}{_YEAR}(?P<season>[春夏秋冬])[天季日]?", _season),
    _rule(rf"{_FREE}(?:{_YEAR})?{_QUARTER}", _quarter),
    _rule(rf"{_SHIFT}个?季度", _near_quarter),
    _rule(rf"{_FREE}{_YEAR}(?![级代])", _year),
)
