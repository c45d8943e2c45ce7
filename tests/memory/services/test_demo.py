"""The demo: three agents, their people, and memories of every kind."""

import json
from collections import Counter

import pytest
from django.contrib.auth import get_user_model

from agents.models import Agent, Identity
from memory.models import Memory, MemoryKind, MemoryType
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services import demo, maintenance, memories
from memory.services.context import prefetch
from memory.services.demo import DEMO_FILE, load_demo
from tests.conftest import MING, NOW
from tests.memory.rows import row_counts

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")

Account = get_user_model()
AGENTS = {"atlas": 26, "mentor": 21, "xiaoman": 19}
TABLES = (Account, Identity, Agent)


def memories_of(name):
    return Memory.objects.for_agent(Agent.objects.named(name)).select_related("scope")


def everything():
    """Return every row of the demo, but for who accessed what when."""
    rows = [list(table.objects.order_by("pk").values()) for table in TABLES]
    return rows + [list(memories_of(name).order_by("pk").values()) for name in AGENTS]


def test_demo_has_its_agents_accounts_and_memories():
    logins = load_demo(now=NOW)

    assert {name: memories_of(name).count() for name in AGENTS} == AGENTS
    assert Agent.objects.count() == 3
    assert {agent.language for agent in Agent.objects.all()} == {"zh-hans", "en"}
    assert all(agent.display_name and agent.system_prompt for agent in Agent.objects.all())
    assert {agent.memory_config.backend for agent in Agent.objects.all()} == {"sqlite"}
    assert [(login.username, login.role) for login in logins] == [
        ("olga", "superuser"),
        ("meilin", "user"),
        ("tom", "user"),
    ]
    assert Account.objects.count() == 3


def test_second_load_changes_nothing():
    load_demo(now=NOW)
    before = everything(), row_counts(Agent.objects.named("atlas"))

    assert load_demo(now=NOW) == []

    assert (everything(), row_counts(Agent.objects.named("atlas"))) == before


def test_second_load_leaves_what_was_changed_meanwhile():
    load_demo(now=NOW)
    done = {"actor": MING, "now": NOW}
    atlas = Agent.objects.named("atlas")
    changed, trashed = memories_of("atlas").order_by("pk")[:2]
    memories.update(atlas, changed.scope.user_id, changed.pk, {"content": "Ming was here"}, **done)
    memories.trash(atlas, trashed.scope.user_id, trashed.pk, **done)
    before = everything()

    load_demo(now=NOW)

    assert everything() == before


def test_every_kind_and_type_is_there_for_every_user():
    load_demo(now=NOW)
    found = [memory for name in AGENTS for memory in memories_of(name)]

    assert {memory.kind for memory in found} == set(MemoryKind)
    assert {memory.type for memory in found} == set(MemoryType)
    assert {memory.scope.user_id for memory in found} == {"meilin", "tom"}
    assert {memory.status for memory in found} == {"active", "archived", "paused"}
    assert len({memory.tier for memory in found}) == 2
    written = json.loads(DEMO_FILE.read_text(encoding="utf-8"))["memories"]
    assert Counter(memory.name for memory in found) == Counter(each["name"] for each in written)
    assert {memory.external_id for memory in found} == {f"demo-{each['id']}" for each in written}


def test_sources_of_a_summary_are_memories_of_the_same_scope():
    load_demo(now=NOW)
    found = 0
    for name in AGENTS:
        for summary in memories_of(name).filter(kind="summary"):
            sources = Memory.objects.in_scope(Agent.objects.named(name), summary.scope.user_id)
            ids = summary.detail["source_ids"]
            found += len(ids)
            assert ids
            assert sources.filter(pk__in=ids).exclude(pk=summary.pk).count() == len(set(ids))

    written = json.loads(DEMO_FILE.read_text(encoding="utf-8"))["memories"]
    assert found == sum(len(each["detail"].get("source_ids", [])) for each in written)


def test_memories_are_indexed_and_found():
    load_demo(now=NOW)

    for name in AGENTS:
        assert list(maintenance.check(Agent.objects.named(name))) == []
    hits = search(Agent.objects.named("xiaoman"), "meilin", SearchRequest("芝麻"), now=NOW).hits
    assert "猫叫芝麻，三岁的狸花母猫" in {hit.memory.name for hit in hits}
    block = prefetch(Agent.objects.named("xiaoman"), "meilin", "我的猫叫什么？", now=NOW).block
    assert "芝麻" in block


def test_passwords_are_random_and_only_their_hashes_are_kept():
    first = load_demo(now=NOW)
    for login in first:
        account = Account.objects.get(username=login.username)
        assert account.check_password(login.password)
        assert login.password not in account.password
        assert len(login.password) >= 10
    Account.objects.all().delete()

    second = load_demo(now=NOW)

    passwords = {login.password for login in first + second}
    assert len(passwords) == 6
    kept = "".join(str(row) for row in everything())
    assert not any(password in kept for password in passwords)


def test_operator_is_a_superuser_and_nobody_else():
    load_demo(now=NOW)

    rights = Account.objects.values_list("username", "is_superuser", "is_staff", "is_active")
    assert set(rights) == {
        ("olga", True, True, True),
        ("meilin", False, False, True),
        ("tom", False, False, True),
    }


def test_identities_link_accounts_to_the_users_that_agents_remember():
    load_demo(now=NOW)

    links = Identity.objects.values_list("account__username", "user_id", "agent")
    assert set(links) == {(name, name, None) for name in ("olga", "meilin", "tom")}


def test_account_that_is_there_keeps_its_password_and_rights():
    Account.objects.create_user("olga", password="her own")

    logins = load_demo(now=NOW)

    olga = Account.objects.get(username="olga")
    assert olga.check_password("her own")
    assert not olga.is_superuser
    assert {login.username for login in logins} == {"meilin", "tom"}


def test_load_that_was_interrupted_is_completed_by_the_next(monkeypatch):
    taken_in = demo.import_lines

    def interrupt(agent, lines, **more):
        if agent.name == "mentor":
            raise KeyboardInterrupt
        return taken_in(agent, lines, **more)

    monkeypatch.setattr(demo, "import_lines", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_demo(now=NOW)
    monkeypatch.undo()

    load_demo(now=NOW)

    assert {name: memories_of(name).count() for name in AGENTS} == AGENTS
    assert Account.objects.count() == 3
