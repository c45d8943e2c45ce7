"""A job's life: it waits once, is one run's at a time, and ends once, whatever fails."""

import threading
import time
from datetime import datetime, timedelta

import pytest
import time_machine
from django.db import OperationalError, connections, transaction
from django.db.models import QuerySet
from django.utils import timezone

from config.celery import app
from memory.errors import JobNotEnded, StoreNotOpen, UnknownJob
from memory.models import Job, JobState
from memory.services import job_kinds, job_list, jobs
from memory.services.jobs import JobCancelled, JobLost
from tests.conftest import NOW

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)
LATER = NOW + jobs.SILENCE + SECOND


@pytest.fixture(autouse=True)
def clock():
    """Stop the clock at NOW; a test may move it."""
    with time_machine.travel(NOW, tick=False) as moved:
        yield moved


@pytest.fixture(autouse=True)
def sent():
    """Return the jobs that workers were told of since the last call, taken off the queue."""

    def take():
        with app.connection_for_write(transport_options={"max_retries": 0}) as connection:
            queue = connection.SimpleQueue("celery", no_ack=True)
            ids = []
            while True:
                try:
                    ids.append(queue.get(block=False).payload[0][0])
                except queue.Empty:
                    return ids

    take()
    return take


@pytest.fixture
def kind(monkeypatch):
    """Make up a kind of job: kind(work) names it "tea"."""

    def make_up(work):
        monkeypatch.setitem(job_kinds.KINDS, "tea", work)
        return "tea"

    return make_up


@pytest.fixture
def job():
    return jobs.enqueue("expire", now=NOW)


def row(job):
    return Job.objects.get(pk=job.pk)


def values_of(job):
    return Job.objects.filter(pk=job.pk).values().get()


def at_once(count, work):
    """Do `work` in threads at once and return what each came to."""
    barrier, outcome = threading.Barrier(count), []

    def do():
        try:
            barrier.wait()
            outcome.append(work())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=do) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcome) == count
    return outcome


def end(job, state):
    """Bring a waiting job to `state`, by the doors that there are."""
    if state == JobState.CANCELLED:
        jobs.cancel(job.pk, now=NOW)
    elif state != JobState.PENDING:
        run = jobs.claim(job.pk, now=NOW)
        if state == JobState.DONE:
            run.finish({"trashed": 1})
        elif state == JobState.FAILED:
            run.fail("The disk is full.", is_final=True)
    assert row(job).state == state


# --- enqueue ---------------------------------------------------------------------------


def test_a_job_waits_with_what_it_was_given(sent):
    job = jobs.enqueue("reindex", {"agent_id": 2**60, "名": "支付"}, key="reindex 1", now=NOW)

    job = row(job)
    assert (job.kind, job.key, job.active_key) == ("reindex", "reindex 1", "reindex 1")
    assert job.payload == {"agent_id": 2**60, "名": "支付"}
    assert (job.state, job.attempts, job.done, job.total) == (JobState.PENDING, 0, 0, None)
    assert job.created_at == job.heartbeat_at == NOW
    assert sent() == [job.pk]


def test_a_job_is_sent_when_it_is_committed_and_no_sooner(sent):
    with transaction.atomic():
        job = jobs.enqueue("expire", now=NOW)
        before = sent()

    assert before == []
    assert sent() == [job.pk]


def test_a_job_that_is_rolled_back_is_neither_there_nor_sent(sent):
    with transaction.atomic():
        jobs.enqueue("expire", now=NOW)
        transaction.set_rollback(True)

    assert not Job.objects.exists()
    assert sent() == []


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING])
def test_work_that_waits_or_runs_is_not_enqueued_again(job, sent, state):
    end(job, state)
    sent()

    again = jobs.enqueue("expire", {"other": 1}, now=LATER)

    assert again.pk == job.pk
    assert Job.objects.count() == 1
    assert sent() == []


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.CANCELLED])
def test_work_that_has_ended_is_enqueued_anew(job, state):
    end(job, state)

    again = jobs.enqueue("expire", now=LATER)

    assert again.pk != job.pk
    assert [each.state for each in Job.objects.order_by("pk")] == [state, JobState.PENDING]


def test_work_is_told_apart_by_its_exact_key():
    keys = ["reindex 1", "reindex 11", "Reindex 1", "reindex 1 "]

    ids = {jobs.enqueue("reindex", key=key, now=NOW).pk for key in keys}

    assert len(ids) == len(keys)


