"""The agents' list and an agent's own pages: figures and records, no contents."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from agents import audit
from agents.auth import issue_key
from agents.models import ApiKey, AuditAction, MemoryConfig
from memory.models import FormerStore, Job
from memory.retrieval.lexical import SearchRequest
from memory.services.figures import recall_counts
from memory.services.moves import placing
from memory.services.recall import recall
from memory.views.agents import roster as views
from tests.conftest import make_agent

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")


@pytest.fixture
def now():
    return timezone.now()


@pytest.fixture
def web(client, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    client.force_login(get_user_model().objects.create_user("olga", is_staff=True))
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    return client


def text_of(answer):
    assert answer.status_code == 200
    return answer.content.decode()


def names(answer):
    return [row.agent.name for row in answer.context["page"]]


def used(agent, remember, now, *, users=1, recalls=0, query="deploys"):
    for number in range(users):
        remember(agent, f"u{number}", "Ming deploys on Fridays", now=now)
    for _ in range(recalls):
        recall(agent, "u0", SearchRequest(query), now=now)
    recall_counts.flush()


def test_the_list_has_counts_of_the_last_week_and_no_content(agent, web, remember, now):
    used(agent, remember, now, users=3, recalls=3)
    used(agent, remember, now, recalls=1, query="kumquat")
    used(agent, remember, now - timedelta(days=8), recalls=9)

    answer = web.get("/agents/")

    row = answer.context["page"][0]
    assert (row.memories, row.users, row.recalls, row.answered) == (5, 3, 4, 0.75)
    assert "no key" in text_of(answer)
    assert "Fridays" not in text_of(answer)
    ApiKey.objects.filter(pk=issue_key(agent)[0].pk).update(last_used_at=now)
    assert "just now" in text_of(web.get("/agents/"))


def test_the_list_is_searched_and_ordered(web, remember, now):
    busy, big, quiet = (make_agent(name, "sqlite") for name in ("busy", "big", "quiet"))
    used(busy, remember, now, recalls=3)
    used(big, remember, now, users=3)
    for each, moment in ((busy, now), (quiet, now - timedelta(days=3))):
        ApiKey.objects.filter(pk=issue_key(each)[0].pk).update(last_used_at=moment)

    def order(sort):
        return names(web.get("/agents/", {"sort": sort}))

    assert order("name") == order("nonsense") == ["big", "busy", "quiet"]
    assert order("recalls")[0] == "busy"
    assert order("memories")[0] == "big"
    assert order("active") == ["busy", "quiet", "big"]
    assert order("quiet") == ["big", "quiet", "busy"]
    assert names(web.get("/agents/", {"q": " BU "})) == ["busy"]
    assert "No agent is called so" in text_of(web.get("/agents/", {"q": "kumquat"}))


def test_many_agents_come_in_pages(web, monkeypatch):
    monkeypatch.setattr(views, "AGENTS", 2)
    for number in range(5):
        make_agent(f"agent-{number}", "sqlite")

    assert names(web.get("/agents/?page=3")) == ["agent-4"]
    assert "q=agent&amp;page=2" in text_of(web.get("/agents/?q=agent"))


def test_htmx_gets_the_list_alone(web, ada):
    answer = web.get("/agents/", headers={"HX-Request": "true", "HX-Target": "agents"})

    assert text_of(answer).strip().startswith('<div id="agents">')


def test_an_agents_page_shows_its_own_figures_and_other_stores(agent, web, remember, now):
    other = make_agent("other", agent.memory_config.backend)
    used(agent, remember, now, users=2, recalls=3)
    used(other, remember, now, users=7)
    there = {"sqlite": "mysql", "mysql": "sqlite"}[agent.memory_config.backend]
    FormerStore.objects.create(agent_id=agent.pk, backend=there, sqlite_path="memory.db", since=now)

    answer = web.get(f"/agents/{agent.name}/")

    assert (answer.context["memories"], answer.context["users"]) == (2, 2)
    assert answer.context["recalls_today"] == 3
    assert "Other stores that hold something of it" in text_of(answer)
    part = web.get(
        f"/agents/{agent.name}/?days=7", headers={"HX-Request": "true", "HX-Target": "dash"}
    )
    assert text_of(part).strip().startswith('<div id="dash">')
    assert part.context["asked"] == {"days": 7}


def test_a_fresh_start_shows_what_was_left_and_keeps_the_figures(agent, web, remember, now):
    used(agent, remember, now, users=2, recalls=3)
    there = {"sqlite": "mysql", "mysql": "sqlite"}[agent.memory_config.backend]
    path = "memory.db" if there == "sqlite" else ""
    placing.change_store(agent, backend=there, sqlite_path=path, leave=True, now=now)

    answer = web.get(f"/agents/{agent.name}/")

    assert (answer.context["memories"], answer.context["recalls_today"]) == (0, 3)
    assert "Left behind by a fresh start." in text_of(answer)


def test_activity_lists_records_and_jobs_of_this_agent_newest_first(agent, web, now, monkeypatch):
    monkeypatch.setattr(views, "EVENTS", 3)
    other = make_agent("other", "sqlite")
    olga = get_user_model().objects.get()
    for age in range(4):
        moment = now - timedelta(hours=age)
        detail = f"prefetch_limit: 5 → {age}"
        audit.note(olga, AuditAction.SETTING_CHANGED, agent=agent, detail=detail, now=moment)
        audit.note(olga, AuditAction.KEY_CREATED, agent=other, detail="of other", now=moment)
    Job.objects.create(
        kind="reindex", state="done", key="r", agent_id=agent.pk,
        created_at=now - timedelta(minutes=90),
    )  # fmt: skip
    Job.objects.create(kind="move", state="done", key="m", agent_id=other.pk)
    row, _ = issue_key(agent, name="production", user_id="ming")

    first = text_of(web.get(f"/agents/{agent.name}/activity/"))
    second = text_of(web.get(f"/agents/{agent.name}/activity/?page=2"))

    assert re.findall(r"→ (\d)|(New index)", first) == [
        ("0", ""), ("1", ""), ("", "New index"),
    ]  # fmt: skip
    assert re.findall(r"→ (\d)", second) == ["2", "3"]
    assert row.prefix in first
    assert "production" in first
    assert "of other" not in first + second
    assert web.get(f"/agents/{agent.name}/activity/?page=x").context["number"] == 1


def test_a_switch_says_what_it_is_now(ada, web):
    address = f"/agents/{ada.name}/switch/"

    answer = text_of(web.post(address, {}, headers={"HX-Request": "true"}))

    assert "checked" not in answer
    assert not MemoryConfig.objects.get(agent=ada).enabled
    assert "setting changed" in text_of(web.get(f"/agents/{ada.name}/activity/"))


def test_an_agent_whose_keys_all_ended_has_none(ada, web):
    issue_key(ada, expires_at=timezone.now() - timedelta(seconds=1))
    assert "no key" in text_of(web.get("/agents/"))

    issue_key(ada, expires_at=timezone.now() + timedelta(days=1))
    assert "no key" not in text_of(web.get("/agents/"))
