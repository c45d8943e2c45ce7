"""Operators see whom agents remember; contents only for a reason that whoever it is sees."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import DatabaseError, connections
from django.test.utils import CaptureQueriesContext

from agents.models import AuditEntry, Identity
from memory.databases import store_alias
from memory.models import Job, Scope
from memory.services import job_kinds, memories, people
from memory.views import people as views
from tests.conftest import MING, NOW

REASON = "Ming asked why it forgot Fridays"
SECRET = "Ming deploys on Fridays"


@pytest.fixture(autouse=True)
def _host(settings):
    settings.ALLOWED_HOSTS = ["testserver"]


def make_account(name, *user_ids, **fields):
    account = get_user_model().objects.create_user(name, **fields)
    for user_id in user_ids:
        Identity.objects.create(account=account, user_id=user_id)
    return account


@pytest.fixture
def ming(db):
    return make_account("ming", "u1")


@pytest.fixture
def opal(db):
    """An operator who may read contents."""
    account = make_account("opal", "opal", is_staff=True)
    account.user_permissions.add(Permission.objects.get(codename="view_content"))
    return account


@pytest.fixture
def web(client, opal):
    client.force_login(opal)
    return client


def asking(agent, user_id="u1"):
    return f"/users/read/?{urlencode({'agent': agent.name, 'user_id': user_id})}"


def open_reading(web, agent, user_id="u1", reason=REASON):
    """Give a reason; return the address where the memories are."""
    answer = web.post(asking(agent, user_id), {"reason": reason})
    assert answer.status_code == 302
    return answer.url


def later(minutes):
    return NOW + timedelta(minutes=minutes)


def text_of(answer):
    return answer.content.decode()


# --- the table -------------------------------------------------------------------------


def test_everybody_is_there_with_role_identities_and_counts(agent, web, ming, remember):
    make_account("root", is_staff=True, is_superuser=True)
    for number in range(3):
        remember(agent, "u1", f"{SECRET} {number}", name=f"Fridays {number}")
    memories.trash(agent, "u1", remember(agent, "u1", "old").pk, actor=MING, now=NOW)

    text = text_of(web.get("/users/", headers={"accept-language": "en"}))

    by_name = re.split(r'<th scope="row"><a href="/users/\d+/"><b>', text)[1:]
    rows = {row[: row.index("<")]: row for row in by_name}
    roles = {name: re.search(r'class="pill">(\w+)<', row)[1] for name, row in rows.items()}
    assert roles == {"ming": "user", "opal": "operator", "root": "superuser"}
    assert "<code>u1</code>" in rows["ming"]
    assert "3 memories" in rows["ming"]
    assert "not linked" in rows["root"]
    assert "Fridays" not in text


def test_an_identity_of_one_agent_owns_nothing_of_another(ada, grace, web, remember):
    bob = make_account("bob")
    Identity.objects.create(account=bob, user_id="b", agent=ada)
    for agent in (ada, grace):
        remember(agent, "b", "Bob likes tea")

    answer = web.get("/users/")

    owned = {account.username: shelves for account, shelves in answer.context["people"]}
    assert [shelf.agent for shelf in owned["bob"]] == [ada]
    assert [(each.agent, each.user_id) for each in answer.context["strangers"]] == [(grace, "b")]


def test_whom_no_account_has_is_listed_by_count_and_found_by_exact_user_id(
    ada, grace, web, ming, remember
):
    for agent, user_id, count in ((ada, "x", 1), (grace, "y", 3), (ada, "z", 2), (ada, "u1", 4)):
        for number in range(count):
            remember(agent, user_id, f"tea {number}")

    def strangers(query=""):
        found = web.get("/users/", {"q": query}).context["strangers"]
        return [(each.user_id, each.scope.memory_count) for each in found]

    assert strangers() == [("y", 3), ("z", 2), ("x", 1)]
    assert strangers("x") == [("x", 1)]
    assert strangers("X") == strangers("x ") == strangers("u1") == []


def test_only_so_many_strangers_are_listed_and_it_says_so(agent, web, ming, remember, monkeypatch):
    monkeypatch.setattr(views, "UNCLAIMED", 2)
    for number, user_id in enumerate(["u1", "a", "b", "c"]):
        for _ in range(4 - number):
            remember(agent, user_id, "tea")

    answer = web.get("/users/")

    assert [each.user_id for each in answer.context["strangers"]] == ["a", "b"]
    assert answer.context["are_more_strangers"]


def test_an_account_is_found_by_name_and_by_user_id(web, ming, db):
    bob = make_account("bob", "u2", "u3")

    def found(query):
        return [account for account, _ in web.get("/users/", {"q": query}).context["people"]]

    assert found("bob") == found("u2") == found("u3") == [bob]
    assert found("ming") == [ming]
    assert found("u") == found("a\x00") == []


def test_accounts_come_in_pages(web, db, monkeypatch):
    monkeypatch.setattr(views, "ACCOUNTS", 2)
    for number in range(4):
        make_account(f"user{number}")

    pages = [web.get("/users/", {"page": number}).context["people"] for number in (1, 2, 3)]

    names = [account.username for shown in pages for account, _ in shown]
    assert names == ["opal", "user0", "user1", "user2", "user3"]
    assert web.get("/users/", {"page": "no"}).status_code == 200


def test_the_table_costs_the_same_for_many(ada, grace, web, remember):
    def queries():
        captured = {
            alias: CaptureQueriesContext(connections[alias])
            for alias in ("default", store_alias(ada), store_alias(grace))
        }
        for each in captured.values():
            each.__enter__()
        assert web.get("/users/").status_code == 200
        for each in captured.values():
            each.__exit__(None, None, None)
        return {alias: len(each) for alias, each in captured.items()}

    def add(numbers):
        for number in numbers:
            make_account(f"user{number}", f"u{number}")
            for agent in (ada, grace):
                remember(agent, f"u{number}", "tea")
                remember(agent, f"stranger{number}", "tea")

    add(range(2))  # and opal
    few = queries()
    add(range(2, 29))
    many = queries()

    assert many == few
    assert few[store_alias(ada)] == few[store_alias(grace)] == 2


def test_a_silent_store_is_named_and_the_others_are_shown(
    ada, grace, web, ming, remember, monkeypatch
):
    remember(ada, "u1", "tea")
    remember(grace, "u1", "tea")

    def fail(agent):
        if agent.pk == grace.pk:
            raise DatabaseError("gone")
        return store_alias(agent)

    monkeypatch.setattr(people, "store_alias", fail)
    answer = web.get("/users/")

    owned = {account.username: shelves for account, shelves in answer.context["people"]}
    assert [shelf.agent for shelf in owned["ming"]] == [ada]
    assert answer.context["silent"] == ["MySQL"]
    assert "MySQL" in text_of(answer)


# --- who may ---------------------------------------------------------------------------


def test_the_pages_are_for_operators_only(agent, client, ming, remember):
    remember(agent, "u1", SECRET)
    paths = ["/users/", asking(agent), "/users/read/1/"]

    for path in paths:
        assert client.get(path).url.startswith("/accounts/login/")
    client.force_login(ming)
    for path in paths:
        assert client.get(path).status_code == 403
    assert "/users/" not in text_of(client.get("/me/memory/"))


def test_an_operator_without_the_permission_sees_no_link_and_reads_nothing(
    agent, client, opal, ming, remember
):
    remember(agent, "u1", SECRET)
    client.force_login(opal)
    with_permission = text_of(client.get("/users/"))
    reading = open_reading(client, agent)
    opal.user_permissions.clear()

    listed = text_of(client.get("/users/"))

    assert "/users/read/" in with_permission
    assert "/users/read/" not in listed
    assert client.get(asking(agent)).status_code == 403
    assert client.post(asking(agent), {"reason": REASON}).status_code == 403
    assert client.get(reading).status_code == 403
    assert AuditEntry.objects.count() == 1


def test_a_superuser_may_read(agent, client, ming, remember):
    remember(agent, "u1", SECRET)
    client.force_login(make_account("root", is_staff=True, is_superuser=True))

    assert SECRET in text_of(client.get(open_reading(client, agent)))


# --- reading ---------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["", "curious", "         curious        ", "x" * 501])
def test_without_a_reason_nothing_is_read(agent, web, ming, remember, reason):
    remember(agent, "u1", SECRET)

    asked = web.get(asking(agent))
    answer = web.post(asking(agent), {"reason": reason})

    assert (asked.status_code, answer.status_code) == (200, 422)
    assert SECRET not in text_of(asked) + text_of(answer)
    assert not AuditEntry.objects.exists()


def test_the_entry_is_there_before_anything_is_read(agent, web, ming, remember, monkeypatch):
    remember(agent, "u1", SECRET)
    reading = open_reading(web, agent)
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.subject, entry.reason, entry.count) == (
        "opal", ming, REASON, 0,
    )  # fmt: skip

    def fail(*args, **options):
        raise DatabaseError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(memories, "list_page", fail)
        silent = web.get(reading)
    answer = web.get(reading)

    assert silent.status_code == 503
    assert SECRET in text_of(answer)
    assert "no-store" in answer.headers["Cache-Control"]
    entry.refresh_from_db()
    assert entry.count == 1


def test_an_entry_holds_nothing_of_what_was_read(agent, web, ming, remember):
    remember(agent, "u1", SECRET, name="Release day", description="habits", tags=["friday"])

    web.get(open_reading(web, agent))

    kept = str(AuditEntry.objects.values().get())
    assert all(text not in kept for text in (SECRET, "Release day", "habits", "friday"))


def test_every_page_that_is_shown_counts(agent, web, ming, remember, monkeypatch):
    monkeypatch.setattr(views, "MEMORIES", 2)
    for number in range(5):
        remember(agent, "u1", f"tea {number}", now=later(number))
    memories.trash(agent, "u1", remember(agent, "u1", SECRET).pk, actor=MING, now=later(9))
    remember(agent, "u2", "another's")
    reading = open_reading(web, agent)

    shown, counts, following = [], [], ""
    while True:
        answer = web.get(reading + following)
        shown += [memory.content for memory in answer.context["memories"]]
        counts.append(AuditEntry.objects.get().count)
        if not (following := answer.context["next"]):
            break

    assert shown == [f"tea {number}" for number in (4, 3, 2, 1, 0)]
    assert counts == [2, 4, 5]
    assert web.get(f"{reading}?cursor=made-up").status_code == 404
    assert AuditEntry.objects.get().count == 5


def test_a_reading_is_open_to_who_asked_only(agent, web, client, ming, remember):
    remember(agent, "u1", SECRET)
    reading = open_reading(web, agent)

    client.force_login(make_account("root", is_staff=True, is_superuser=True))

    assert client.get(reading).status_code == 404
    assert AuditEntry.objects.get().count == 0


def test_a_reading_is_of_that_user_only_whatever_the_address_says(agent, web, ming, remember):
    remember(agent, "u1", "Ming likes tea")
    remember(agent, "u2", SECRET)
    reading = open_reading(web, agent)

    answer = web.get(reading, {"agent": agent.name, "user_id": "u2"})

    assert [memory.content for memory in answer.context["memories"]] == ["Ming likes tea"]


def test_a_reading_ends_and_leads_to_the_form(agent, web, remember):
    user_id = "用户 & 1/2"
    remember(agent, user_id, SECRET)
    reading = open_reading(web, agent, user_id)
    assert SECRET in text_of(web.get(reading))
    written = AuditEntry.objects.get().created_at
    AuditEntry.objects.update(created_at=written - timedelta(minutes=15))

    ended = web.get(reading)

    assert ended.status_code == 302
    form = web.get(ended.url)
    assert form.context["user_id"] == user_id
    assert SECRET not in text_of(form)
    assert AuditEntry.objects.get().count == 1


@pytest.mark.parametrize("user_id", ["u1", "U1 ", "用户/甲", "a+b&c=d?#%", "line\nbreak", "<b>"])
def test_every_user_id_can_be_read_by_its_link(agent, web, remember, user_id):
    remember(agent, user_id, SECRET)
    text = text_of(web.get("/users/"))
    [link] = re.findall(r'href="(/users/read/[^"]*)"', text)

    answer = web.post(link.replace("&amp;", "&"), {"reason": REASON})

    assert SECRET in text_of(web.get(answer.url))
    assert AuditEntry.objects.get().user_id == user_id


def test_what_is_ones_own_needs_no_reason(agent, web, remember):
    remember(agent, "opal", "Opal likes tea")

    for answer in (web.get(asking(agent, "opal")), web.post(asking(agent, "opal"))):
        assert (answer.status_code, answer.url) == (302, "/memories/")
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("user_id", ["", "nobody", "U1", "u1 ", "a\x00", "x" * 256])
def test_whom_no_agent_knows_cannot_be_read(agent, web, remember, user_id):
    remember(agent, "u1", SECRET)

    assert web.get(asking(agent, user_id)).status_code == 404
    assert web.post(asking(agent, user_id), {"reason": REASON}).status_code == 404
    assert web.get("/users/read/?agent=nobody&user_id=u1").status_code == 404
    assert not AuditEntry.objects.exists()


def test_a_deleted_agent_is_read_no_more(agent, web, remember):
    remember(agent, "u1", SECRET)
    reading = open_reading(web, agent)
    agent.delete()

    assert web.get(reading).status_code == 404


# --- whose memories they are -----------------------------------------------------------


def test_one_sees_who_read_ones_memories_and_why(agent, client, opal, ming, remember):
    remember(agent, "u1", SECRET)
    remember(agent, "u2", "Bob likes tea")
    client.force_login(ming)
    nobody = client.get("/me/memory/").context["reads"]
    client.force_login(opal)
    client.get(open_reading(client, agent))
    client.get(open_reading(client, agent, "u2", reason="Bob's reason is another"))
    client.force_login(ming)

    answer = client.get("/me/memory/")

    assert nobody == []
    [read] = answer.context["reads"]
    assert (read.actor_name, read.count) == ("opal", 1)
    assert REASON in text_of(answer)
    assert "Bob" not in text_of(answer)


def test_erasing_everything_leaves_the_record_of_who_read_it(agent, client, opal, ming, remember):
    remember(agent, "u1", SECRET)
    client.force_login(opal)
    client.get(open_reading(client, agent))
    client.force_login(ming)
    client.post("/me/memory/erase/", {"confirm": "ming"})
    job_kinds.perform(Job.objects.get(kind="erase_user").pk)

    assert not Scope.objects.of_user(agent, "u1").exists()
    assert Job.objects.get().state == "done"
    assert [read.reason for read in client.get("/me/memory/").context["reads"]] == [REASON]
