"""The operator's door to the jobs: what it lists, and what it refuses in which words."""

import time
from datetime import timedelta

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils.translation import override

from memory.models import Job, JobState
from memory.services import job_kinds, jobs
from tests.conftest import NOW, make_agent

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def run(capsys):
    """Run the command; return what it printed to stdout, and nothing may be on stderr."""

    def call(*arguments):
        call_command("jobs", *map(str, arguments))
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return call


@pytest.fixture
def refused(capsys):
    """Run the command, which must fail; return its error, with nothing on stdout."""

    def call(*arguments):
        with pytest.raises(CommandError) as caught:
            call_command("jobs", *map(str, arguments))
        assert capsys.readouterr().out == ""
        return str(caught.value)

    return call


@pytest.fixture
def job():
    return jobs.enqueue("expire", now=NOW)


def fail(job, error="OperationalError: gone"):
    jobs.claim(job.pk, now=NOW).fail(error, is_final=True)


def words(text):
    return [line.split() for line in text.splitlines()]


# --- the list --------------------------------------------------------------------------


def test_without_jobs_it_says_so(run):
    assert run() == "No jobs.\n"


def test_a_job_is_listed_with_all_that_an_operator_asks(run):
    job = jobs.enqueue("reindex", {"agent_id": 1}, now=NOW - timedelta(hours=3))
    held = jobs.claim(job.pk, now=NOW)
    held.report(step="ada", done=120, total=500)
    waiting = jobs.enqueue("purge_trash", now=NOW)
    failed = jobs.enqueue("expire", now=NOW - timedelta(days=2))
    fail(failed, error="Incomplete: grace:\n  MySQL is gone")

    head, *rows = words(run())

    assert head == ["ID", "KIND", "STATE", "PROGRESS", "ATTEMPTS", "AGE", "STEP"]
    assert rows == [
        [str(failed.pk), "expire", "failed", "0", "1", "2", "days"],
        ["Incomplete:", "grace:", "MySQL", "is", "gone"],
        [str(waiting.pk), "purge_trash", "pending", "0", "0", "0", "minutes"],
        [str(job.pk), "reindex", "running", "120/500", "1", "3", "hours", "ada"],
    ]


def test_it_speaks_english_whatever_the_language(run, job):
    with override("zh-hans"):
        listed = run()

    assert "0 minutes" in listed


def test_the_newest_are_listed_and_all_if_asked(run):
    ids = [jobs.enqueue("expire", key=str(number), now=NOW).pk for number in range(25)]

    newest, every = words(run())[1:], words(run("--all"))[1:]

    assert [int(row[0]) for row in newest] == ids[:4:-1]
    assert [int(row[0]) for row in every] == ids[::-1]


def test_a_list_can_be_of_one_state(run, job):
    fail(job)
    waiting = jobs.enqueue("purge_trash", now=NOW)

    assert [row[0] for row in words(run("--state", "pending"))[1:]] == [str(waiting.pk)]
    assert words(run("--state", "failed"))[1][0] == str(job.pk)
    assert run("--state", "cancelled", "--all") == "No jobs.\n"


def test_a_list_costs_one_query(run, django_assert_num_queries):
    for number in range(10):
        jobs.enqueue("expire", key=str(number), now=NOW)

    with django_assert_num_queries(1):
        run()


# --- cancel, retry, run ----------------------------------------------------------------


def test_a_waiting_job_is_cancelled(run, job):
    assert run("--cancel", job.pk) == f"Job {job.pk} (expire) is cancelled.\n"

    assert Job.objects.get().state == JobState.CANCELLED


def test_a_running_job_is_asked_to_end(run, job):
    jobs.claim(job.pk, now=NOW)

    said = run("--cancel", job.pk)

    assert said == f"Job {job.pk} (expire) is running and ends at its next chunk.\n"
    assert Job.objects.get().is_cancel_requested


def test_a_failed_job_goes_on(run, job):
    fail(job)

    assert run("--retry", job.pk) == f"Job {job.pk} (expire) is pending.\n"

    assert Job.objects.get().state == JobState.PENDING


@pytest.mark.parametrize("kind", job_kinds.WITHOUT_PAYLOAD)
def test_a_kind_is_started_and_not_twice(run, kind):
    said = [run("--run", kind) for _ in range(2)]

    job = Job.objects.get()
    assert said == [f"Job {job.pk} ({kind}) is pending.\n"] * 2
    assert (job.kind, job.payload) == (kind, {})


def test_a_reindex_is_started_for_an_agent(run):
    ada, eve = make_agent("ada", "sqlite"), make_agent("eve", "sqlite")

    for agent in ("ada", "eve", "ada"):
        run("--run", "reindex", "--agent", agent)

    payloads = list(Job.objects.order_by("pk").values_list("payload", flat=True))
    assert payloads == [{"agent_id": ada.pk}, {"agent_id": eve.pk}]


# --- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--cancel", "987654"], "There is no job 987654; list the jobs to find its number."),
        (["--cancel", "0"], "There is no job 0"),
        (["--retry", "987654"], "There is no job 987654"),
        (["--run", "dance"], "No kind dance is started here; there are: expire, purge_trash, "),
        (["--run", ""], "No kind  is started here"),
        (["--run", "reindex"], "--run reindex --agent NAME"),
        (["--run", "reindex", "--agent", "nobody"], "There is no agent nobody."),
        (["--run", "expire", "--agent", "ada"], "--agent goes with --run reindex only"),
        (["--agent", "ada"], "--agent goes with --run reindex only"),
        (["--cancel", "one"], "invalid int value"),
        (["--state", "tired"], "invalid choice"),
        (["--cancel", "1", "--retry", "1"], "not allowed with"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_changed(refused, arguments, problem):
    assert problem in refused(*arguments)

    assert not Job.objects.exists()


def test_a_number_past_all_numbers_is_unknown(refused):
    assert "There is no job" in refused("--cancel", 2**70)


@pytest.mark.parametrize("option", ["--cancel", "--retry"])
def test_a_job_that_is_done_stays_done(refused, job, option):
    jobs.claim(job.pk, now=NOW).finish({})

    assert f"Job {job.pk} is done" in refused(option, job.pk)

    assert Job.objects.get().state == JobState.DONE


def test_a_broker_that_is_down_does_not_hold_the_operator_up(run, monkeypatch, transactional_db):
    monkeypatch.setenv("CELERY_BROKER_WRITE_URL", "redis://127.0.0.1:1/0")
    began = time.perf_counter()

    call_command("jobs", "--run", "expire")

    assert time.perf_counter() - began < 3
    assert Job.objects.get().state == JobState.PENDING
