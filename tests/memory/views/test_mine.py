"""Everything that agents have of somebody: paused, taken along, erased with a receipt."""

import io
import json
import zipfile

import pytest
from django.db import connections

from agents import keys
from agents.auth import issue_key
from agents.keys import NewKey
from agents.models import Identity, Pause
from memory import analyzer
from memory.databases import store_alias
from memory.errors import HippoError, MemoryPaused
from memory.filters import MemoryFilter
from memory.models import IdempotencyRecord, Job, Memory, MemoryRevision, MemoryTerms, Scope
from memory.services import bulk, job_kinds, library, memories
from memory.services.context import prefetch
from memory.services.recall import require_on
from memory.services.transfers.transfer import import_lines
from tests.conftest import MING, NOW, make_agent


def test_a_paused_agent_neither_recalls_nor_saves_for_that_user(agent, web, remember):
    remember(agent, "ming", "Ming deploys on Fridays")
    remember(agent, "bob", "Bob deploys on Fridays")

    web.post(f"/me/memory/pause/{agent.name}/", {"paused": "true"})

    with pytest.raises(MemoryPaused):
        require_on(agent, "ming")
    assert prefetch(agent, "ming", "When does Ming deploy?", now=NOW).enabled is False
    assert prefetch(agent, "bob", "When does Bob deploy?", now=NOW).hits
    web.post(f"/me/memory/pause/{agent.name}/")
    assert prefetch(agent, "ming", "When does Ming deploy?", now=NOW).hits


def test_an_agent_is_told_that_the_user_paused_it(agent, client, ming, remember):
    _, key = issue_key(agent)
    Pause.objects.create(agent=agent, user_id="ming")
    headers = {"authorization": f"Bearer {key}"}
    base = f"/api/v1/agents/{agent.name}"

    def post(path, **body):
        body = json.dumps({"user_id": "ming", **body})
        return client.post(base + path, body, content_type="application/json", headers=headers)

    assert post("/prefetch/", message="When?").json() == {"enabled": False}
    for refused in (post("/memories/", type="user", content="x"), post("/search/", query="x")):
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "memory_paused"
    tool = post("/tools/memory_save/", arguments={"name": "a", "content": "x"}).json()
    assert (tool["ok"], tool["result"]["code"]) == (False, "memory_paused")
    assert Memory.objects.for_agent(agent).count() == 0


def test_nobody_pauses_an_agent_for_others(agent, web, remember):
    remember(agent, "bob", "Bob deploys on Fridays")
    Identity.objects.all().delete()

    assert web.post(f"/me/memory/pause/{agent.name}/", {"paused": "true"}).status_code == 404
    assert web.post("/me/memory/pause/nobody/", {"paused": "true"}).status_code == 404
    assert Pause.objects.count() == 0


def test_everything_can_be_taken_along_and_in_again(agent, web, remember):
    saved = remember(agent, "ming", "支付模块周五上线", name="../支付: a/b")
    memories.update(agent, "ming", saved.pk, {"content": "支付模块周四上线"}, actor=MING, now=NOW)
    trashed = remember(agent, "ming", "old", status="trashed")
    remember(agent, "bob", "Bob's secret")

    answer = web.get("/me/memory/download/")

    archive = zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content)))
    lines = archive.read("memories.jsonl").splitlines()
    assert {json.loads(line)["id"] for line in lines} == {saved.pk, trashed.pk}
    assert "secret" not in b"".join(lines).decode()
    names = [name for name in archive.namelist() if name.startswith("markdown/")]
    assert all(name.count("/") == 2 and ".." not in name for name in names)
    [text] = [archive.read(name).decode() for name in names if str(saved.pk) in name]
    assert text.endswith("# ../支付: a/b\n\n支付模块周四上线\n")
    other = make_agent("eve", agent.memory_config.backend)
    report = import_lines(other, lines, user_id="ming", now=NOW)
    assert (report.created, report.errors) == (2, [])


def test_erasing_everything_leaves_nothing_in_any_store_and_a_receipt(agent, web, remember):
    saved = remember(agent, "ming", "Ming deploys on Fridays")
    memories.update(agent, "ming", saved.pk, {"content": "on Thursdays"}, actor=MING, now=NOW)
    kept = remember(agent, "bob", "Bob deploys on Fridays")
    refused = web.post("/me/memory/erase/", {"confirm": "Ming"})
    web.post("/me/memory/erase/", {"confirm": "ming"})
    pending = web.get("/me/memory/")
    job = Job.objects.get(kind="erase_user")
    job_kinds.perform(job.pk)

    assert refused.status_code == 422
    assert Job.objects.get().state == "done"
    assert Job.objects.get().result["memories"] == 1
    assert Job.objects.get().result["versions"] == 1
    assert 'hx-trigger="every 2s"' in pending.content.decode()
    assert "every 2s" not in web.get("/me/memory/").content.decode()
    alias = store_alias(agent)
    assert not Scope.objects.of_user(agent, "ming").exists()
    for model in (Memory, MemoryTerms, MemoryRevision, IdempotencyRecord):
        rows = model.objects.using(alias)
        assert set(rows.values_list("pk", flat=True)) <= {kept.pk}
    assert [each.content for each in memories.walk(agent)] == ["Bob deploys on Fridays"]


