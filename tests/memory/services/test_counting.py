"""What is done is counted by day, exactly, in the user's rows and in the agent's."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import OperationalError, connections

from agents.auth import issue_key
from memory.databases import store_alias
from memory.drafts import parse_draft
from memory.errors import UnknownMemory
from memory.models import FIGURES, AgentDay, Scope, ScopeDay, Store
from memory.retrieval.lexical import SearchRequest
from memory.services import bulk, erasure, jobs, memories, receipts
from memory.services.bulk import Bulk
from memory.services.context import prefetch
from memory.services.figures import counting, pruning, recall_counts, sums
from memory.services.library import Shelf
from memory.services.naming import save_named
from memory.services.recall import recall
from memory.services.transfers import transfer
from tests.conftest import MING, NOW
from tests.memory.threads import at_once

TODAY = NOW.date()


def of_agent(agent):
    """The agent's figures by day; those that are 0 are left out."""
    return added(AgentDay.objects.using(store_alias(agent)).filter(agent_id=agent.pk))


def of_user(agent, user_id="ming"):
    rows = ScopeDay.objects.using(store_alias(agent))
    return added(rows.filter(scope__agent_id=agent.pk, scope__user_id=user_id))


def added(rows):
    days = {}
    for row in rows:
        counted = Counter({name: getattr(row, name) for name in FIGURES})
        days[row.day] = days.get(row.day, Counter()) + counted
    return {day: dict(counted) for day, counted in days.items()}


def both(agent):
    """What is the same for the only user and for the agent."""
    assert of_user(agent) == of_agent(agent)
    return of_user(agent)


def ask(agent, query, user_id="ming"):
    return recall(agent, user_id, SearchRequest(query), now=NOW)


# --- what counts as what ---------------------------------------------------------------


def test_saves_are_counted_by_type_on_the_day_they_were_made(agent, remember):
    remember(agent, "ming", "Ming deploys on Fridays", type="project")
    remember(agent, "ming", "Ming likes tea")
    remember(agent, "ming", "and coffee", now=NOW + timedelta(days=1))

    assert both(agent) == {
        TODAY: {"saved_project": 1, "saved_user": 1},
        TODAY + timedelta(days=1): {"saved_user": 1},
    }


def test_changes_deletions_and_restorings_are_told_apart(agent, remember):
    memory = remember(agent, "ming", "Ming deploys on Fridays")
    other = remember(agent, "ming", "Ming likes tea")
    for changes in ({"importance": 0.9}, {"importance": 0.9}, {"content": "on Mondays"}):
        memories.update(agent, "ming", memory.pk, changes, actor=MING, now=NOW)
    memories.trash(agent, "ming", memory.pk, actor=MING, now=NOW)
    memories.restore(agent, "ming", memory.pk, actor=MING, now=NOW)
    memories.restore(agent, "ming", memory.pk, actor=MING, now=NOW)
    memories.trash(agent, "ming", other.pk, actor=MING, now=NOW)

    counted = both(agent)[TODAY]

    assert counted == {"saved_user": 2, "changed": 2, "deleted": 2, "restored": 1}
    assert sums.growth(Counter(counted)) == Scope.objects.for_agent(agent).get().memory_count


def test_erasing_counts_what_was_not_in_the_trash_yet(agent, remember, monkeypatch):
    monkeypatch.setattr(memories.timezone, "now", lambda: NOW)
    kept = remember(agent, "ming", "Ming deploys on Fridays")
    trashed = remember(agent, "ming", "Ming likes tea")
    memories.trash(agent, "ming", trashed.pk, actor=MING, now=NOW)
    for memory in (kept, trashed):
        memories.purge(agent, "ming", memory.pk)

    assert both(agent) == {TODAY: {"saved_user": 2, "deleted": 2}}


