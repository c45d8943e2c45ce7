"""Each setting of an agent is saved on its own, beside what others change, and is on record."""

import pytest
from django.urls import reverse

from agents.auth import issue_key
from agents.models import Agent, AgentNotErased, AuditEntry
from memory.models import Memory
from memory.services import configuring, memories
from tests.conftest import MING, NOW
from tests.memory.views.operators import htmx, make_operator

PAGE = "/agents/ada/settings/"
ENGLISH = {"accept-language": "en"}


@pytest.fixture
def web(client, db, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    client.force_login(make_operator())
    return client


def again(agent):
    return Agent.objects.named(agent.name)


def entries(action):
    return AuditEntry.objects.filter(action=action).order_by("pk")


VALUES = [
    ("enabled", "", False),
    ("prefetch_limit", "12", 12),
    ("budget_tokens", "2000", 2000),
    ("language", "zh-hans", "zh-hans"),
    ("display_name", "Ada 小艾", "Ada 小艾"),
    ("system_prompt", "Be brief.\r\nBe kind.", "Be brief.\nBe kind."),
]


@pytest.mark.parametrize(("name", "typed", "value"), VALUES)
@pytest.mark.parametrize("is_fragment", [True, False])
def test_a_setting_is_saved_says_so_and_is_on_record(ada, web, name, typed, value, is_fragment):
    data = {"field": name} | ({name: typed} if typed else {})

    answer = htmx(web, PAGE, data) if is_fragment else web.post(PAGE, data, follow=True)

    owner = again(ada) if name in configuring.OF_AGENT else again(ada).memory_config
    assert answer.status_code == 200
    assert getattr(owner, name) == value
    assert 'class="saved"' in answer.content.decode() or not is_fragment
    [entry] = entries("setting_changed")
    assert (entry.actor_name, entry.agent, entry.detail.split(":")[0]) == ("opal", ada, name)


WRONG = [("prefetch_limit", "99"), ("prefetch_limit", ""), ("budget_tokens", "-1"),
         ("language", "fr"), ("display_name", "x" * 201)]  # fmt: skip


@pytest.mark.parametrize(("name", "typed"), WRONG)
def test_a_bad_value_is_said_beside_its_field_and_kept(ada, web, name, typed):
    answer = web.post(PAGE, {"field": name, name: typed})
    fragment = htmx(web, PAGE, {"field": name, name: typed})

    assert answer.status_code == fragment.status_code == 422
    field = answer.context["setting"][name]
    assert (field.value(), len(field.errors)) == (typed, 1)
    assert f'id="id_{name}_error"' in fragment.content.decode()
    assert again(ada).memory_config.prefetch_limit == 5
    assert not AuditEntry.objects.exists()


def test_what_is_no_setting_is_not_found(ada, web):
    for name in ("backend", "sqlite_path", "name", "is_active", ""):
        assert web.post(PAGE, {"field": name, name: "x"}).status_code == 404


def test_a_value_that_is_there_already_is_no_change(ada, web):
    htmx(web, PAGE, {"field": "prefetch_limit", "prefetch_limit": "5"})

    assert not AuditEntry.objects.exists()


def test_operators_who_change_different_fields_keep_both(ada):
    first, second = again(ada), again(ada)
    pat, sam = make_operator("pat"), make_operator("sam")

    configuring.change(first, {"prefetch_limit": 9}, actor=pat, now=NOW)
    configuring.change(second, {"budget_tokens": 900, "display_name": "A"}, actor=sam, now=NOW)
    configuring.change(first, {"display_name": "B"}, actor=pat, now=NOW)

    config = again(ada).memory_config
    assert (config.prefetch_limit, config.budget_tokens, str(again(ada))) == (9, 900, "B")
    assert [entry.detail for entry in entries("setting_changed")] == [
        "prefetch_limit: 5 → 9",
        "display_name:  → A; budget_tokens: 1000 → 900",
        "display_name: A → B",
    ]


def test_a_long_text_is_not_in_the_record(ada):
    configuring.change(ada, {"system_prompt": "x" * 300}, actor=None, now=NOW)

    assert entries("setting_changed").get().detail == "system_prompt: 0 → 300 characters"


def test_the_next_call_of_an_agent_obeys_the_switch(ada, web, client, remember):
    remember(ada, "ming", "Ming deploys on Fridays")
    key = issue_key(ada)[1]

    def prefetch():
        address = reverse("prefetch", args=["ada"])
        body = {"user_id": "ming", "message": "When does Ming deploy?"}
        headers = {"authorization": f"Bearer {key}"}
        options = {"content_type": "application/json", "headers": headers}
        return client.post(address, body, **options).json()

    assert prefetch()["memories"]
    htmx(web, PAGE, {"field": "enabled"})
    assert prefetch() == {"enabled": False}
    htmx(web, PAGE, {"field": "enabled", "enabled": "true"})
    assert prefetch()["memories"]


# --- a new agent, and the end of one ----------------------------------------------------

NEW = {"name": "ada", "display_name": "Ada", "language": "en", "backend": "sqlite"}


@pytest.mark.parametrize("backend", ["sqlite", "mysql"])
@pytest.mark.django_db(transaction=True, databases="__all__")
def test_a_new_agent_is_made_and_on_record(web, backend):
    answer = web.post("/agents/+new/", {**NEW, "backend": backend})

    made = Agent.objects.named("ada")
    assert answer.status_code == 302
    assert answer.url.startswith("/agents/ada/")
    assert (made.display_name, made.memory_config.backend) == ("Ada", backend)
    assert entries("agent_created").get().agent == made


def test_a_name_that_is_taken_or_malformed_makes_no_agent(ada, web):
    for name in ("ada", "a b", "+new", "..", ""):
        answer = web.post("/agents/+new/", {**NEW, "name": name})
        assert answer.status_code == 422
        assert answer.context["form"].errors["name"]
    assert Agent.objects.count() == 1


@pytest.mark.django_db(databases="__all__")
def test_a_backend_that_cannot_be_used_makes_no_agent(web, settings, monkeypatch):
    monkeypatch.delitem(settings.DATABASES, "mysql")

    page = web.get("/agents/+new/", headers=ENGLISH)
    answer = web.post("/agents/+new/", {**NEW, "backend": "mysql"})

    assert "set MYSQL_URL" in page.content.decode()
    assert answer.status_code == 422
    assert "MYSQL_URL" in str(answer.context["form"].errors["backend"])
    assert not Agent.objects.exists()


def test_an_agent_goes_with_its_memories_if_its_name_is_typed(agent, web, remember):
    remember(agent, "ming", "Ming deploys on Fridays")
    memories.trash(agent, "ming", remember(agent, "ming", "tea").pk, actor=MING, now=NOW)
    page = f"/agents/{agent.name}/settings/"
    alias = Memory.objects.for_agent(agent).db

    wrong = web.post(f"{page}delete/", {"confirm": agent.name.upper()})
    shown = web.get(page, headers=ENGLISH).content.decode()
    right = web.post(f"{page}delete/", {"confirm": agent.name})

    assert wrong.status_code == 422
    assert "Lost with it: 2 memories" in shown
    assert right.url == "/agents/"
    assert not Agent.objects.exists()
    assert not Memory.objects.using(alias).exists()
    entry = entries("agent_deleted").get()
    assert (entry.detail, entry.count, entry.agent) == (agent.name, 2, None)


def test_an_agent_that_cannot_be_erased_stays_and_nothing_is_on_record(ada, web, monkeypatch):
    def fail(self, *args, **kwargs):
        raise AgentNotErased("ada")

    monkeypatch.setattr(Agent, "delete", fail)
    answer = web.post(f"{PAGE}delete/", {"confirm": "ada"})

    assert answer.status_code == 409
    assert again(ada)
    assert not AuditEntry.objects.exists()
