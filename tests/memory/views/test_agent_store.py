"""The store of an agent is tried, and changed with its memories or without, and back."""

from contextlib import suppress

import pytest
from django.db import OperationalError

from agents.models import Agent, AuditEntry
from memory import databases
from memory.databases import Place
from memory.errors import HippoError
from memory.models import Job, JobState, Memory
from memory.services import job_kinds, jobs, memories
from memory.services.job_list import seconds_left
from memory.services.moves import moving
from memory.services.moves.trials import try_place
from tests.conftest import MING, NOW
from tests.memory.views.operators import htmx, make_operator

OTHER = "other.db"
ENGLISH = {"accept-language": "en"}


@pytest.fixture(scope="module", autouse=True)
def other_file(django_db_setup, django_db_blocker):
    """Open the other file once: Django's tests allow only databases known before they begin."""
    with django_db_blocker.unblock():
        databases.migrate_store(databases.sqlite_alias(OTHER))


@pytest.fixture
def web(client, db, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    client.force_login(make_operator())
    return client


@pytest.fixture
def target(agent):
    """Where else the agent can keep its memories."""
    return Place("mysql", "") if agent.memory_config.backend == "sqlite" else Place("sqlite", OTHER)


def page_of(agent, part=""):
    return f"/agents/{agent.name}/settings/store/{part}"


def change(web, agent, place, how=""):
    data = {"backend": place.backend, "sqlite_path": place.sqlite_path, "how": how}
    return htmx(web, page_of(agent), data)


def place_of(agent):
    return Place.of(Agent.objects.named(agent.name).memory_config)


def work():
    """Do what waits, as a worker does."""
    job = Job.objects.get(state=JobState.PENDING)
    with suppress(HippoError, OperationalError):
        job_kinds.perform(job.pk)
    job.refresh_from_db()
    return job


def details(action):
    found = AuditEntry.objects.filter(action=action).order_by("pk")
    return list(found.values_list("detail", flat=True))


def contents(agent):
    here = Agent.objects.named(agent.name)
    return sorted(Memory.objects.for_agent(here).values_list("content", flat=True))


# --- trying ------------------------------------------------------------------------------


def test_a_store_that_works_says_how_well_and_where(agent, web):
    backend = agent.memory_config.backend
    text = htmx(web, page_of(agent, "test/"), {"backend": backend}, "get").content.decode()

    assert "pill ok" in text
    assert {"sqlite": "memory.db", "mysql": "MySQL "}[backend] in text
    assert Memory.objects.for_agent(agent).count() == 0


def test_a_store_that_fails_says_why(ada, web, settings, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    settings.MEMORY_DIR = tmp_path / "file"
    monkeypatch.delitem(settings.DATABASES, "mysql")

    for backend, said in (("sqlite", str(tmp_path)), ("mysql", "MYSQL_URL")):
        text = htmx(web, page_of(ada, "test/"), {"backend": backend}, "get").content.decode()
        assert "pill bad" in text
        assert said in text


def test_mysql_that_is_not_configured_cannot_be_chosen(ada, web, settings, monkeypatch):
    monkeypatch.delitem(settings.DATABASES, "mysql")

    shown = web.get("/agents/ada/settings/", headers=ENGLISH)
    refused = change(web, ada, Place("mysql", ""))

    [mysql, sqlite] = shown.context["store"]["options"]
    assert "set MYSQL_URL" in mysql["missing"]
    assert not sqlite["missing"]
    assert refused.status_code == 422
    assert "MYSQL_URL" in refused.context["store"]["refusal"]


def test_trying_makes_no_file(ada, settings, tmp_path):
    settings.MEMORY_DIR = tmp_path / "memory"

    trial = try_place(Place("sqlite", "unheard-of.db"))

    assert (trial.obstacle, trial.size_bytes) == ("", None)
    assert not (tmp_path / "memory").exists()


def test_without_scripts_the_page_shows_the_tests(ada, web):
    text = web.get("/agents/ada/settings/?test=1", headers=ENGLISH).content.decode()

    assert text.count("pill ok") >= 3  # memory on, and both backends


# --- changing ----------------------------------------------------------------------------


def test_an_agent_without_memories_just_changes(agent, web, target):
    source = place_of(agent)

    answer = change(web, agent, target)

    assert answer.status_code == 200
    assert answer.context["store"]["is_saved"]
    assert place_of(agent) == target
    assert details("store_changed") == [f"{source} → {target}"]


def test_the_present_store_is_no_change(ada, web):
    answer = change(web, ada, Place("sqlite", "memory.db"))

    assert (answer.status_code, answer.context["store"]["is_saved"]) == (200, False)
    assert details("store_changed") == []


def test_an_agent_with_memories_is_shown_the_choices(agent, web, target, remember):
    for user_id in ("ming", "bob"):
        remember(agent, user_id, "tea")
    memories.trash(agent, "bob", remember(agent, "bob", "milk").pk, actor=MING, now=NOW)

    fragment = change(web, agent, target)
    page = web.post(page_of(agent), {"backend": target.backend, "sqlite_path": target.sqlite_path})

    assert fragment.status_code == page.status_code == 409
    plan = page.context["store"]["plan"]
    assert (plan.memories, plan.users, plan.there, plan.state) == (3, 2, 0, "")
    assert (plan.free_bytes is None) == (target.backend == "mysql")
    assert plan.can_move
    assert plan.can_enter
    text = page.content.decode()
    assert 'value="move"' in text
    assert 'value="fresh"' in text
    assert place_of(agent) != target
    assert not Job.objects.exists()


def test_a_bad_file_name_is_said_beside_its_field(ada, web):
    for path in ("../x.db", "x.txt", "a/b.db"):
        answer = change(web, ada, Place("sqlite", path))
        assert answer.status_code == 422
        assert answer.context["store"]["path_error"]
        assert f'value="{path}"' in answer.content.decode()


def test_memories_are_moved_there_and_back_and_the_old_copy_erased(agent, web, target, remember):
    source = place_of(agent)
    for number in range(3):
        remember(agent, "ming", f"tea {number}")

    started = change(web, agent, target, "move")
    polled = htmx(web, page_of(agent, "move/"), method="get")
    job = work()
    ended = htmx(web, page_of(agent, "move/"), method="get")

    assert (started.status_code, job.account_id) == (200, started.wsgi_request.user.pk)
    assert "every 2s" in polled.content.decode()
    assert "HX-Retarget" not in polled.headers
    assert ended.headers["HX-Retarget"] == "#store"
    text = ended.content.decode()
    assert job.result["checksum"] in text
    assert job.result["memories"] == 3
    assert place_of(agent) == target
    [former] = ended.context["store"]["former"]
    assert (former["place"], former["count"], former["state"]) == (source, 3, "moved")

    moved = Agent.objects.named(agent.name)
    remember(moved, "ming", "tea 3")
    change(web, moved, source, "move")
    assert work().result["memories"] == 4
    assert contents(agent) == [f"tea {number}" for number in range(4)]
    assert details("store_changed") == [f"{source} → {target}", f"{target} → {source}"]
    assert set(AuditEntry.objects.values_list("actor_name", flat=True)) == {"opal"}

    wrong = htmx(web, page_of(agent, "copies/"), {"confirm": "x"})
    right = htmx(web, page_of(agent, "copies/"), {"confirm": agent.name})
    assert (wrong.status_code, right.status_code) == (422, 200)
    assert right.context["store"]["erased"] == 4
    assert right.context["store"]["former"] == []
    assert details("copy_erased") == [str(target)]
    assert len(contents(agent)) == 4


def test_starting_fresh_leaves_memories_that_the_way_back_finds(agent, web, target, remember):
    source = place_of(agent)
    remember(agent, "ming", "tea")

    fresh = change(web, agent, target, "fresh")
    [left] = fresh.context["store"]["former"]
    back = change(web, agent, source)

    assert (left["place"], left["count"], left["state"]) == (source, 1, "left")
    assert back.status_code == 200
    assert place_of(agent) == source
    assert contents(agent) == ["tea"]


def test_a_copy_that_would_overwrite_others_is_refused_in_words(agent, web, target, remember):
    remember(agent, "ming", "tea")
    source = place_of(agent)
    change(web, agent, target, "fresh")
    remember(Agent.objects.named(agent.name), "ming", "milk")

    offered = change(web, agent, source)
    refused = change(web, agent, source, "move")

    for answer in (offered, refused):
        assert answer.status_code == 409
        plan = answer.context["store"]["plan"]
        assert (plan.can_move, plan.can_enter, plan.there) == (False, True, 1)
    assert str(source) in refused.context["store"]["refusal"]
    assert "move_memories" not in refused.content.decode()
    assert contents(agent) == ["milk"]


def test_an_old_copy_is_brought_up_to_date_and_not_entered(agent, web, target, remember):
    source = place_of(agent)
    remember(agent, "ming", "tea")
    change(web, agent, target, "move")
    work()

    refused = change(web, agent, source, "fresh")

    plan = refused.context["store"]["plan"]
    assert refused.status_code == 409
    assert (plan.state, plan.can_move, plan.can_enter) == ("moved", True, False)
    assert place_of(agent) == target


def test_a_move_is_cancelled_and_on_record(agent, web, target, remember):
    remember(agent, "ming", "tea")
    change(web, agent, target, "move")

    other = change(web, agent, Place("sqlite", "third.db"), "fresh")
    cancelled = htmx(web, page_of(agent, "move/"))

    assert other.status_code == 409
    assert other.context["store"]["refusal"]
    assert cancelled.context["store"]["ended"].state == "cancelled"
    assert len(details("job_cancelled")) == 1
    assert place_of(agent) != target


def test_a_move_that_fails_says_so_and_can_be_tried_again(ada, web, remember, monkeypatch):
    remember(ada, "ming", "tea")
    change(web, ada, Place("mysql", ""), "move")
    monkeypatch.setattr(moving, "_copy", lambda copy: 1 / 0)
    with suppress(ZeroDivisionError):
        job_kinds.perform(Job.objects.get().pk)

    shown = web.get("/agents/ada/settings/")

    assert shown.context["store"]["ended"].state == "failed"
    assert "ZeroDivisionError" in shown.content.decode()
    monkeypatch.undo()
    assert change(web, ada, Place("mysql", ""), "move").status_code == 200
    assert work().state == "done"


def test_old_copies_are_not_erased_while_a_move_is_at_work(agent, web, target, remember):
    remember(agent, "ming", "tea")
    change(web, agent, target, "move")

    answer = htmx(web, page_of(agent, "copies/"), {"confirm": agent.name})

    assert answer.status_code == 409
    assert contents(agent) == ["tea"]


def test_the_steps_and_the_time_left_are_told():
    job = Job(kind="move", state="running", done=50, total=200)
    job.log = [[NOW.isoformat(), "copying", 0, None]]

    def left(seconds):
        return seconds_left(job, now=NOW.replace(second=seconds))

    assert (left(3), left(10)) == (None, 30)
    job.done = 0
    assert left(10) is None
    assert jobs.progress(job) == "0/200"
