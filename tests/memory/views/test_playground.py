"""The playground: every mode side by side, with no side effects, on others' for a reason."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.utils import timezone

from agents.models import Agent, AuditEntry, Identity, Pause
from memory.models import Memory
from memory.services import demo, memories
from memory.services.demo import load_demo
from memory.services.recall import MODES
from memory.services.writing import SYSTEM
from tests.conftest import NOW

REASON = "Ming asked why it forgot Fridays"
SECRET = "Ming deploys on Fridays"


@pytest.fixture
def opal(db, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    account = get_user_model().objects.create_user("opal", is_staff=True)
    Identity.objects.create(account=account, user_id="opal")
    return account


@pytest.fixture
def reader(opal):
    opal.user_permissions.add(Permission.objects.get(codename="view_content"))
    return opal


@pytest.fixture
def web(client, opal):
    client.force_login(opal)
    return client


@pytest.fixture
def ask(web):
    def post(agent, user_id="opal", query="Fridays", **more):
        form = {"agent": agent.name, "user_id": user_id, "query": query, "asked": "query",
                "threshold": "0.22", **more}  # fmt: skip
        headers = {"HX-Request": "true", "accept-language": "en"}
        return web.post("/playground/", form, headers=headers)

    return post


def test_every_mode_is_shown_beside_the_others(agent, ask, remember):
    found = remember(agent, "opal", SECRET)
    remember(agent, "opal", "Drinks tea by the window")

    answer = ask(agent)

    attempts = answer.context["attempts"]
    assert [each.mode for each in attempts] == list(MODES)
    assert {each.mode: each.degraded for each in attempts} == {
        "auto": (), "lexical": (), "vector": ("no_vectors",), "hybrid": ("no_vectors",),
    }  # fmt: skip
    [row] = answer.context["rows"]
    assert row.memory == found
    assert [cell.rank for cell in row.cells] == [1] * len(MODES)
    total = sum(share.adds for share in row.explanation.shares)
    assert total == pytest.approx(row.explanation.relevance, abs=1e-6)
    assert row.explanation.score == pytest.approx(row.cells[0].score, abs=1e-9)
    assert "There are no vectors yet" in answer.content.decode()
    assert "<html" not in answer.content.decode()


def test_nothing_of_it_is_noted(agent, ask, remember):
    memory = remember(agent, "opal", SECRET)
    before = Memory.objects.in_scope(agent, "opal").values().get(pk=memory.pk)

    ask(agent)

    assert Memory.objects.in_scope(agent, "opal").values().get(pk=memory.pk) == before
    assert not AuditEntry.objects.exists()


def test_the_least_score_only_says_what_would_fall_below(agent, ask, remember):
    remember(agent, "opal", SECRET)

    kept, lost = ask(agent, threshold="0"), ask(agent, threshold="1")

    assert [len(each.context["rows"]) for each in (kept, lost)] == [1, 1]
    assert [each.context["below"] for each in (kept, lost)] == [0, 1]


def test_what_is_typed_and_what_is_said_are_read_in_their_ways(agent, ask, remember):
    remember(agent, "opal", SECRET)

    typed, said = ask(agent, query="dep", asked="typed"), ask(agent, query="ok", asked="message")

    assert typed.context["reading"].prefix == "dep"
    assert len(typed.context["rows"]) == 1
    assert said.context["rows"] == ()


def test_it_says_where_agents_are_given_nothing(ada, ask, remember):
    remember(ada, "opal", SECRET)
    ada.memory_config.enabled = False
    ada.memory_config.save()
    Pause.objects.create(agent=ada, user_id="opal")

    text = ask(ada).content.decode()

    assert "is off" in text
    assert "has paused" in text


# --- whose -----------------------------------------------------------------------------


def test_anothers_take_the_permission(agent, ask, remember):
    remember(agent, "u1", SECRET)

    answer = ask(agent, "u1", reason=REASON)

    assert answer.status_code == 422
    assert SECRET not in answer.content.decode()
    assert not AuditEntry.objects.exists()


def test_anothers_take_a_reason_that_is_recorded_before_and_lasts_a_quarter_of_an_hour(
    agent, ask, reader, remember, client
):
    ming = get_user_model().objects.create_user("ming")
    Identity.objects.create(account=ming, user_id="u1")
    remember(agent, "u1", SECRET)
    remember(agent, "u2", SECRET)

    asked, curious = ask(agent, "u1"), ask(agent, "u1", reason="curious")
    assert (asked.status_code, curious.status_code) == (422, 422)
    assert SECRET not in (asked.content + curious.content).decode()
    assert not AuditEntry.objects.exists()
    first, second = ask(agent, "u1", reason=REASON), ask(agent, "u1", query="deploys")
    other = ask(agent, "u2")

    assert SECRET in first.content.decode()
    assert SECRET in second.content.decode()
    assert other.status_code == 422
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.subject, entry.reason, entry.count) == (
        "content_tried", ming, REASON, 2,
    )  # fmt: skip
    AuditEntry.objects.update(created_at=timezone.now() - timedelta(minutes=15))
    assert ask(agent, "u1").status_code == 422
    client.force_login(ming)
    assert REASON in client.get("/me/memory/").content.decode()


def test_a_permission_that_is_taken_away_ends_what_it_opened(ada, ask, reader, opal, remember):
    remember(ada, "u1", SECRET)
    assert SECRET in ask(ada, "u1", reason=REASON).content.decode()

    opal.user_permissions.clear()

    answer = ask(ada, "u1")
    assert answer.status_code == 422
    assert SECRET not in answer.content.decode()


@pytest.mark.parametrize("user_id", ["", "nobody", "OPAL", "x" * 256, "a\x00"])
def test_whom_no_agent_knows_cannot_be_tried(ada, ask, remember, user_id):
    remember(ada, "opal", SECRET)

    assert ask(ada, user_id).status_code == 422


def test_the_demos_people_take_no_reason_until_something_else_is_remembered(ada, remember):
    load_demo(now=NOW)
    atlas = Agent.objects.named("atlas")

    assert demo.is_demo(atlas, "tom")
    assert not demo.is_demo(ada, "tom")
    assert not demo.is_demo(atlas, "nobody")
    remember(atlas, "tom", "A real Tom likes tea")
    assert not demo.is_demo(atlas, "tom")


def test_what_somebody_wrote_into_a_demo_memory_is_no_demo_any_more(ada):
    load_demo(now=NOW)
    atlas = Agent.objects.named("atlas")
    first = Memory.objects.in_scope(atlas, "tom").first()

    memories.update(atlas, "tom", first.pk, {"content": SECRET}, actor=SYSTEM, now=NOW)

    assert not demo.is_demo(atlas, "tom")
    assert "tom" not in demo.demo_users(atlas)


# --- the page --------------------------------------------------------------------------


def test_it_works_without_scripts_and_the_query_is_in_no_address(ada, web, remember):
    remember(ada, "opal", SECRET)
    page = web.get("/playground/", {"user_id": "opal"})

    answer = web.post("/playground/", {"agent": "ada", "user_id": "opal", "query": "Fridays",
                                       "asked": "query", "threshold": "0.2"})  # fmt: skip

    assert 'method="post"' in page.content.decode()
    assert "<html" in answer.content.decode()
    assert SECRET in answer.content.decode()
    assert "no-store" in answer.headers["Cache-Control"]