def test_work_enqueued_by_many_at_once_is_one_job(sent):
    found = at_once(8, lambda: jobs.enqueue("expire", now=NOW).pk)

    assert found == [Job.objects.get().pk] * 8
    assert sent() == found[:1]


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("redis://127.0.0.1:1/0", {}),
        ("amqp://guest@127.0.0.1:1//", {}),
        ("filesystem://localhost", {"data_folder_out": "/nowhere"}),
    ],
    ids=["redis", "amqp", "filesystem"],
)
def test_a_broker_that_is_down_holds_nobody_up_and_the_job_is_sent_later(sent, url, options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CELERY_BROKER_WRITE_URL", url)
        for name, value in options.items():
            patch.setitem(app.conf.broker_transport_options, name, value)
        began = time.perf_counter()
        job = jobs.enqueue("expire", now=NOW)
        seconds = time.perf_counter() - began

    assert row(job).state == JobState.PENDING
    assert seconds < 2
    assert sent() == []
    assert jobs.reap(now=LATER) == [job.pk]
    assert sent() == [job.pk]


# --- claim -----------------------------------------------------------------------------


def test_a_job_is_claimed_by_one_of_many(job):
    runs = at_once(8, lambda: jobs.claim(job.pk, now=LATER))

    (run,) = filter(None, runs)
    job = row(job)
    assert run.job.claim == job.claim != ""
    assert (job.state, job.attempts) == (JobState.RUNNING, 1)
    assert job.started_at == job.heartbeat_at == LATER


@pytest.mark.parametrize("state", [state for state in JobState if state != JobState.PENDING])
def test_a_job_that_does_not_wait_is_not_claimed(job, state):
    end(job, state)
    before = values_of(job)

    assert jobs.claim(job.pk, now=LATER) is None
    job_kinds.perform(job.pk)

    assert values_of(job) == before


def test_a_job_that_is_not_there_is_not_claimed():
    assert jobs.claim(987_654, now=NOW) is None
    job_kinds.perform(987_654)


def test_a_second_run_keeps_the_time_of_the_first(job):
    jobs.claim(job.pk, now=NOW)
    jobs.reap(now=LATER)

    run = jobs.claim(job.pk, now=LATER)

    assert (run.job.attempts, run.job.started_at, run.job.heartbeat_at) == (2, NOW, LATER)


# --- a run that lost its job -----------------------------------------------------------


def reaped(job):
    jobs.reap(now=LATER)


def taken_by_another(job):
    jobs.reap(now=LATER)
    jobs.claim(job.pk, now=LATER).report(step="ada", done=7)


def done_by_another(job):
    jobs.reap(now=LATER)
    jobs.claim(job.pk, now=LATER).finish({"trashed": 7})


def cancelled_by_the_reaper(job):
    jobs.cancel(job.pk, now=NOW)
    jobs.reap(now=LATER)


LOSSES = [reaped, taken_by_another, done_by_another, cancelled_by_the_reaper]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_run_that_lost_its_job_writes_nothing_more(job, lose):
    run = jobs.claim(job.pk, now=NOW)
    lose(job)
    before = values_of(job)

    with pytest.raises(JobLost):
        run.report(step="grace", done=3)
    with pytest.raises(JobLost):
        run.advance(1)
    with pytest.raises(JobLost), run.beating():
        pass
    assert not run.finish({"trashed": 3})
    assert not run.cancelled()
    run.fail("too late", is_final=False)
    run.fail("too late", is_final=True)

    assert values_of(job) == before


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("does_report", [True, False])
def test_work_that_lost_its_job_ends_quietly(kind, lose, does_report):
    def work(run, *, now):
        lose(run.job)
        before.append(values_of(run.job))
        if does_report:
            run.advance(1)
        return {"cups": 1}

    before = []
    job = jobs.enqueue(kind(work), now=NOW)

    job_kinds.perform(job.pk)

    assert [values_of(job)] == before


def test_the_error_of_a_run_that_lost_its_job_is_not_noted(kind):
    def work(run, *, now):
        done_by_another(run.job)
        raise ValueError("too late")

    job = jobs.enqueue(kind(work), now=NOW)

    with pytest.raises(ValueError, match="too late"):
        job_kinds.perform(job.pk)

    assert (row(job).state, row(job).error) == (JobState.DONE, "")


# --- the end ---------------------------------------------------------------------------


def test_a_job_that_is_done_keeps_its_result_and_lets_its_key_go(kind, clock):
    def work(run, *, now):
        clock.shift(5)
        run.report(step="brewing", total=2)
        run.advance(2)
        return {"cups": now.isoformat()}

    job = jobs.enqueue(kind(work), now=NOW)

    job_kinds.perform(job.pk)

    job = row(job)
    assert (job.state, job.result) == (JobState.DONE, {"cups": NOW.isoformat()})
    assert (job.step, job.done, job.total) == ("brewing", 2, 2)
    assert (job.active_key, job.claim, job.error) == (None, "", "")
    assert job.finished_at == job.heartbeat_at == NOW + 5 * SECOND


@pytest.mark.parametrize("error", [OperationalError("gone"), StoreNotOpen("shut"), OSError("full")])
def test_an_error_that_may_pass_is_noted_and_tried_again_until_it_has_failed(
    kind, sent, clock, error
):
    def work(run, *, now):
        clock.shift(600)  # one long statement
        raise error

    job = jobs.enqueue(kind(work), now=NOW)
    for attempt in range(1, jobs.MAX_ATTEMPTS):
        sent()
        with pytest.raises(type(error)):
            job_kinds.perform(job.pk)

        now = timezone.now()
        waits = row(job)
        assert (waits.state, waits.attempts, waits.claim) == (JobState.PENDING, attempt, "")
        assert waits.error == f"{type(error).__name__}: {error}"
        assert jobs.enqueue("tea", now=now).pk == job.pk
        assert jobs.reap(now=now + jobs.SILENCE) == []
        assert jobs.reap(now=now + jobs.SILENCE + SECOND) == [job.pk] == sent()
    with pytest.raises(type(error)):
        job_kinds.perform(job.pk)

    failed = row(job)
    assert (failed.state, failed.attempts) == (JobState.FAILED, jobs.MAX_ATTEMPTS)
    assert (failed.active_key, failed.finished_at) == (None, timezone.now())
    assert str(error) in failed.error
    assert jobs.reap(now=timezone.now() + timedelta(days=1)) == []


def test_an_error_that_passed_is_not_shown_of_a_job_that_is_done(kind):
    def work(run, *, now):
        if run.job.attempts == 1:
            raise OperationalError("gone")
        return {"cups": 1}

    job = jobs.enqueue(kind(work), now=NOW)
    with pytest.raises(OperationalError):
        job_kinds.perform(job.pk)

    job_kinds.perform(job.pk)

    assert (row(job).state, row(job).error, row(job).attempts) == (JobState.DONE, "", 2)


def test_a_fault_of_the_program_fails_at_once(kind):
    def work(run, *, now):
        return {"cups": 1 / 0}

    job = jobs.enqueue(kind(work), now=NOW)

    with pytest.raises(ZeroDivisionError):
        job_kinds.perform(job.pk)

    job = row(job)
    assert (job.state, job.attempts, job.active_key) == (JobState.FAILED, 1, None)
    assert job.error == "ZeroDivisionError: division by zero"


def test_a_kind_that_nobody_knows_fails_with_words_and_is_not_sent_again(sent):
    job = jobs.enqueue("dance", now=NOW)
    sent()

    with pytest.raises(job_kinds.UnknownKind):
        job_kinds.perform(job.pk)

    job = row(job)
    assert job.state == JobState.FAILED
    assert "no jobs of kind dance" in job.error
    assert "purge_trash" in job.error
    assert jobs.reap(now=LATER) == [] == sent()


# --- progress --------------------------------------------------------------------------


def test_a_report_is_a_sign_of_life(job, clock):
    run = jobs.claim(job.pk, now=NOW)
    clock.shift(jobs.SILENCE)
    run.report()

    assert row(job).heartbeat_at == NOW + jobs.SILENCE
    assert jobs.reap(now=LATER) == []


def test_progress_never_runs_above_its_total(job):
    run = jobs.claim(job.pk, now=NOW)
    run.report(total=3)
    seen = []
    for _ in range(3):
        run.advance(2)
        seen.append((row(job).done, row(job).total))

    assert seen == [(2, 3), (4, 4), (6, 6)]


def test_progress_without_a_total_counts(job):
    run = jobs.claim(job.pk, now=NOW)
    run.advance(2)

    assert (row(job).done, row(job).total) == (2, None)
    assert jobs.progress(row(job)) == "2"
    run.report(total=5)
    assert jobs.progress(row(job)) == "2/5"


def test_a_run_counts_on_from_the_checkpoint_of_the_one_that_died(kind):
    def work(run, *, now):
        seen.append((run.job.checkpoint, run.job.done))
        run.report(total=4)
        run.advance(2)
        run.report(checkpoint={"cup": 2, "done": run.job.done})
        run.advance(1)
        if run.job.attempts == 1:
            raise SystemExit  # a worker that is shut down
        return {}

    seen = []
    job = jobs.enqueue(kind(work), now=NOW)
    with pytest.raises(SystemExit):
        job_kinds.perform(job.pk)
    died = row(job)
    jobs.reap(now=LATER)

    job_kinds.perform(job.pk)

    assert (died.state, died.done) == (JobState.RUNNING, 3)
    assert seen == [({}, 0), ({"cup": 2, "done": 2}, 2)]
    assert (row(job).state, row(job).done, row(job).total) == (JobState.DONE, 5, 5)


def wait_until(is_so):
    for _ in range(2_000):  # the clock stands
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("It has not come to that.")


def test_a_long_statement_gives_signs_of_life(job, clock, monkeypatch):
    monkeypatch.setattr(jobs, "_BEAT_SECONDS", 0.01)
    run = jobs.claim(job.pk, now=NOW)
    threads = {*threading.enumerate()}
    with run.beating():
        for minutes in (3, 6):
            now = NOW + timedelta(minutes=minutes)
            clock.move_to(now)
            wait_until(lambda now=now: row(job).heartbeat_at == now)
        reaped = jobs.reap(now=timezone.now() + jobs.SILENCE)
    left = {*threading.enumerate()} - threads
    after = row(job).heartbeat_at
    clock.shift(60)
    time.sleep(0.05)

    assert reaped == []
    assert left == set()
    assert row(job).heartbeat_at == after


def test_a_chunk_that_takes_long_is_not_taken_for_a_dead_worker(kind, clock, monkeypatch):
    def work(run, *, now):
        clock.shift(300)
        wait_until(lambda: row(run.job).heartbeat_at == timezone.now())
        seen.append(jobs.reap(now=timezone.now() + jobs.SILENCE))
        return {}

    monkeypatch.setattr(jobs, "_BEAT_SECONDS", 0.01)
    seen = []
    job = jobs.enqueue(kind(work), now=NOW)
    threads = {*threading.enumerate()}

    job_kinds.perform(job.pk)

    assert seen == [[]]
    assert (row(job).state, row(job).attempts) == (JobState.DONE, 1)
    assert {*threading.enumerate()} <= threads  # those of other tests may have ended


def test_a_chunk_that_never_ends_is(kind, clock, monkeypatch):
    def work(run, *, now):
        monkeypatch.setattr(jobs, "_STUCK_SECONDS", -1)
        clock.shift(300)
        time.sleep(0.1)
        seen.append(row(run.job).heartbeat_at)
        return {}

    monkeypatch.setattr(jobs, "_BEAT_SECONDS", 0.01)
    seen = []
    job = jobs.enqueue(kind(work), now=NOW)

    job_kinds.perform(job.pk)

    assert seen[0] < NOW + timedelta(seconds=300)


def test_a_sign_of_life_that_fails_is_followed_by_the_next(job, clock, monkeypatch):
    class Failing:
        """The run's rows, where the first writes fail."""

        def __init__(self, rows):
            self.rows, self.failures = rows, 3

        def update(self, **values):
            if self.failures:
                self.failures -= 1
                raise OperationalError("database is locked")
            return self.rows.update(**values)

    monkeypatch.setattr(jobs, "_BEAT_SECONDS", 0.01)
    run = jobs.claim(job.pk, now=NOW)
    rows = run._mine
    clock.shift(180)
    run._mine = Failing(rows)
    with run.beating():
        wait_until(lambda: row(job).heartbeat_at == timezone.now())
        run._mine = rows

    assert run.finish({})


def test_an_error_in_a_long_statement_is_its_own(job):
    run = jobs.claim(job.pk, now=NOW)
    threads = {*threading.enumerate()}
    with pytest.raises(ZeroDivisionError), run.beating():
        1 / 0  # noqa: B018

    assert {*threading.enumerate()} <= threads  # those of other tests may have ended


def test_a_long_statement_that_was_cancelled_ends_the_run_after_it(job):
    run = jobs.claim(job.pk, now=NOW)
    with pytest.raises(JobCancelled), run.beating():
        jobs.cancel(job.pk, now=NOW)


# --- cancel ----------------------------------------------------------------------------


def test_a_waiting_job_is_cancelled_at_once(job, clock):
    cancelled = jobs.cancel(job.pk, now=LATER)
    job_kinds.perform(job.pk)

    job = row(job)
    assert cancelled.state == job.state == JobState.CANCELLED
    assert (job.active_key, job.finished_at, job.attempts) == (None, LATER, 0)
    assert jobs.reap(now=LATER + timedelta(days=1)) == []


def test_a_running_job_is_cancelled_at_its_next_chunk(kind):
    def work(run, *, now):
        for cup in range(4):
            cups.append(cup)
            if cup == 2:
                assert jobs.cancel(run.job.pk, now=NOW).state == JobState.RUNNING
            run.advance(1)
            run.report(checkpoint={"cup": cup, "done": run.job.done})

    cups = []
    job = jobs.enqueue(kind(work), now=NOW)

    job_kinds.perform(job.pk)

    job = row(job)
    assert cups == [0, 1, 2]
    assert (job.state, job.active_key, job.finished_at) == (JobState.CANCELLED, None, NOW)
    assert (job.done, job.checkpoint) == (3, {"cup": 1, "done": 2})


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.CANCELLED])
def test_a_job_that_has_ended_stays_as_it_ended(job, state):
    end(job, state)
    before = values_of(job)

    assert jobs.cancel(job.pk, now=LATER).state == state

    assert values_of(job) == before


