"""What the tasks do when they are called, and what beat calls; workers: test_workers.py."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connections
from django.utils import timezone

from config.celery import app
from memory import fts
from memory.databases import known_aliases, store_alias
from memory.models import Job, JobState
from memory.services import job_kinds, jobs, maintenance, memories
from memory.tasks import enqueue_job, reap_jobs, run_job
from tests.conftest import MING, NOW, make_agent

SEGMENTS = f"SELECT count(DISTINCT segid) FROM {fts.FTS_TABLE}_idx"
SCHEDULE = settings.CELERY_BEAT_SCHEDULE.values()


def do(kind):
    """Enqueue a job and do it, as beat and a worker do."""
    enqueue_job(kind)
    run_job(Job.objects.latest("pk").pk)
    return Job.objects.latest("pk")


# --- the tasks -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", job_kinds.WITHOUT_PAYLOAD)
def test_a_kind_that_sees_to_every_agent_is_enqueued_and_done(ada, grace, kind):
    job = do(kind)

    assert (job.kind, job.state, job.error) == (kind, JobState.DONE, "")


@pytest.mark.django_db(transaction=True)
def test_reaping_sends_what_has_been_silent():
    job = jobs.enqueue("expire", now=timezone.now() - timedelta(minutes=3))
    jobs.claim(job.pk, now=timezone.now() - timedelta(minutes=3))
    began = timezone.now()

    reap_jobs()

    job.refresh_from_db()
    assert (job.state, job.claim) == (JobState.PENDING, "")
    assert job.heartbeat_at >= began


# --- the indexes -----------------------------------------------------------------------


def test_indexes_of_all_stores_are_optimized(ada, grace, remember, names_found):
    for agent in (ada, grace):
        trashed = remember(agent, "ming", "no more tea", name="Trash")
        memories.trash(agent, "ming", trashed.pk, actor=MING, now=NOW)
        maintenance.optimize(store_alias(agent))
        for number in range(2):  # a segment each
            remember(agent, "ming", f"tea number {number}", name=f"Tea {number}")
    with connections[store_alias(ada)].cursor() as cursor:
        assert cursor.execute(SEGMENTS).fetchone()[0] > 1

    job = do("optimize_indexes")

    assert job.result == {"optimized": ["default", "mysql", "sqlite:memory.db"]}
    assert (job.done, job.total) == (3, 3)
    with connections[store_alias(ada)].cursor() as cursor:
        assert cursor.execute(SEGMENTS).fetchone()[0] == 1
    for agent in (ada, grace):
        assert set(names_found(agent, "ming", "tea")) == {"Tea 0", "Tea 1"}
        assert list(maintenance.check(agent)) == []


def test_agents_of_one_file_are_optimized_once(ada):
    make_agent("eve", "sqlite")

    assert do("optimize_indexes").result == {"optimized": known_aliases()}


def test_an_index_that_cannot_be_optimized_now_is_left(ada, monkeypatch):
    monkeypatch.setattr(maintenance, "optimize", lambda alias: alias != "mysql")

    job = do("optimize_indexes")

    assert (job.state, job.done, job.total) == (JobState.DONE, 3, 3)
    assert job.result == {"optimized": ["default", "sqlite:memory.db"]}


# --- the schedule ----------------------------------------------------------------------


def test_every_task_of_the_schedule_is_one_that_workers_know():
    app.loader.import_default_modules()

    assert {entry["task"] for entry in SCHEDULE} <= set(app.tasks)
    assert jobs.TASK in app.tasks
    assert all(entry["schedule"] > 0 for entry in SCHEDULE)


def test_every_kind_of_the_schedule_is_one_that_needs_no_payload():
    kinds = [entry["args"][0] for entry in SCHEDULE if entry["task"] == enqueue_job.name]

    assert sorted(kinds) == sorted(job_kinds.WITHOUT_PAYLOAD)
    assert set(kinds) <= set(job_kinds.KINDS)


def test_silent_jobs_are_looked_for_more_often_than_they_fall_silent():
    (entry,) = [entry for entry in SCHEDULE if entry["task"] == reap_jobs.name]

    assert timedelta(seconds=entry["schedule"]) < jobs.SILENCE
    # a job whose worker is killed goes on within two minutes, its worker's start included
    assert jobs.SILENCE + 2 * timedelta(seconds=entry["schedule"]) < timedelta(seconds=100)
    assert entry["options"]["expires"] <= entry["schedule"]  # they do not pile up