def test_naming_and_importing_count_as_saves_and_changes(agent):
    for content in ("on Fridays", "on Fridays", "on Mondays"):
        values = {"name": "deploys", "content": content, "type": "project"}
        save_named(agent, "ming", values, actor=MING, now=NOW)
    line = b'{"content": "Ming likes tea", "type": "user", "id": "x1"}'
    for lines in ([line], [line]):
        transfer.import_lines(agent, lines, user_id="ming", now=NOW)

    assert both(agent) == {TODAY: {"saved_project": 1, "changed": 1, "saved_user": 1}}


def test_a_bulk_change_and_its_undoing_are_counted(agent, remember):
    ids = [remember(agent, "ming", f"note {number}").pk for number in range(5)]
    shelf = Shelf(agent, "ming", Scope.objects.for_agent(agent).get())
    change = Bulk("delete", "", "ming", NOW)
    bulk.change({shelf: ids}, change)
    bulk.undo([shelf], change, now=NOW + timedelta(seconds=1))

    assert both(agent) == {TODAY: {"saved_user": 5, "deleted": 5, "restored": 5}}


def test_a_write_that_fails_counts_nothing(agent, remember):
    remember(agent, "ming", "Ming likes tea")
    before = both(agent)

    with pytest.raises(UnknownMemory):
        memories.trash(agent, "ming", 7, actor=MING, now=NOW)

    assert both(agent) == before


def test_a_day_is_one_of_the_servers_time_zone(agent, remember, settings):
    settings.TIME_ZONE = "Asia/Shanghai"
    late = NOW.replace(hour=17)  # 01:00 of the next day there

    remember(agent, "ming", "Ming likes tea", now=late)

    assert list(both(agent)) == [TODAY + timedelta(days=1)]


# --- recalls ---------------------------------------------------------------------------


def test_recalls_and_prefetches_are_counted_with_what_they_found(agent, remember):
    remember(agent, "ming", "Ming deploys on Fridays")
    ask(agent, "deploys")
    ask(agent, "kumquat")
    prefetch(agent, "ming", "When does Ming deploy?", now=NOW)

    recall_counts.flush()

    counted = both(agent)[TODAY]
    took = {name: counted.pop(name) for name in list(counted) if name.startswith("took_")}
    assert counted == {"saved_user": 1, "recalls": 3, "answered": 2}
    assert list(took.values()) == [1]


def test_a_recall_for_a_user_without_memories_is_the_agents_only(agent):
    ask(agent, "deploys", user_id="nobody")

    recall_counts.flush()

    assert of_agent(agent) == {TODAY: {"recalls": 1}}
    assert not ScopeDay.objects.using(store_alias(agent)).exists()


def test_recalls_are_written_within_a_second_without_anybody_asking(agent, remember, monkeypatch):
    monkeypatch.setattr(recall_counts, "WAIT_SECONDS", 0.05)
    threads = []
    start = recall_counts.threading.Timer.start
    monkeypatch.setattr(
        recall_counts.threading.Timer, "start", lambda self: (threads.append(self), start(self))
    )
    remember(agent, "ming", "Ming deploys on Fridays")

    for _ in range(20):
        ask(agent, "deploys")
    for thread in threads:
        thread.join()

    assert both(agent)[TODAY]["recalls"] == 20


def test_recalls_of_a_store_that_takes_no_writes_are_not_counted(agent, remember):
    remember(agent, "ming", "Ming deploys on Fridays")
    Store.objects.using(store_alias(agent)).update(state="frozen")
    ask(agent, "deploys")

    recall_counts.flush()

    assert "recalls" not in both(agent)[TODAY]


def test_a_store_that_fails_loses_counts_and_nothing_else(agent, remember, monkeypatch, caplog):
    remember(agent, "ming", "Ming deploys on Fridays")
    monkeypatch.setattr(recall_counts.time, "sleep", lambda _: None)

    def fail(*args):
        raise OperationalError("disk I/O error")

    monkeypatch.setattr(recall_counts.counting, "add_to_agent", fail)
    assert ask(agent, "deploys").hits
    recall_counts.flush()

    assert "1 recalls were not counted" in caplog.text


# --- at once ---------------------------------------------------------------------------


