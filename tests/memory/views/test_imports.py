"""Import and export in the browser: whose, by whom, and what is told to whom."""

import csv
import io
import json

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.models import AuditEntry, Identity
from memory.models import Job
from memory.services import job_kinds, memories
from memory.services.transfers import job_files
from tests.conftest import NOW

TEA = {"type": "user", "content": "Ming drinks green tea"}


@pytest.fixture
def operator(client, settings, db):
    settings.ALLOWED_HOSTS = ["testserver"]
    account = get_user_model().objects.create_user("olga", password="x", is_staff=True)
    client.force_login(account)
    client.account = account
    return client


def let_read(account):
    account.user_permissions.add(Permission.objects.get(codename="view_content"))


def upload(client, to, data, name="a.jsonl", *, place=None, **fields):
    place = place or f"{to.pk}:ming"
    file = SimpleUploadedFile(name, data)
    return client.post("/import/", {"place": place, "type": "reference", "file": file, **fields})


def as_lines(*records):
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in records).encode()


def body(answer):
    return b"".join(answer.streaming_content)


def run(answer):
    """Do the job that a page leads to, and return it."""
    job_id = int(answer.url.rstrip("/").rpartition("/")[2])
    job_kinds.perform(job_id)
    return Job.objects.get(pk=job_id)


def test_a_file_is_looked_at_imported_and_its_bad_rows_sent_back(agent, web):
    data = "content,type\n明喝绿茶,user\n=x,nonsense\n".encode()

    answer = upload(web, agent, data, "t.csv")
    page = web.get(answer.url).content.decode()
    errors = web.get(f"{answer.url}?outcome=error").content.decode()
    none_yet = list(memories.walk(agent))
    job = run(web.post(f"{answer.url}start/"))
    failed = body(web.get(f"/jobs/{job.pk}/failed/")).decode("utf-8-sig")

    assert answer.status_code == 302
    assert "明喝绿茶" in page
    assert "明喝绿茶" not in errors
    assert none_yet == []
    assert [memory.content for memory in memories.walk(agent, "ming")] == ["明喝绿茶"]
    [_, row] = csv.reader(io.StringIO(failed, newline=""))
    assert (row[0], row[2:]) == ("3", ["'=x", "nonsense"])
    assert f"/jobs/{job.pk}/failed/" in web.get(f"/jobs/{job.pk}/").content.decode()


def test_a_large_file_is_looked_at_by_a_worker(ada, web, monkeypatch):
    monkeypatch.setattr("memory.views.imports.AT_ONCE_BYTES", 10)

    answer = upload(web, ada, as_lines(TEA))
    waiting = web.get(answer.url)
    job = run(answer)
    page = web.get(f"/jobs/{job.pk}/").content.decode()

    assert waiting.url == f"/jobs/{job.pk}/"
    assert answer.url in page


@pytest.mark.parametrize(
    ("name", "data"), [("a.zip", b"PK\x03\x04 broken"), ("a.csv", b"a,b\n1,2\n"), ("a.csv", b"")]
)
def test_a_file_that_cannot_be_imported_is_refused_in_the_form(ada, web, settings, name, data):
    before = set(settings.JOB_FILES_DIR.iterdir())

    answer = upload(web, ada, data, name)

    assert answer.status_code == 422
    assert 'id="id_file_error"' in answer.content.decode()
    assert not Job.objects.exists()
    assert set(settings.JOB_FILES_DIR.iterdir()) == before


def test_a_file_that_is_too_large_is_refused_and_not_kept(ada, web, settings):
    settings.IMPORT_MAX_MB = 1
    before = set(settings.JOB_FILES_DIR.iterdir())

    answer = upload(web, ada, as_lines(TEA) * 80_000)

    assert answer.status_code == 422
    assert "1 MB" in answer.content.decode()
    assert set(settings.JOB_FILES_DIR.iterdir()) == before


def test_nobody_imports_for_others_or_sees_their_imports(ada, web, client, django_user_model):
    place = f"{ada.pk}:bob"
    refused = [
        upload(web, ada, as_lines(TEA), place=place).status_code,
        upload(web, ada, as_lines(TEA), place="other", agent="ada", user_id="bob").status_code,
    ]
    answer = upload(web, ada, as_lines(TEA, {"type": "?"}))
    job = Job.objects.get()
    client.force_login(django_user_model.objects.create_user("olga", is_staff=True))
    operators = [client.get(answer.url).status_code, client.post(f"{answer.url}start/").status_code,
                 client.get(f"/jobs/{job.pk}/failed/").status_code]  # fmt: skip

    assert refused == [422, 422]
    assert operators == [404, 404, 404]
    assert "a.jsonl" not in client.get(f"/jobs/{job.pk}/").content.decode()


