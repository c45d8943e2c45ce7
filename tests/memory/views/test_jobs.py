"""Jobs on their pages: whose they are, what is said of them, and what can be done."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from agents.models import AuditEntry
from memory.models import Job
from memory.services import job_list, jobs

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "a secret that was typed"


@pytest.fixture
def operator(client, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    account = get_user_model().objects.create_user("olga", password="x", is_staff=True)
    client.force_login(account)
    return client


@pytest.fixture
def leave(ming):
    """Leave a job of ming's."""

    def do(kind="bulk", key="", account=ming, **payload):
        payload = {"filter": {"words": [SECRET]}, "file": SECRET, **payload}
        account_id = account.pk if account else None
        return jobs.enqueue(kind, payload, key=key, account_id=account_id, now=timezone.now())

    return do


def text(answer):
    return " ".join(answer.content.decode().split())


def test_users_see_their_own_jobs_and_operators_all_without_what_was_typed(
    web, leave, ming, django_user_model, client
):
    other = django_user_model.objects.create_user("bob")
    mine, others = leave(key="a"), leave(key="b", account=other)

    seen = text(web.get("/jobs/"))
    shown = [web.get(f"/jobs/{job.pk}/").status_code for job in (mine, others)]
    client.force_login(django_user_model.objects.create_user("olga", is_staff=True))
    operators = [text(client.get(path)) for path in
                 ("/jobs/", f"/jobs/{mine.pk}/", f"/jobs/{others.pk}/row/")]  # fmt: skip

    assert f"#{mine.pk}<" in seen
    assert f"#{others.pk}<" not in seen
    assert shown == [200, 404]
    assert f"#{others.pk}<" in operators[0]
    assert "ming" in operators[0]
    assert not [page for page in operators if SECRET in page]


def test_a_row_asks_again_until_its_job_has_ended(web, leave):
    job = leave()

    waiting = text(web.get(f"/jobs/{job.pk}/row/"))
    jobs.claim(job.pk, now=timezone.now()).finish({"changed": 3})
    ended = text(web.get(f"/jobs/{job.pk}/row/"))

    assert 'hx-trigger="every 2s"' in waiting
    assert "hx-trigger" not in ended
    assert "3 memories changed" in ended or "3 条" in ended


def test_the_list_is_narrowed_and_goes_on_where_it_ended(web, leave):
    ids = [leave(key=str(number)).pk for number in range(35)]
    jobs.cancel(ids[0], now=timezone.now())

    first = web.get("/jobs/?kind=bulk").content.decode()
    second = web.get(f"/jobs/?kind=bulk&before={ids[5]}").content.decode()
    cancelled = web.get("/jobs/?state=cancelled").content.decode()

    assert first.count("<tr id=") == 30
    assert f"before={ids[5]}" in first
    assert second.count("<tr id=") == 5
    assert cancelled.count("<tr id=") == 1
    assert web.get("/jobs/?kind=export").content.decode().count("<tr id=") == 0
    assert web.get("/jobs/?before=x&state=y").status_code == 200


def test_a_list_of_many_jobs_costs_as_many_queries_as_one_of_few(
    operator, leave, django_assert_max_num_queries
):
    for number in range(20):
        leave(key=str(number))

    with django_assert_max_num_queries(8):
        operator.get("/jobs/")


def test_a_job_shows_its_steps_and_the_time_left(web, leave):
    job = leave()
    run = jobs.claim(job.pk, now=timezone.now())
    run.report(step="copying", total=10)
    run.report(done=10)
    run.report(step="verifying", done=5, total=50)
    began = (timezone.now() - timedelta(seconds=20)).isoformat()
    Job.objects.filter(pk=job.pk).update(log=[*run.job.log[:1], [began, "verifying", 0, None]])

    page = text(web.get(f"/jobs/{job.pk}/", headers={"accept-language": "en"}))

    assert '<progress class="bar" max="50" value="5"' in page
    assert "copying" in page
    assert "10 / 10" in page
    assert "3 min left" in page  # 5 of 50 in 20 s


@pytest.mark.parametrize(
    ("seconds", "done", "total", "left"),
    [(4, 5, 10, None), (10, 5, 10, 10), (10, 0, 10, None), (10, 5, None, None), (10, 12, 10, 0)],
)
def test_the_time_left_is_known_after_five_seconds(leave, seconds, done, total, left):
    job, now = leave(), timezone.now()
    job.state, job.done, job.total = "running", done, total
    job.log = [[(now - timedelta(seconds=seconds)).isoformat(), "copying", 0, None]]

    found = job_list.seconds_left(job, now=now)

    assert found == (left if left is None else pytest.approx(left))


def test_a_failed_job_says_why_and_is_tried_again(web, leave):
    job = leave()
    jobs.claim(job.pk, now=timezone.now()).fail("The disk is full.", is_final=True)

    page = text(web.get(f"/jobs/{job.pk}/"))
    web.post(f"/jobs/{job.pk}/retry/")

    assert "The disk is full." in page
    job.refresh_from_db()
    assert (job.state, job.error) == ("pending", "")
    assert web.post(f"/jobs/{job.pk}/retry/").status_code == 302
    assert not AuditEntry.objects.exists()


def test_what_operators_do_to_jobs_is_recorded(operator, leave):
    job = leave()

    operator.post(f"/jobs/{job.pk}/cancel/")
    operator.post(f"/jobs/{job.pk}/cancel/")
    operator.post(f"/jobs/{job.pk}/retry/")

    noted = AuditEntry.objects.order_by("pk").values_list("action", "actor_name", "detail")
    detail = f"job {job.pk}: bulk"
    assert list(noted) == [("job_cancelled", "olga", detail), ("job_retried", "olga", detail)]
    job.refresh_from_db()
    assert job.state == "pending"


def test_nobody_ends_the_jobs_of_others(web, leave, django_user_model):
    job = leave(account=django_user_model.objects.create_user("bob"))

    for path in ("cancel", "retry"):
        assert web.post(f"/jobs/{job.pk}/{path}/").status_code == 404
    job.refresh_from_db()
    assert job.state == "pending"


def test_the_pill_shows_what_runs_and_for_a_moment_that_it_has_ended(web, leave):
    idle = text(web.get("/jobs/pill/"))
    job = leave()
    run = jobs.claim(job.pk, now=timezone.now())
    run.report(step="copying", done=16, total=25)
    page = text(web.get("/me/"))
    busy = text(web.get("/jobs/pill/"))
    run.finish({})
    ended = text(web.get(f"/jobs/pill/?job={job.pk}"))
    after = text(web.get("/jobs/pill/"))

    assert "jobpill" not in idle
    assert "every 10s" in idle
    for shown in (page, busy):
        assert f'href="/jobs/{job.pk}/"' in shown
        assert "64%" in shown
        assert 'stroke-dasharray="64 100"' in shown
        assert f"?job={job.pk}" in shown
    assert 'role="status"' in ended
    assert "jobpill" not in after


def test_the_pill_is_one_query(web, leave, django_assert_num_queries):
    for number in range(3):
        leave(key=str(number))

    with django_assert_num_queries(4):  # with session, account and profile
        answer = web.get("/jobs/pill/")

    assert 'href="/jobs/"' in answer.content.decode()


def test_nobody_elses_job_is_in_the_pill(web, leave, django_user_model):
    other = leave(account=django_user_model.objects.create_user("bob"))

    assert "jobpill" not in text(web.get(f"/jobs/pill/?job={other.pk}"))
    jobs.cancel(other.pk, now=timezone.now())
    assert "jobpill" not in text(web.get(f"/jobs/pill/?job={other.pk}"))
