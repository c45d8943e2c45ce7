"""On which days a memory was recalled: counted in the row itself, on both engines alike."""

from datetime import date, timedelta

from memory import recall_log
from memory.models import Memory
from memory.services import memories
from memory.services.transfers.transfer import export_lines, import_lines
from tests.conftest import NOW, make_agent


def log_of(agent, memory):
    return Memory.objects.in_scope(agent, "ming").get(pk=memory.pk).recall_log


def test_recalls_are_counted_by_day_and_the_oldest_days_go(agent, remember):
    memory = remember(agent, "ming", "kumquat")
    days = [NOW + timedelta(days=day) for day in range(recall_log.MAX_DAYS + 2)]

    for number, day in enumerate(days):
        for _ in range(1 + number % 2):
            memories.touch(agent, "ming", [memory.pk], now=day)

    kept = recall_log.days_of(log_of(agent, memory))
    assert kept == {day.date(): 1 + number % 2 for number, day in enumerate(days) if number > 1}
    assert list(kept) == sorted(kept, reverse=True)
    assert recall_log.days_of(recall_log.log_of(kept)) == kept


def test_a_days_count_ends_where_its_four_digits_do(agent, remember):
    memory = remember(agent, "ming", "kumquat")
    full = recall_log.log_of({NOW.date(): 123_456})
    Memory.objects.in_scope(agent, "ming").update(recall_log=full)

    memories.touch(agent, "ming", [memory.pk], now=NOW)

    assert recall_log.days_of(log_of(agent, memory)) == {NOW.date(): 9_999}


def test_recalls_come_along_with_an_export(agent, remember):
    memory = remember(agent, "ming", "kumquat")
    memories.touch(agent, "ming", [memory.pk], now=NOW)
    lines = [line if isinstance(line, bytes) else line.encode() for line in export_lines(agent)]
    other = make_agent("barbara", agent.memory_config.backend)

    import_lines(other, lines, now=NOW)

    copy = Memory.objects.in_scope(other, "ming").get()
    assert recall_log.days_of(copy.recall_log) == {date(2026, 11, 30): 1}
