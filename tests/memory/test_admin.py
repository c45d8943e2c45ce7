"""The plain admin of jobs: an operator looks, cancels and lets go on, and edits nothing."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import NoReverseMatch, reverse
from django.utils.html import escape

from memory.models import Job, JobState
from memory.services import jobs
from tests.conftest import NOW

pytestmark = pytest.mark.django_db

LIST = reverse("admin:memory_job_changelist")


@pytest.fixture(autouse=True)
def pages(settings, tmp_path):
    settings.LANGUAGE_CODE = "en"
    # WhiteNoise warns where nothing was collected
    settings.STATIC_ROOT = tmp_path


@pytest.fixture
def job():
    return jobs.enqueue("expire", {"agent": "<ada>"}, now=NOW)


def page_of(job, page="change"):
    return reverse(f"admin:memory_job_{page}", args=[job.pk])


def act(client, action, *chosen):
    """Do an action on jobs; return what the page that follows says of it."""
    form = {"action": action, "_selected_action": [job.pk for job in chosen]}
    answer = client.post(LIST, form, follow=True)
    return [str(message) for message in answer.context["messages"]]


def state_of(job):
    return Job.objects.get(pk=job.pk).state


def fail(job, error="Incomplete: grace is gone"):
    jobs.claim(job.pk, now=NOW).fail(error, is_final=True)


# --- looking ---------------------------------------------------------------------------


def test_the_list_shows_how_far_each_job_is(admin_client, job):
    jobs.claim(job.pk, now=NOW).report(step="ada & eve", done=120, total=500)

    page = admin_client.get(LIST).content.decode()

    for shown in ("expire", "running", "120/500", "ada &amp; eve", "Nov. 30, 2026"):
        assert shown in page


def test_the_page_of_a_job_shows_what_came_of_it_and_has_nothing_to_edit(admin_client, job):
    fail(job, error="<b>grace</b> is gone")

    answer = admin_client.get(page_of(job))

    page = answer.content.decode()
    assert answer.status_code == 200
    assert escape("<b>grace</b> is gone") in page
    assert escape("<ada>") in page
    for button in ("_save", "_addanother", "_continue", "deletelink"):
        assert button not in page
    assert admin_client.get(page_of(job, "history")).status_code == 200


def test_the_list_can_be_narrowed(admin_client, job):
    fail(job)
    other = jobs.enqueue("purge_trash", now=NOW)

    for narrowed, found in (
        ({"state__exact": "failed"}, [job]),
        ({"kind": "purge_trash"}, [other]),
        ({"state__exact": "done"}, []),
    ):
        answer = admin_client.get(LIST, narrowed)
        assert list(answer.context["cl"].queryset) == found


def test_a_list_costs_the_same_for_many(admin_client, django_assert_max_num_queries):
    for number in range(30):
        jobs.enqueue("expire", key=str(number), now=NOW)

    with django_assert_max_num_queries(7):
        admin_client.get(LIST)


def test_no_job_is_added_changed_or_deleted(admin_client, job):
    before = Job.objects.values().get()

    answers = [
        admin_client.post(reverse("admin:memory_job_add"), {"kind": "expire"}),
        admin_client.post(page_of(job), {"kind": "dance", "state": "done"}),
        admin_client.post(page_of(job, "delete"), {"post": "yes"}),
    ]
    act(admin_client, "delete_selected", job)

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert Job.objects.values().get() == before


def test_no_memory_is_shown():
    with pytest.raises(NoReverseMatch):
        reverse("admin:memory_memory_changelist")


# --- acting ----------------------------------------------------------------------------


def test_jobs_are_cancelled(admin_client, job):
    running = jobs.enqueue("purge_trash", now=NOW)
    jobs.claim(running.pk, now=NOW)
    failed = jobs.enqueue("reindex", now=NOW)
    fail(failed)

    said = act(admin_client, "cancel", job, running, failed)

    assert said == ["2 jobs were cancelled, or end at their next chunk."]
    assert state_of(job) == JobState.CANCELLED
    assert Job.objects.get(pk=running.pk).is_cancel_requested
    assert state_of(failed) == JobState.FAILED


def test_jobs_go_on(admin_client, job):
    fail(job)
    done = jobs.enqueue("purge_trash", now=NOW)
    jobs.claim(done.pk, now=NOW).finish({})

    said = act(admin_client, "retry", job, done)

    assert said == [
        f"Job {done.pk} goes on only if it has failed or was cancelled.",
        "1 job goes on.",
    ]
    assert (state_of(job), state_of(done)) == (JobState.PENDING, JobState.DONE)


def test_where_no_job_goes_on_none_is_said_to(admin_client, job):
    said = act(admin_client, "retry", job)

    assert said == [f"Job {job.pk} goes on only if it has failed or was cancelled."]


# --- for whom --------------------------------------------------------------------------


@pytest.fixture
def staff(client, django_user_model):
    """Return bob, who works here, logged in with some permissions on jobs."""

    def log_in(*permissions):
        bob = django_user_model.objects.create_user("bob", password="bob", is_staff=True)
        bob.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client.force_login(bob)
        return client

    return log_in


def test_the_pages_are_for_staff_only(client, django_user_model, job):
    mallory = django_user_model.objects.create_user("mallory", password="mallory")

    for login in (lambda: None, lambda: client.force_login(mallory)):
        login()
        for page in (LIST, page_of(job)):
            answer = client.get(page)
            assert answer.status_code == 302
            assert answer.url.startswith(reverse("admin:login"))
        client.post(LIST, {"action": "cancel", "_selected_action": [job.pk]})

    assert state_of(job) == JobState.PENDING


def test_staff_without_a_permission_see_nothing(staff, job):
    assert staff().get(LIST).status_code == 403


def test_staff_who_may_look_cannot_act(staff, job):
    client = staff("view_job")

    assert client.get(LIST).status_code == 200
    act(client, "cancel", job)

    assert state_of(job) == JobState.PENDING


def test_staff_who_may_change_jobs_can_act(staff, job):
    act(staff("view_job", "change_job"), "cancel", job)

    assert state_of(job) == JobState.CANCELLED
