"""The command that moves an agent's memories: what it prints, and how it fails."""

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from agents.models import Agent
from memory import databases
from memory.databases import store_alias
from memory.models import Job
from memory.services import job_kinds, jobs, memories
from memory.services.moves import agreement, moving
from tests.conftest import NOW
from tests.memory.installation import crew

OTHER = "sqlite:other.db"


@pytest.fixture(scope="module", autouse=True)
def other_file(django_db_setup, django_db_blocker):
    """Open the other file once: Django's tests allow only databases known before they begin."""
    with django_db_blocker.unblock():
        databases.migrate_store(OTHER)


@pytest.fixture
def run(capsys):
    def call(*arguments):
        call_command("move_memories", *arguments)
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return call


@pytest.fixture
def refused(capsys):
    """Run the command, which must fail; return its one line."""

    def call(*arguments):
        with pytest.raises(CommandError) as caught:
            call_command("move_memories", *arguments)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return call


def alias_of(agent):
    return store_alias(Agent.objects.named(agent.name))


def test_move_prints_numbers_checksum_and_the_next_step(agent, remember, run):
    remember(agent, "ming", "tea")
    remember(agent, "bob", "coffee")

    out = run(agent.name, "--to", "sqlite", "--file", "other.db")

    assert f"{agent.name}: 2 memories of 2 users moved to other.db" in out
    assert Job.objects.get().result["checksum"] in out
    assert f"move_memories {agent.name} --confirm" in out
    assert alias_of(agent) == OTHER


def test_confirm_prints_what_it_erases(ada, remember, run):
    remember(ada, "ming", "tea")
    run("ada", "--to", "mysql")

    out = run("ada", "--confirm")

    assert "sqlite:memory.db: 1 memories, old copy" in out
    assert "ada: 1 memories erased" in out
    assert "ada: 0 memories erased" in run("ada", "--confirm")


def test_leave_begins_with_what_the_other_store_holds(ada, remember, run):
    remember(ada, "ming", "tea")

    out = run("ada", "--to", "mysql", "--leave")

    assert "1 memories stay in sqlite:memory.db" in out
    assert alias_of(ada) == "mysql"
    assert list(memories.walk(Agent.objects.named("ada"))) == []


def test_file_is_the_one_that_the_agent_last_had(ada, remember, run):
    remember(ada, "ming", "tea")
    run("ada", "--to", "sqlite", "--file", "other.db")
    run("ada", "--to", "mysql")

    run("ada", "--to", "sqlite")

    assert alias_of(ada) == OTHER


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody", "--to", "mysql"], "create_agent|There are: ada"),
        (["ada"], "--to"),
        (["ada", "--to", "mysql", "--confirm"], "either"),
        (["ada", "--to", "mysql", "--file", "x.db"], "--file"),
        (["ada", "--confirm", "--leave"], "--leave"),
        (["ada", "--to", "sqlite"], "memory.db already"),
        (["ada", "--to", "sqlite", "--file", "../x.db"], "sqlite_path"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(ada, refused, arguments, words):
    error = refused(*arguments)

    assert any(word in error for word in words.split("|"))
    assert not Job.objects.exists()


def test_failure_that_may_pass_says_who_tries_again(ada, remember, refused, run, monkeypatch):
    remember(ada, "ming", "tea")

    def fail(*_):
        raise OperationalError("the server has gone away")

    with monkeypatch.context() as patch:
        patch.setattr(agreement, "tally", fail)
        error = refused("ada", "--to", "mysql")

    assert "gone away" in error
    assert "tries again" in error
    assert alias_of(ada) != "mysql"
    assert "1 memories" in run("ada", "--to", "mysql")
    assert alias_of(ada) == "mysql"


def test_cancelled_move_says_so(ada, remember, refused, monkeypatch):
    remember(ada, "ming", "tea")
    original = agreement.tally

    def cancel(*arguments):
        jobs.cancel(Job.objects.get().pk, now=NOW)
        return original(*arguments)

    monkeypatch.setattr(agreement, "tally", cancel)

    assert "cancelled" in refused("ada", "--to", "mysql")
    assert alias_of(ada) != "mysql"


def test_move_that_another_run_has_is_followed(ada, remember, run, monkeypatch):
    remember(ada, "ming", "tea")
    moving.enqueue(ada, backend="mysql", sqlite_path="", now=NOW)
    perform, calls = job_kinds.perform, []

    def slowly(job_id):
        calls.append(job_id)
        if len(calls) == 3:  # as the other run would
            perform(job_id)

    monkeypatch.setattr(job_kinds, "perform", slowly)

    assert "1 memories" in run("ada", "--to", "mysql")


def test_command_finishes_the_move_of_a_killed_process(installation):
    installation.run("create_agents", agents={"late": ["sqlite", ""]})
    with installation.start(
        "save_batches", agent="late", user_id="ming", count=5, size=20
    ) as process:
        process.rest()
    start = installation.start("move", agent="late", backend="mysql", die_at=55)
    with crew([start]) as [mover]:
        mover.go()
        assert "Traceback" not in mover.errors()  # it is dead by now
    assert installation.run("try_agents", agents=["late"])["late"][0] == "StoreNotOpen"
    installation.run("silence", agent="late")

    status, out = installation.manage("move_memories", "late", "--to", "mysql")

    assert status == 0, out
    assert "late: 100 memories of 1 users moved to MySQL" in out
    status, out = installation.manage("check_memory", "late")
    assert status == 0, out


def test_move_to_the_present_file_by_another_name_is_refused(installation):
    installation.run("live", agent="ada", user_id="of the link")
    (installation.memory_dir / "link.db").symlink_to("memory.db")

    status, out = installation.manage("move_memories", "ada", "--to", "sqlite", "--file", "link.db")

    assert status == 1
    assert "already; name another store" in out
