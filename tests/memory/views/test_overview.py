"""The first page: everybody sees their own figures, operators those of all agents."""

import re
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents import audit
from agents.auth import issue_key
from agents.models import Agent, ApiKey, Identity, Pause
from memory.databases import store_alias
from memory.models import AgentDay, FormerStore, Job, ScopeDay
from memory.retrieval.lexical import SearchRequest
from memory.services import configuring
from memory.services.figures import counting, recall_counts, sums
from memory.services.recall import recall
from memory.views import overview
from tests.conftest import make_agent

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")

SECRET = "Ming deploys on Fridays"


@pytest.fixture
def now():
    return timezone.now()


@pytest.fixture
def olga(client, db, settings):
    """An operator without memories, logged in in a browser that reads English."""
    settings.ALLOWED_HOSTS = ["testserver"]
    account = get_user_model().objects.create_user("olga", is_staff=True)
    client.force_login(account)
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    return client


@pytest.fixture
def web(web):
    web.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    return web


def used(agent, remember, user_id, now, *, saves=1, recalls=0):
    for number in range(saves):
        remember(agent, user_id, f"{SECRET} {number}", type="project", now=now)
    for _ in range(recalls):
        recall(agent, user_id, SearchRequest("deploys"), now=now)
    recall_counts.flush()


def text_of(answer):
    assert answer.status_code == 200
    return answer.content.decode()


def kinds_of(answer):
    return {need.kind: [str(agent) for agent in need.agents] for need in answer.context["needs"]}


# --- whose figures ---------------------------------------------------------------------


def test_people_see_their_own_figures_only(agent, web, remember, now):
    used(agent, remember, "ming", now, saves=2, recalls=3)
    used(agent, remember, "bob", now, saves=5, recalls=7)

    answer = web.get("/")

    assert (answer.context["memories"], answer.context["recalls_today"]) == (2, 3)
    assert answer.context["whole"]["saved_project"] == 2
    assert "agent-switch" not in text_of(answer)
    assert f"/agents/{agent.name}/" not in text_of(answer)


def test_whoever_is_no_operator_asks_in_vain_for_the_servers(agent, web, remember, now):
    used(agent, remember, "bob", now, saves=5)
    other = make_agent("other", agent.memory_config.backend)
    used(other, remember, "bob", now)

    assert web.get("/?of=").context["memories"] == 0
    assert web.get("/", {"agent": "other"}).status_code == 404
    assert web.get("/", {"agent": "nobody"}).status_code == 404


def test_operators_see_the_sums_of_all_and_no_content(agent, olga, remember, now):
    used(agent, remember, "ming", now, saves=2, recalls=3)
    used(agent, remember, "bob", now, saves=5, recalls=7)

    answer = olga.get("/")

    assert (answer.context["memories"], answer.context["recalls_today"]) == (7, 10)
    assert "Fridays" not in text_of(answer)
    assert ">ming<" not in text_of(answer)


def test_operators_with_memories_of_their_own_choose(agent, olga, remember, now):
    assert "Whose figures" not in text_of(olga.get("/"))
    Identity.objects.create(account=get_user_model().objects.get(), user_id="olga")
    used(agent, remember, "olga", now)
    used(agent, remember, "bob", now, saves=5)

    assert "Whose figures" in text_of(olga.get("/"))
    assert olga.get("/").context["memories"] == 6
    mine = olga.get("/", {"of": "mine"})
    assert mine.context["memories"] == 1
    assert "Whose figures" in text_of(mine)


# --- range, agent, fragments -----------------------------------------------------------


def test_range_and_agent_narrow_what_is_shown(agent, olga, remember, now):
    other = make_agent("other", agent.memory_config.backend)
    used(agent, remember, "ming", now)
    used(agent, remember, "ming", now - timedelta(days=20), saves=2)
    used(other, remember, "ming", now, saves=4)

    def saved(**parameters):
        return sums.saved(olga.get("/", parameters).context["whole"])

    assert saved() == saved(days="30") == saved(days="nonsense") == 7
    assert saved(days="7") == 5
    assert saved(agent=agent.name) == 3
    assert saved(agent="other", days="7") == 4


def test_htmx_gets_the_part_that_it_asked_for(agent, olga, remember, now):
    used(agent, remember, "ming", now)

    def part(target):
        return text_of(olga.get("/", headers={"HX-Request": "true", "HX-Target": target})).strip()

    assert part("dash").startswith('<div id="dash">')
    assert part("jobs").startswith("<section")
    assert "<html" not in part("dash") + part("jobs")


