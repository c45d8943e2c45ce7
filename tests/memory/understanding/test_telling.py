import random
import time
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import analyzer
from memory.understanding import telling


def log_of(chars):
    rows = random.Random(7)
    line = "2026-11-30 09:{:02}:{:02},{} INFO worker-{} request {:016x} took {} ms\n"
    lines = (
        line.format(n // 60 % 60, n % 60, n % 1000, n % 7, rows.getrandbits(64), n % 900)
        for n in range(chars // 60)
    )
    return "".join(lines)


def noise_of(chars):
    return b64encode(random.Random(7).randbytes(chars * 3 // 4)).decode()


def trace_of(chars):
    frame = '  File "/srv/app/invoices.py", line {}, in save\n    return self.write(row)\n'
    return "".join(frame.format(n) for n in range(chars // 75))


FILLERS = {"log": log_of, "base64": noise_of, "trace": trace_of}
CHINESE = "支付模块周五上线，上线前两小时冻结代码。" * 5


@given(st.text(max_size=300) | st.text("支付模块上线 abc def_g 12", max_size=300))
def test_an_ordinary_question_keeps_all_its_terms(text):
    terms = analyzer.query_terms(text)

    assert len(terms) > telling.MAX_TERMS or telling.query_terms(text) == terms


@pytest.mark.parametrize("filler", FILLERS.values(), ids=FILLERS)
def test_a_question_beside_a_long_paste_is_kept(filler):
    paste = filler(100_000)
    asked = {"deadlock", "invoic"}

    before = telling.query_terms(f"Why does Ming see a deadlock in invoices?\n{paste}")
    behind = telling.query_terms(f"{paste}\nWhy does Ming see a deadlock in invoices?")
    assert asked <= before.keys()
    assert asked <= behind.keys()
    assert max(len(before), len(behind)) <= telling.MAX_TERMS


def test_the_one_other_line_of_a_long_log_is_kept():
    log = log_of(200_000)
    fault = "OperationalError: deadlock found while Ming saved an invoice"
    lines = log.splitlines()
    lines.insert(len(lines) // 2, fault)

    terms = telling.query_terms("\n".join(lines))

    assert {"deadlock", "invoic", "operationalerror", "ming"} <= terms.keys()


def test_of_a_page_in_two_languages_both_are_kept():
    page = "\n".join(
        [
            "支付模块为什么失败？",
            *(f"Section {n}: the cluster of the {n}th region was drained." for n in range(200)),
            "请看 Kubernetes 的日志。",
        ]
    )

    terms = telling.query_terms(page)

    assert {"支付", "模块", "失败", "日志", "kubernet", "cluster"} <= terms.keys()


def test_ids_and_timestamps_count_where_there_is_nothing_else():
    sha, noise = "9f86d081884c7d65", noise_of(5_000)

    assert sha in telling.query_terms(sha)
    assert telling.query_terms(f"{noise} " * 2)
    mixed = telling.query_terms(f"deploy failed\n{noise}\n2026-11-30 09:00:00 {sha} " * 3)
    assert {"deploy", "fail"} == {term for term in mixed if not term.endswith("~")}


def test_a_longer_chinese_message_is_not_cut_at_its_beginning():
    message = f"{CHINESE}{'今天天气不错我们去公园散步吃饭看电影听音乐买衣服' * 4}最后想问茉莉花茶"

    assert "茉莉" in telling.query_terms(message)


@pytest.mark.parametrize(
    "text",
    [
        log_of(1_000_000), noise_of(1_000_000), trace_of(1_000_000), CHINESE * 10_000,
        "a" * 1_000_000, " " * 1_000_000, "\n" * 1_000_000, "a b " * 250_000, "支付" * 500_000,
        "0x" * 500_000, "deadbeef-" * 100_000, '"' * 1_000_000,
    ],
    ids=lambda text: repr(text[:10]),
)  # fmt: skip
def test_a_million_characters_take_a_moment(text):
    telling.query_terms(text)
    took = []
    for _ in range(5):
        started = time.perf_counter()
        terms = telling.query_terms(text)
        took.append(time.perf_counter() - started)

    assert len(terms) <= telling.MAX_TERMS
    assert min(took) < 0.2  # 20 ms on a machine that does nothing else


def test_the_choice_is_the_same_each_time():
    text = f"{log_of(50_000)}{CHINESE}{trace_of(50_000)}"

    assert list(telling.query_terms(text)) == list(telling.query_terms(text))