def test_what_is_no_longer_ones_own_is_not_imported_into(ada, web):
    answer = upload(web, ada, as_lines(TEA))
    Identity.objects.all().delete()

    assert web.post(f"{answer.url}start/").status_code == 404


def test_operators_import_for_others_on_the_record_without_reading(agent, operator, remember, ming):
    there = remember(agent, "ming", "Ming's secret", name="Secret")
    data = as_lines({"id": there.pk, "type": "user", "content": "new text"}, TEA)
    others = {"place": "other", "agent": agent.name, "user_id": "ming"}

    answer = upload(operator, agent, data, **others)
    page = operator.get(answer.url).content.decode()
    job = run(operator.post(f"{answer.url}start/"))

    assert TEA["content"] in page
    assert "Secret" not in page
    assert str(there.pk) not in page
    assert job.result["counts"] == {"new": 1, "update": 1}
    entry, look = AuditEntry.objects.order_by("-pk")
    assert (entry.action, entry.actor_name, entry.subject, entry.count) == (
        "imported", "olga", ming, 2,
    )  # fmt: skip
    assert (look.action, look.subject, look.detail) == ("imported", ming, "looked at, not imported")
    assert entry.agent == agent


# --- export ----------------------------------------------------------------------------


def export(client, of, **fields):
    place = f"{of.pk}:ming"
    return client.post("/export/", {"place": place, "format": "jsonl", **fields})


def test_an_export_is_downloaded_by_its_owner_while_it_is_theirs(
    agent, web, remember, client, django_user_model, ming
):
    remember(agent, "ming", "Ming drinks tea", tags=["drink"])
    remember(agent, "ming", "Ming deploys on Fridays")
    remember(agent, "bob", "Bob drinks tea", tags=["drink"])

    job = run(export(web, agent, tag="drink"))
    page = web.get(f"/jobs/{job.pk}/").content.decode()
    answer = web.get(f"/jobs/{job.pk}/download/")
    lines = body(answer).splitlines()
    Identity.objects.all().delete()
    unlinked = web.get(f"/jobs/{job.pk}/download/").status_code
    Identity.objects.create(account=ming, user_id="ming")
    client.force_login(django_user_model.objects.create_superuser("root"))
    others = client.get(f"/jobs/{job.pk}/download/").status_code

    assert f"/jobs/{job.pk}/download/" in page
    assert [json.loads(line)["content"] for line in lines] == ["Ming drinks tea"]
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert (unlinked, others) == (404, 404)


@pytest.mark.parametrize(
    "filters",
    [{"after": "last week"}, {"type": "nope"}, {"importance": "many"},
     {"after": "2026-11-30", "before": "2026-11-01"}],
)  # fmt: skip
def test_a_filter_that_is_not_understood_lets_nothing_out(ada, web, remember, filters):
    remember(ada, "ming", "Ming drinks green tea")

    answer = export(web, ada, **filters)

    assert answer.status_code == 422
    assert not Job.objects.exists()


def test_an_export_is_gone_after_a_week(ada, web, remember):
    remember(ada, "ming", "Ming drinks tea")
    job = run(export(web, ada))
    Job.objects.filter(pk=job.pk).update(finished_at=NOW.replace(year=2020))

    assert web.get(f"/jobs/{job.pk}/download/").status_code == 404
    assert "/download/" not in web.get(f"/jobs/{job.pk}/").content.decode()


def test_the_form_takes_over_what_the_list_was_narrowed_to(ada, web):
    page = web.get("/export/?agent=ada&tag=drink&type=user").content.decode()

    assert 'value="drink"' in page
    assert f'<option value="{ada.pk}:ming" selected>' in page


def test_the_memories_of_others_are_exported_for_a_reason_that_they_see(
    agent, operator, remember, ming, client
):
    remember(agent, "ming", "Ming drinks tea")
    others = {"place": "other", "agent": agent.name, "user_id": "ming"}
    without = export(operator, agent, **others).status_code
    let_read(operator.account)
    no_reason = export(operator, agent, reason="curious", **others).status_code
    job = run(export(operator, agent, reason="Ming asked for a copy", **others))
    taken = body(operator.get(f"/jobs/{job.pk}/download/")).count(b"\n")
    operator.account.user_permissions.clear()
    refused = operator.get(f"/jobs/{job.pk}/download/").status_code
    client.force_login(ming)
    mine = client.get("/me/memory/").content.decode()

    assert (without, no_reason, taken, refused) == (422, 422, 1, 404)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.subject, entry.count) == ("exported", ming, 1)
    assert "Ming asked for a copy" in mine
    assert "olga" in mine
    assert job_files.expires_at(job) > NOW