def test_erasing_takes_along_what_was_asked_for_and_waits(agent, web, ming, remember):
    remember(agent, "ming", "tea", tags=["private"])
    shelves = library.shelves_of(ming)
    doing = bulk.Bulk("tag", "private", "ming", NOW)
    waiting = bulk.request(ming.pk, shelves, MemoryFilter(tags=("private",)), doing, now=NOW)
    others = bulk.request(ming.pk + 1, [], MemoryFilter(), doing, now=NOW)

    web.post("/me/memory/erase/", {"confirm": "ming"})
    job = Job.objects.get(kind="erase_user")
    job_kinds.perform(job.pk)

    assert Job.objects.get(pk=job.pk).result["jobs"] == 1
    assert not Job.objects.filter(pk=waiting.pk).exists()
    assert Job.objects.filter(pk=others.pk).exists()


def test_what_erasing_missed_in_the_index_keeps_the_receipt_open(ada, web, remember):
    remember(ada, "ming", "tea")
    scope = Scope.objects.of_user(ada, "ming").get()
    stray = analyzer.encode_term("tea", analyzer.scope_key(scope.pk))
    web.post("/me/memory/erase/", {"confirm": "ming"})
    job = Job.objects.get(kind="erase_user")
    with connections[store_alias(ada)].cursor() as cursor:
        cursor.execute("INSERT INTO memory_terms_fts(rowid, terms) VALUES (7, %s)", [stray])

    with pytest.raises(HippoError, match="left of it in the index"):
        job_kinds.perform(job.pk)

    assert Job.objects.get(pk=job.pk).state == "pending"
    with connections[store_alias(ada)].cursor() as cursor:
        cursor.execute(
            "INSERT INTO memory_terms_fts(memory_terms_fts, rowid, terms) VALUES ('delete', 7, %s)",
            [stray],
        )
    job_kinds.perform(job.pk)
    assert Job.objects.get(pk=job.pk).result["memories"] == 1


def test_erasing_twice_is_one_job_and_killed_half_way_goes_on(agent, web, remember):
    remember(agent, "ming", "tea")
    for _ in range(2):
        web.post("/me/memory/erase/", {"confirm": "ming"})

    [job] = Job.objects.filter(kind="erase_user")
    job_kinds.perform(job.pk)
    job_kinds.perform(job.pk)

    assert Job.objects.get().attempts == 1
    assert web.get("/me/memory/").status_code == 200


def test_somebody_sees_the_keys_that_reach_the_memories(ada, web, remember):
    other = make_agent("other", "sqlite")
    remember(ada, "ming", "Ming deploys on Fridays")

    keys.create(ada, NewKey("for all of ada's users"), actor=None, now=NOW)
    keys.create(ada, NewKey("for ming", "ming"), actor=None, now=NOW)
    keys.create(ada, NewKey("for bob", "bob"), actor=None, now=NOW)
    keys.create(other, NewKey("of an agent that knows nobody"), actor=None, now=NOW)

    deeds = web.get("/me/memory/").context["deeds"]
    assert [(each.action, each.agent_name, each.user_id) for each in deeds] == [
        ("key_created", "ada", "ming"),
        ("key_created", "ada", ""),
    ]


def test_a_job_writes_the_download_where_it_is_large(agent, web, remember, monkeypatch):
    monkeypatch.setattr("memory.views.mine.AT_ONCE", 2)
    for number in range(3):
        remember(agent, "ming", f"Ming's {number}th thought")
    gone = remember(agent, "ming", "Ming threw this away")
    memories.trash(agent, "ming", gone.pk, actor=MING, now=NOW)

    begun = web.get("/me/memory/download/")
    again = web.get("/me/memory/download/")
    [job] = Job.objects.filter(kind="export")
    job_kinds.perform(job.pk)

    assert begun.url == again.url == f"/jobs/{job.pk}/"
    answer = web.get(f"/jobs/{job.pk}/download/")
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        lines = [json.loads(line) for line in archive.read("memories.jsonl").splitlines()]
        assert len(archive.namelist()) == 5
    assert {line["content"] for line in lines} >= {"Ming threw this away", "Ming's 0th thought"}
