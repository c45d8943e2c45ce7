"""What an account owns, over all agents and stores: listed, sought, counted."""

import random
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.test.utils import CaptureQueriesContext

from agents.models import Identity
from memory.databases import store_alias
from memory.errors import InvalidMemory, UnknownMemory
from memory.filters import MemoryFilter
from memory.models import Memory, Status
from memory.ordering import ORDERS
from memory.services import library, memories
from tests.conftest import MING, NOW, make_agent


@pytest.fixture
def ming(db):
    account = get_user_model().objects.create_user("ming")
    Identity.objects.create(account=account, user_id="ming")
    return account


def names(listing):
    return [entry.memory.name for entry in listing.entries]


def walk(shelves, wanted=None, **options):
    cursor, found, wanted = "", [], wanted or MemoryFilter()
    while True:
        page = library.browse(shelves, wanted, cursor=cursor, limit=3, **options)
        found += names(page)
        cursor = page.next
        if not cursor:
            return found


@pytest.mark.parametrize("order", ORDERS)
def test_several_agents_and_stores_are_one_list_in_every_order(ada, grace, ming, remember, order):
    second = make_agent("edsger", "mysql")
    draw = random.Random(5)
    for number in range(20):
        agent = (ada, grace, second)[number % 3]
        memory = remember(
            agent,
            "ming",
            f"memory {number}",
            name=str(number),
            importance=draw.choice([0.1, 0.5, 0.7]),
            now=NOW + timedelta(minutes=draw.randrange(6)),
        )
        for _ in range(draw.randrange(3)):
            memories.touch(agent, "ming", [memory.pk], now=NOW)
        if number % 4 == 0:
            change = {"description": "x"}
            memories.update(agent, "ming", memory.pk, change, actor=MING, now=NOW)
        remember(agent, "bob", f"bob's {number}")
    shelves = library.shelves_of(ming)

    found = walk(shelves, order=ORDERS[order])

    rows = [m for agent in (ada, grace, second) for m in Memory.objects.in_scope(agent, "ming")]
    rows.sort(key=ORDERS[order].key, reverse=ORDERS[order].is_descending)
    assert found == [memory.name for memory in rows]


def test_a_list_asks_each_store_the_same_however_many_agents_are_in_it(ada, ming, remember):
    def queries():
        # the scopes are looked up beforehand
        shelves = library.shelves_of(ming)
        with CaptureQueriesContext(connections[store_alias(ada)]) as sent:
            library.browse(shelves, MemoryFilter())
            library.count_by_type(shelves, MemoryFilter())
            library.seek(shelves, "deploys", MemoryFilter(), now=NOW)
        return len(sent)

    remember(ada, "ming", "Ming deploys on Fridays")
    before = queries()
    for number in range(30):
        agent = make_agent(f"agent-{number}", "sqlite")
        remember(agent, "ming", "Ming deploys on Fridays")

    assert queries() == before
    assert len(walk(library.shelves_of(ming))) == 31


def test_a_search_over_agents_finds_what_each_alone_would(agent, ming, remember):
    other = make_agent("barbara", agent.memory_config.backend)
    for each in (agent, other):
        remember(each, "ming", "Ming deploys on Fridays", name=f"{each.name} deploys")
        remember(each, "ming", "支付模块周五上线", name=f"{each.name} 支付")
        remember(each, "bob", "Bob deploys on Mondays", name="bob")
    shelves = library.shelves_of(ming)

    def sought(query):
        return sorted(names(library.seek(shelves, query, MemoryFilter(), now=NOW)))

    both = sorted([agent.name, "barbara"])
    assert sought("deploy") == sought("dep") == [f"{name} deploys" for name in both]
    assert sought("支付") == sought("付") == [f"{name} 支付" for name in both]
    assert sought("zebra") == []