def test_the_table_has_the_numbers_of_the_chart(agent, olga, remember, now):
    used(agent, remember, "ming", now, saves=3, recalls=4)
    used(agent, remember, "ming", now - timedelta(days=2), saves=2)

    text = text_of(olga.get("/"))

    rows = re.findall(r'<tr><th scope="row">([^<]+)</th>(.*?)</tr>', text)
    cells = [re.findall(r">([\d–]+)[ %]*</td>", row) for _, row in rows]
    assert cells[0] == ["0", "3", "0", "0", "0", "0", "0", "4", "100"]
    assert cells[2] == ["0", "2", "0", "0", "0", "0", "0", "0", "–"]
    assert text.count('class="f-project"') == 2
    assert 'role="img" aria-label="The last 30 days: 5 memories saved' in text


def test_days_before_anything_was_counted_are_told_apart_from_quiet_ones(
    agent, olga, remember, now
):
    used(agent, remember, "ming", now - timedelta(days=3))

    def since():
        return olga.get("/").context["since"]

    assert since() == counting.day_of(now - timedelta(days=3))
    assert "of the days before nothing is known" in text_of(olga.get("/"))
    used(agent, remember, "ming", now - timedelta(days=100))
    assert since() is None
    assert olga.get("/?days=90").context["since"] is None


# --- tiles -----------------------------------------------------------------------------


def test_the_tiles_say_what_was_counted(agent, olga, remember, now):
    used(agent, remember, "ming", now - timedelta(days=1), saves=4, recalls=8)
    used(agent, remember, "ming", now, saves=2, recalls=3)
    recall(agent, "ming", SearchRequest("kumquat"), now=now)
    recall_counts.flush()
    rows = AgentDay.objects.using(store_alias(agent)).filter(day=counting.day_of(now))
    rows.filter(pk=rows.first().pk).update(took_8=19, took_12=1)

    context = olga.get("/").context

    assert (context["memories"], context["growth"], context["recalls_today"]) == (6, 6, 4)
    assert context["recalls_a_day"] == 8  # counted for one day before today
    assert context["answered"] == 11 / 12
    assert (context["prefetches"], round(context["p95"], 1)) == (20, 16.0)


def test_no_calls_yet_says_what_to_do_next(olga, ming, db):
    assert "Create the first agent" in text_of(olga.get("/"))
    Agent.objects.create_agent("ada", backend="sqlite")
    assert "No agent has called yet" in text_of(olga.get("/"))


def test_whom_nobody_knows_is_told_so(web):
    text = text_of(web.get("/"))

    assert "No agent remembers you yet" in text
    assert "Nothing was saved or recalled" in text


# --- what needs somebody ---------------------------------------------------------------


def call(agent, moment):
    ApiKey.objects.filter(pk=issue_key(agent)[0].pk).update(last_used_at=moment)


def test_nothing_to_look_at_where_all_is_well(agent, olga, remember, now):
    call(agent, now)
    used(agent, remember, "ming", now, recalls=6)

    assert kinds_of(olga.get("/")) == {}
    assert "Stores answer, jobs are done, agents call." in text_of(olga.get("/"))


def test_agents_that_do_not_call_or_call_in_vain_are_named(olga, now):
    never, quiet, off = (make_agent(name, "sqlite") for name in ("never", "quiet", "off"))
    call(quiet, now - timedelta(days=31))
    call(off, now - timedelta(days=1))
    configuring.change(off, {"enabled": False}, actor=None, now=now)
    FormerStore.objects.create(agent_id=off.pk, backend="mysql", sqlite_path="", since=now)
    FormerStore.objects.create(agent_id=never.pk, backend="mysql", sqlite_path="", since=now)
    Job.objects.create(kind="move", state="running", agent_id=never.pk, key="k")
    Job.objects.create(kind="move", state="failed", key="k", finished_at=now)
    Job.objects.create(kind="move", state="failed", key="k", finished_at=now - timedelta(days=8))

    answer = olga.get("/")

    assert kinds_of(answer) == {
        "failed_jobs": [],
        "off_but_called": ["off"],
        "old_copy": ["off"],
        "never_called": ["never"],
        "not_called": ["quiet"],
    }
    assert "1 job failed in the last 7 days" in text_of(answer)
    assert list(kinds_of(olga.get("/", {"agent": "quiet"}))) == ["failed_jobs", "not_called"]


def test_an_agent_that_finds_nothing_any_more_is_named(agent, olga, remember, now):
    call(agent, now)
    used(agent, remember, "ming", now - timedelta(days=4), recalls=1)
    for _ in range(5):
        recall(agent, "ming", SearchRequest("kumquat"), now=now)
    recall_counts.flush()
    assert kinds_of(olga.get("/")) == {"unanswered": [agent.name]}

    used(agent, remember, "ming", now, recalls=1)
    assert kinds_of(olga.get("/")) == {}