def test_a_cancelled_run_that_goes_back_to_waiting_ends_all_the_same(job):
    run = jobs.claim(job.pk, now=NOW)
    jobs.cancel(job.pk, now=NOW)
    run.fail("OperationalError: gone", is_final=False)

    assert jobs.reap(now=LATER) == []

    assert (row(job).state, row(job).active_key) == (JobState.CANCELLED, None)


def cancel_while(job, meanwhile):
    """Cancel a job, with something done right after the first row was written."""
    update = QuerySet.update

    def update_and_more(rows, **values):
        count = update(rows, **values)
        patch.undo()
        meanwhile()
        return count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuerySet, "update", update_and_more)
        return jobs.cancel(job.pk, now=NOW)


def test_a_run_that_fails_while_it_is_cancelled_is_not_tried_again(job):
    run = jobs.claim(job.pk, now=NOW)

    cancelled = cancel_while(job, lambda: run.fail("OperationalError: gone", is_final=False))

    assert cancelled.state == JobState.CANCELLED


def test_a_run_that_begins_while_it_is_cancelled_ends(job):
    runs = []

    cancel_while(job, lambda: runs.append(jobs.claim(job.pk, now=NOW)))

    with pytest.raises(JobCancelled):
        runs[0].report()


@pytest.mark.parametrize("does", [jobs.cancel, jobs.retry])
def test_a_job_that_is_not_there_is_named(does):
    with pytest.raises(UnknownJob, match="no job 987654"):
        does(987_654, now=NOW)