def test_a_search_by_people_finds_what_agents_do_not_recall(agent, ming, remember):
    remember(agent, "ming", "kumquat tea", status="paused", type="project")
    trashed = remember(agent, "ming", "kumquat jam")
    memories.trash(agent, "ming", trashed.pk, actor=MING, now=NOW)
    shelves = library.shelves_of(ming)

    found = library.seek(shelves, "kumquat", MemoryFilter(), now=NOW)

    assert [entry.memory.status for entry in found.entries] == [Status.PAUSED]
    assert found.counts.by_type == {"project": 1}


def test_a_search_counts_all_that_match_whatever_is_shown(agent, ming, remember):
    for number in range(8):
        remember(agent, "ming", f"kumquat {number}", type=("user", "project")[number % 2])
    shelves = library.shelves_of(ming)

    found = library.seek(shelves, "kumquat", MemoryFilter(), limit=3, now=NOW)

    assert len(found.entries) == 3
    assert found.counts == library.TypeCounts({"user": 4, "project": 4})


def test_counts_by_type_go_by_the_other_filters(agent, ming, remember, monkeypatch):
    for number in range(6):
        remember(agent, "ming", f"{number}", type=("user", "project")[number % 2], tags=["tea"])
    remember(agent, "ming", "no tag", type="feedback")
    shelves = library.shelves_of(ming)

    assert library.count_by_type(shelves, MemoryFilter()).by_type == {
        "user": 3, "project": 3, "feedback": 1,
    }  # fmt: skip
    tagged = MemoryFilter(types=("user",), tags=("tea",))
    assert library.count_by_type(shelves, tagged) == library.TypeCounts({"user": 3, "project": 3})
    monkeypatch.setattr(library, "COUNTED", 4)
    counted = library.count_by_type(shelves, tagged)
    assert counted.is_least
    assert sum(counted.by_type.values()) == 4


def test_what_was_not_recalled_for_long_can_be_listed(agent, ming, remember):
    for name, days in (("long ago", 40), ("lately", 3)):
        memory = remember(agent, "ming", name, name=name)
        memories.touch(agent, "ming", [memory.pk], now=NOW - timedelta(days=days))
    remember(agent, "ming", "never", name="never")
    wanted = MemoryFilter(unused_since=NOW - timedelta(days=30))

    assert sorted(walk(library.shelves_of(ming), wanted)) == ["long ago", "never"]


@pytest.mark.parametrize(
    "cursor",
    ["x", "é", "====", "WzFd", "W10", "bnVsbA", "WyJjcmVhdGVkX2F0IiwgdHJ1ZSwgIngiLCAxXQ",
     ORDERS["recalled"].cursor_at(Memory(pk=5, access_count=1))],
)  # fmt: skip
def test_a_cursor_that_is_none_of_this_list_is_refused(ada, ming, remember, cursor):
    remember(ada, "ming", "Ming deploys on Fridays")

    with pytest.raises(InvalidMemory, match="cursor"):
        library.browse(library.shelves_of(ming), MemoryFilter(), cursor=cursor)


def test_an_identity_with_one_agent_shows_that_agent_only(ada, ming, remember):
    other = make_agent("barbara", "sqlite")
    for each in (ada, other):
        remember(each, "ming-at-work", each.name, name=each.name)
    Identity.objects.create(account=ming, user_id="ming-at-work", agent=other)
    shelves = library.shelves_of(ming)

    assert walk(shelves) == ["barbara"]
    hidden = Memory.objects.in_scope(ada, "ming-at-work").get()
    with pytest.raises(UnknownMemory):
        library.find(shelves, hidden.pk)


def test_a_store_that_does_not_answer_is_named_and_the_others_are_shown(
    ada, grace, ming, remember, settings
):
    remember(ada, "ming", "in SQLite", name="in SQLite")
    remember(grace, "ming", "in MySQL", name="in MySQL")
    connection = connections[store_alias(grace)]
    connection.close()
    port, connection.settings_dict["PORT"] = connection.settings_dict["PORT"], "1"
    try:
        shelves, unreachable = library.reachable_shelves(ming)
        with pytest.raises(Exception, match="connect"):
            library.shelves_of(ming)
    finally:
        connection.settings_dict["PORT"] = port

    assert walk(shelves) == ["in SQLite"]
    assert unreachable == [grace]
