"""Parts are asked at once and for a bounded time."""

import threading
import time

import pytest

from memory.services.health import probing


@pytest.fixture
def hanging():
    """A question that gives no answer before the test ends."""
    released, asked = threading.Event(), []

    def ask():
        asked.append(threading.get_ident())
        released.wait(10)
        return "late"

    yield ask, asked
    released.set()


def test_every_part_answers_for_itself():
    answers = probing.ask_all({"one": lambda: 1, "two": lambda: 2}, seconds=2)

    assert answers == {"one": 1, "two": 2}


def test_a_part_that_hangs_holds_nobody_up_and_keeps_one_thread(hanging):
    ask, asked = hanging
    began = time.monotonic()

    first = probing.ask_all({"hanging": ask, "other": lambda: 1}, seconds=1.5)
    took = time.monotonic() - began
    second = probing.ask_all({"hanging": ask, "other": lambda: 1}, seconds=1.5)

    assert first == second == {"hanging": None, "other": 1}
    assert took < 5
    assert time.monotonic() - began - took < 1.2  # it has had its time
    assert len(asked) == 1


def test_two_that_ask_at_once_share_an_answer(hanging):
    ask, asked = hanging
    threads = [
        threading.Thread(target=probing.ask_all, args=[{"shared": ask}], kwargs={"seconds": 0.2})
        for _ in range(2)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(asked) == 1


def test_a_question_that_fails_is_told_in_the_log_and_is_no_answer(caplog):
    def fail():
        raise ValueError("a fault of ours")

    assert probing.ask_all({"faulty": fail}, seconds=2) == {"faulty": None}
    assert "the probe of faulty fails" in caplog.text
    assert "a fault of ours" in caplog.text