# --- retry -----------------------------------------------------------------------------


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_a_job_goes_on_from_its_checkpoint(job, sent, state):
    run = jobs.claim(job.pk, now=NOW)
    run.report(checkpoint={"scope": 5, "done": 3}, done=4, total=9)
    if state == JobState.FAILED:
        run.fail("The disk is full.", is_final=True)
    else:
        jobs.cancel(job.pk, now=NOW)
        run.cancelled()
    sent()

    again = jobs.retry(job.pk, now=LATER)

    assert (again.pk, again.state, again.attempts) == (job.pk, JobState.PENDING, 0)
    assert (again.checkpoint, again.error) == ({"scope": 5, "done": 3}, "")
    assert (again.heartbeat_at, again.finished_at) == (LATER, None)
    assert sent() == [job.pk]
    jobs.claim(job.pk, now=LATER).report(done=5)  # it is no longer to be cancelled
    assert jobs.enqueue("expire", now=LATER).pk == job.pk


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING, JobState.DONE])
def test_a_job_that_has_not_failed_does_not_go_on(job, sent, state):
    end(job, state)
    sent()
    before = values_of(job)

    with pytest.raises(JobNotEnded, match=f"is {state}"):
        jobs.retry(job.pk, now=LATER)

    assert values_of(job) == before
    assert sent() == []