def test_threads_that_save_and_recall_are_counted_exactly(agent, remember):
    remember(agent, "u0", "Ming deploys on Fridays")

    def work(number):
        user_id = f"u{number % 3}"
        for turn in range(5):
            draft = parse_draft({"type": "project", "content": f"note {number} {turn} tea"})
            memories.save(agent, user_id, draft, now=NOW)
            ask(agent, "tea", user_id)
            ask(agent, "kumquat", user_id)
            if turn % 2:
                recall_counts.flush()

    at_once([lambda number=number: work(number) for number in range(6)])
    recall_counts.flush()

    counted = {"saved_user": 1, "saved_project": 30, "recalls": 60, "answered": 30}
    assert of_agent(agent) == {TODAY: counted}
    by_user = sum((Counter(of_user(agent, f"u{n}")[TODAY]) for n in range(3)), Counter())
    assert dict(by_user) == counted


def test_the_first_of_a_day_by_many_at_once_makes_one_row(agent, remember):
    for number in range(8):
        remember(agent, f"u{number}", "Ming likes tea", now=NOW - timedelta(days=1))
    draft = parse_draft({"type": "project", "content": "note"})

    at_once([lambda n=n: memories.save(agent, f"u{n}", draft, now=NOW) for n in range(8)])

    assert of_agent(agent)[TODAY] == {"saved_project": 8}
    rows = AgentDay.objects.using(store_alias(agent)).filter(agent_id=agent.pk, day=TODAY)
    most = counting.SHARDS if connections[store_alias(agent)].vendor == "mysql" else 1
    assert rows.count() <= most


# --- what goes with whom ---------------------------------------------------------------


def test_an_erased_user_leaves_no_day_and_the_agents_sums_stay(agent, remember, ming_account):
    for user_id in ("ming", "bob"):
        remember(agent, user_id, "Ming likes tea")
    scope = Scope.objects.of_user(agent, "ming").get()
    job = receipts.request_erasure(ming_account.pk, [Shelf(agent, "ming", scope)], now=NOW)

    receipts.erase_user(jobs.claim(job.pk, now=NOW), now=NOW)

    assert of_user(agent, "ming") == {}
    assert of_agent(agent) == {TODAY: {"saved_user": 2, "deleted": 1}}
    assert of_user(agent, "bob") == {TODAY: {"saved_user": 1}}


@pytest.fixture
def ming_account(django_user_model):
    return django_user_model.objects.create_user("ming")


def test_an_erased_agent_leaves_nothing(agent, remember):
    alias = store_alias(agent)
    remember(agent, "ming", "Ming likes tea")
    issue_key(agent)

    agent.delete()

    assert not AgentDay.objects.using(alias).exists()
    assert not ScopeDay.objects.using(alias).exists()


def test_an_erased_scope_takes_its_days_along(agent, remember):
    remember(agent, "ming", "Ming likes tea")

    erasure.erase_scope(Scope.objects.for_agent(agent).get())

    assert of_user(agent) == {}


# --- old days --------------------------------------------------------------------------


def test_past_days_become_one_row_and_old_ones_one_sum(agent, remember):
    alias = store_alias(agent)
    today = NOW + timedelta(days=pruning.DAYS + 5)
    lately = today - timedelta(days=3)
    for number in range(12):
        for moment in (NOW, NOW + timedelta(days=1), lately, today):
            remember(agent, f"u{number}", "Ming likes tea", now=moment)

    for _ in range(2):
        list(pruning.condense(agent, now=today))

    assert of_agent(agent) == {
        pruning.BEFORE: {"saved_user": 24},
        lately.date(): {"saved_user": 12},
        today.date(): {"saved_user": 12},
    }
    rows = AgentDay.objects.using(alias).filter(agent_id=agent.pk)
    assert rows.filter(day__lt=today.date()).count() == 2
    of_one = {lately.date(): {"saved_user": 1}, today.date(): {"saved_user": 1}}
    assert of_user(agent, "u1") == of_one
    assert sums.counts_by_agent([agent])[agent.pk]["saved_user"] == 48
    since_today = sums.counts_by_agent([agent], first=today.date())
    assert since_today[agent.pk]["saved_user"] == 12