def test_people_hear_of_readings_and_of_what_they_paused(agent, web, remember, now):
    used(agent, remember, "ming", now)
    reader = get_user_model().objects.create_user("olga", is_staff=True)
    reason = "Ming asked why it forgot Fridays"
    for moment in (now, now - timedelta(days=8)):
        audit.note_content_read(reader, agent, "ming", reason=reason, now=moment)
    Pause.objects.create(agent=agent, user_id="ming")
    Pause.objects.create(agent=agent, user_id="bob")

    answer = web.get("/")

    assert kinds_of(answer) == {"read": [], "paused": [agent.name]}
    assert "Your memories were read 1 time in the last 7 days" in text_of(answer)


def test_a_store_that_is_silent_is_named_and_the_rest_is_shown(
    ada, grace, olga, remember, now, monkeypatch
):
    used(ada, remember, "ming", now, saves=2)
    used(grace, remember, "ming", now, saves=3)
    real = sums.store_alias

    def alias(agent):
        if agent.memory_config.backend == "mysql":
            raise DatabaseError("gone away")
        return real(agent)

    monkeypatch.setattr(sums, "store_alias", alias)

    answer = olga.get("/")

    assert answer.context["memories"] == 2
    assert "These stores do not answer" in text_of(answer)
    assert "</b> MySQL</div>" in text_of(answer)
    assert "silent_store" in kinds_of(answer)
    assert "These stores do not answer" in text_of(olga.get("/agents/"))


# --- jobs ------------------------------------------------------------------------------


def test_jobs_are_ones_own_and_those_at_work_come_first(web, ming, olga_job):
    running = Job.objects.create(kind="bulk", state="running", key="b", account_id=ming.pk, done=3)
    for number in range(6):
        Job.objects.create(kind="bulk", state="done", key=f"d{number}", account_id=ming.pk)

    answer = web.get("/")

    assert len(answer.context["jobs"]) == 5
    assert answer.context["jobs"][0] == running
    assert olga_job not in answer.context["jobs"]
    assert 'hx-trigger="every 2s"' in text_of(answer)
    Job.objects.all().update(state="done")
    assert "every 2s" not in text_of(web.get("/"))


@pytest.fixture
def olga_job(db):
    return Job.objects.create(kind="move", state="running", key="o", account_id=None)


def test_operators_see_all_jobs_but_what_the_schedule_got_done(olga, olga_job):
    Job.objects.create(kind="expire", state="done", key="expire")
    failed = Job.objects.create(kind="expire", state="failed", key="expire")

    assert olga.get("/").context["jobs"] == [olga_job, failed]


# --- cost ------------------------------------------------------------------------------


def queries_of(client, path, aliases):
    with ExitStack() as stack:
        captured = [stack.enter_context(CaptureQueriesContext(connections[a])) for a in aliases]
        assert client.get(path).status_code == 200
    return sum(map(len, captured))


@pytest.mark.parametrize("path", ["/", "/agents/"])
def test_two_hundred_agents_cost_no_more_queries_than_one(agent, olga, remember, now, path):
    aliases = ["default", store_alias(agent)]
    used(agent, remember, "ming", now)
    of_one = queries_of(olga, path, aliases)

    made = [make_agent(f"agent-{number}", agent.memory_config.backend) for number in range(199)]
    days = (AgentDay(agent_id=each.pk, day=counting.day_of(now), recalls=3) for each in made)
    AgentDay.objects.using(store_alias(agent)).bulk_create(days)

    assert queries_of(olga, path, aliases) == of_one <= 15


def test_ones_own_page_costs_as_much_with_many_agents_as_with_one(agent, web, remember, now):
    aliases = ["default", store_alias(agent)]
    used(agent, remember, "ming", now)
    of_one = queries_of(web, "/", aliases)

    for number in range(20):
        other = make_agent(f"agent-{number}", agent.memory_config.backend)
        used(other, remember, "ming", now)

    assert queries_of(web, "/", aliases) == of_one <= 18
    assert len(web.get("/").context["rows"]) == overview.BUSIEST


def test_every_store_costs_the_same_four_queries(ada, grace, olga, web, remember, now):
    used(ada, remember, "ming", now)
    one = queries_of(olga, "/", ["default", store_alias(ada)])

    used(grace, remember, "ming", now)
    stores = [store_alias(ada), store_alias(grace)]

    assert queries_of(olga, "/", ["default", *stores]) <= one + 4


def test_scopes_of_others_are_not_read_for_ones_own_figures(agent, web, remember, now):
    used(agent, remember, "ming", now)
    used(agent, remember, "bob", now, saves=4)

    with CaptureQueriesContext(connections[store_alias(agent)]) as captured:
        web.get("/")

    of_days = [each["sql"] for each in captured if ScopeDay._meta.db_table in each["sql"]]
    assert of_days
    assert all(" IN (" in sql for sql in of_days)