def test_a_job_whose_work_waits_under_another_number_does_not_go_on(job, sent):
    jobs.cancel(job.pk, now=NOW)
    other = jobs.enqueue("expire", now=NOW)
    sent()

    assert jobs.retry(job.pk, now=LATER).pk == other.pk

    assert row(job).state == JobState.CANCELLED
    assert sent() == []


def test_a_job_that_many_let_go_on_runs_once(job):
    jobs.cancel(job.pk, now=NOW)

    def try_again():
        try:
            return jobs.retry(job.pk, now=LATER).pk
        except JobNotEnded:
            return job.pk

    assert at_once(8, try_again) == [job.pk] * 8

    runs = at_once(8, lambda: jobs.claim(job.pk, now=LATER))
    assert len(list(filter(None, runs))) == 1


# --- the reaper ------------------------------------------------------------------------


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING])
def test_a_silent_job_is_sent_again_and_no_sooner(job, sent, state):
    end(job, state)
    sent()

    early = jobs.reap(now=NOW + jobs.SILENCE)
    late = jobs.reap(now=LATER)
    at_once_again = jobs.reap(now=LATER)

    assert (early, late, at_once_again) == ([], [job.pk], [])
    assert sent() == [job.pk]
    assert (row(job).state, row(job).claim) == (JobState.PENDING, "")
    assert jobs.reap(now=LATER + jobs.SILENCE + SECOND) == [job.pk]


def test_a_job_in_which_the_worker_died_too_often_has_failed(job, sent):
    now = NOW
    for attempt in range(1, jobs.MAX_ATTEMPTS + 1):
        assert jobs.claim(job.pk, now=now).job.attempts == attempt
        now += jobs.SILENCE + SECOND
        reaped = jobs.reap(now=now)
        assert reaped == ([job.pk] if attempt < jobs.MAX_ATTEMPTS else [])

    job = row(job)
    assert (job.state, job.active_key, job.finished_at) == (JobState.FAILED, None, now)
    assert job.error.startswith("The worker died 5 times")
    assert len(sent()) == jobs.MAX_ATTEMPTS  # one at first, one a reaping


def test_a_job_that_only_waits_is_never_given_up(job):
    now = NOW
    for _ in range(3 * jobs.MAX_ATTEMPTS):
        now += jobs.SILENCE + SECOND
        assert jobs.reap(now=now) == [job.pk]

    assert (row(job).state, row(job).attempts) == (JobState.PENDING, 0)


def test_a_cancelled_run_that_is_silent_has_ended(job, sent):
    jobs.claim(job.pk, now=NOW)
    jobs.cancel(job.pk, now=NOW)
    sent()

    assert jobs.reap(now=NOW + jobs.SILENCE) == []
    assert row(job).state == JobState.RUNNING
    assert jobs.reap(now=LATER) == []

    assert (row(job).state, row(job).active_key) == (JobState.CANCELLED, None)
    assert row(job).finished_at == LATER
    assert sent() == []


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.CANCELLED])
def test_a_job_that_has_ended_is_left_alone(job, state):
    end(job, state)
    before = values_of(job)

    assert jobs.reap(now=NOW + timedelta(days=365)) == []

    assert values_of(job) == before


def test_many_reapers_at_once_send_a_job_once(job, sent):
    jobs.claim(job.pk, now=NOW)
    sent()

    reaped = at_once(8, lambda: jobs.reap(now=LATER))

    assert sorted(reaped) == [[]] * 7 + [[job.pk]]
    assert sent() == [job.pk]
    assert row(job).state == JobState.PENDING


def test_a_run_that_reports_while_it_is_reaped_goes_on(job):
    run = jobs.claim(job.pk, now=NOW)
    ordered = QuerySet.order_by

    def late(rows, *names):
        found = list(ordered(rows, *names))
        with time_machine.travel(LATER, tick=False):
            run.report(step="ada")  # after it was seen silent
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuerySet, "order_by", late)
        reaped = jobs.reap(now=LATER)

    assert reaped == []
    assert (row(job).state, row(job).claim) == (JobState.RUNNING, run.job.claim)


def test_the_log_says_when_a_step_was_taken_up_again(ada):
    jobs.enqueue("move", now=NOW)
    first = jobs.claim(Job.objects.get().pk, now=NOW)
    first.report(step="copying", done=0, total=10)
    first.report(done=6)
    Job.objects.update(state=JobState.PENDING, claim="")

    second = jobs.claim(first.job.pk, now=NOW)
    second.report(step="copying", done=6, total=10)
    second.report(done=8)

    job = Job.objects.get()
    assert [line[1:] for line in job.log] == [["copying", 6, 10], ["copying", 6, None]]
    # half of what was left is done, so the rest takes as long as that did, not what the dead took
    begun = datetime.fromisoformat(job.log[-1][0])
    assert job_list.seconds_left(job, now=begun + timedelta(seconds=30)) == pytest.approx(30)
