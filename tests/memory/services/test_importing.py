"""A file is looked at and taken in; both say the same, killed or not, once or twice."""

import csv
import io
import json
import zipfile
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import translation
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.models import Identity
from memory.drafts import DRAFT_FIELDS
from memory.models import Job, Memory
from memory.services import erasure, job_kinds, jobs, library, memories, receipts
from memory.services.transfers import exporting, importing, job_files, takeout, uploads
from memory.services.transfers.cells import guarded, unguarded
from memory.services.transfers.exporting import Choice
from memory.services.transfers.importing import Wish
from memory.services.transfers.uploads import BadUpload
from tests.conftest import MING, NOW, make_agent
from tests.memory.rows import assert_consistent

LATER = NOW + timedelta(hours=1)
TEA = {"type": "user", "content": "Ming drinks green tea"}


@pytest.fixture(autouse=True)
def _in_english():
    with translation.override("en"):
        yield


@pytest.fixture
def account(db):
    account = get_user_model().objects.create_user("ming")
    Identity.objects.create(account=account, user_id="ming")
    return account


@pytest.fixture
def bring(account):
    """Look at a file and, unless only that, import it; return the jobs as they ended."""

    def do(agent, data, name="a.jsonl", *, places=None, only_look=False, **wish):
        kept = uploads.keep(name, [data])
        places = places or ((agent, "ming"),)
        wish = {"type": "reference", "is_own": True, **wish}
        job = importing.request_check(account, Wish(kept, places, **wish), now=NOW)
        checked = done(job)
        if only_look:
            return checked
        return checked, done(importing.request(account, checked, now=NOW))

    return do


def done(job):
    job_kinds.perform(job.pk)
    return Job.objects.get(pk=job.pk)


def as_lines(*records):
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in records).encode()


def as_zip(files, **options):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


def counts(job):
    return {name: count for name, count in job.result["counts"].items() if count}


def contents(agent, user_id="ming"):
    return sorted(memory.content for memory in memories.walk(agent, user_id))


def failed_rows(job, name=importing.FAILED):
    with job_files.file_of(job, name).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


# --- the look and the import agree -----------------------------------------------------


def test_the_look_says_of_each_row_what_the_import_then_does(agent, remember, bring):
    kept = remember(agent, "ming", "Ming deploys on Fridays", name="Deploys")
    memories.update(agent, "ming", kept.pk, {"pinned": True}, actor=MING, now=LATER)
    changed = remember(agent, "ming", "Ming likes Go", name="Language")
    trashed = remember(agent, "ming", "old", status="trashed")
    data = as_lines(
        {"type": "user", "content": "Ming deploys on Fridays", "name": "Deploys"},
        {"id": kept.pk, "version": 1, "type": "user", "content": "on Mondays"},
        {"id": changed.pk, "version": 1, "type": "user", "content": "Ming likes Rust"},
        {"id": trashed.pk, "type": "user", "content": "young"},
        TEA,
        TEA,
        {"type": "nonsense", "content": "x"},
        {"id": "m-1", **TEA, "content": "支付模块周五上线"},
        {"id": "m-1", **TEA, "content": "支付模块周四上线"},
    )

    checked, imported = bring(agent, data + b"no JSON\n")

    said = {row["line"]: row["outcome"] for row in importing.shown_rows(checked, "")}
    assert said == {
        1: "duplicate", 2: "kept", 3: "update", 4: "kept", 5: "new", 6: "duplicate",
        7: "error", 8: "new", 9: "update", 10: "error",
    }  # fmt: skip
    assert counts(checked) == counts(imported)
    assert counts(checked) == {"new": 2, "update": 2, "duplicate": 2, "kept": 2, "error": 2}
    assert contents(agent) == sorted([
        "Ming deploys on Fridays", "Ming likes Rust", "old", TEA["content"], "支付模块周四上线",
    ])  # fmt: skip
    [revision] = memories.history(agent, "ming", changed.pk)
    assert (revision.actor, revision.reason) == ("ming", "import")
    assert_consistent(agent)


ROWS = st.lists(
    st.fixed_dictionaries(
        {"content": st.sampled_from(["tea", "coffee", "支付"])},
        optional={
            "id": st.sampled_from([7, 8, "m-1", "7"]),
            "external_id": st.sampled_from(["m-1", "8", "x"]),
            "version": st.integers(1, 3),
            "status": st.sampled_from(["active", "trashed"]),
            "name": st.sampled_from(["tea", "other"]),
            "pinned": st.booleans(),
            "kind": st.sampled_from(["observation", "summary"]),
            "detail": st.sampled_from([{}, {"session_id": "s"}]),
            "importance": st.sampled_from([0.5, 0.0, 1]),
            "user_id": st.sampled_from(["ming", "bob"]),
            "type": st.sampled_from(["user", "nonsense"]),
        },
    ),
    max_size=8,
)


@given(rows=ROWS)
@settings(max_examples=15)
def test_the_look_and_the_import_never_differ(agent, bring, account, rows):
    Memory.objects.for_agent(agent).delete()
    records = [{"agent": agent.name, "user_id": "ming", **row} for row in rows]
    data = as_lines(*records, TEA)
    places = ((agent, "ming"), (agent, "bob"))
    chunk = importing.CHUNK
    importing.CHUNK = 2  # rows of one memory come in several
    try:
        checked, imported = bring(agent, data, places=places)
        again = bring(agent, data, places=places)
    finally:
        importing.CHUNK = chunk

    assert counts(checked) == counts(imported)
    assert counts(again[0]) == counts(again[1])


def test_the_same_file_twice_is_all_duplicates(agent, bring):
    data = as_lines(TEA, {"id": "m-1", **TEA, "content": "coffee"})
    bring(agent, data)

    checked, imported = bring(agent, data)

    assert counts(checked) == counts(imported) == {"duplicate": 2}
    assert len(contents(agent)) == 2


def test_rows_go_to_the_place_they_name_and_to_no_other(ada, grace, bring, remember):
    data = as_lines(
        {"agent": "ada", "user_id": "ming", **TEA},
        {"agent": "grace", "user_id": "ming", **TEA},
        {"agent": "ada", "user_id": "bob", **TEA},
        TEA,
    )

    _, imported = bring(ada, data, places=((ada, "ming"), (grace, "ming")))

    assert counts(imported) == {"new": 2, "error": 2}
    assert contents(ada) == contents(grace) == [TEA["content"]]
    assert contents(ada, "bob") == []


def test_of_anothers_memories_the_look_shows_counts_only(ada, bring, remember):
    there = remember(ada, "bob", "Bob's secret", name="Secret")
    data = as_lines(
        {"type": "user", "content": "Bob's secret", "name": "Secret"},
        {"id": there.pk, "type": "user", "content": "guess"},
        TEA,
    )

    checked = bring(ada, data, places=((ada, "bob"),), is_own=False, only_look=True)

    assert counts(checked) == {"duplicate": 1, "update": 1, "new": 1}
    assert [row["outcome"] for row in importing.shown_rows(checked, "")] == ["new"]


# --- kills, cancels --------------------------------------------------------------------


class Killed(BaseException):
    """A worker that is gone."""


def kill_after(monkeypatch, name, times):
    """Let the so-many-th call of a function of importing be followed by a kill."""
    work, left = getattr(importing.intake, name), [times]

    def work_and_die(*args, **kwargs):
        result = work(*args, **kwargs)
        left[0] -= 1
        if not left[0]:
            raise Killed
        return result

    monkeypatch.setattr(importing.intake, name, work_and_die)


def test_a_killed_import_goes_on_and_counts_as_if_it_had_not_been(
    agent, account, bring, monkeypatch
):
    monkeypatch.setattr(importing, "CHUNK", 10)
    records = [{"type": "user", "content": f"note {number}"} for number in range(45)]
    records[3] = records[25] = {"type": "nonsense", "content": "x"}
    checked = bring(agent, as_lines(*records), only_look=True)
    job = importing.request(account, checked, now=NOW)
    with monkeypatch.context() as patch:
        kill_after(patch, "take_in", 3)  # committed, and not yet told
        with pytest.raises(Killed):
            job_kinds.perform(job.pk)
    jobs.reap(now=LATER + timedelta(days=3650))

    imported = done(job)

    assert (imported.state, imported.attempts) == ("done", 2)
    assert counts(imported) == counts(checked) == {"new": 43, "error": 2}
    assert len(contents(agent)) == 43
    assert [row[0] for row in failed_rows(imported)] == ["line", "4", "26"]


def test_a_cancelled_import_keeps_what_it_did_and_goes_on_when_tried_again(
    agent, account, bring, monkeypatch
):
    monkeypatch.setattr(importing, "CHUNK", 10)
    records = [{"type": "user", "content": f"note {number}"} for number in range(30)]
    checked = bring(agent, as_lines(*records), only_look=True)
    job = importing.request(account, checked, now=NOW)
    take_in = importing.intake.take_in
    with monkeypatch.context() as patch:
        patch.setattr(
            importing.intake,
            "take_in",
            lambda *args, **kw: (jobs.cancel(job.pk, now=NOW), take_in(*args, **kw))[1],
        )
        cancelled = done(job)

    assert (cancelled.state, cancelled.checkpoint["counts"]) == ("cancelled", {"new": 10})
    assert len(contents(agent)) == 10
    jobs.retry(job.pk, now=NOW)
    assert counts(done(job)) == {"new": 30}
    assert len(contents(agent)) == 30


def test_an_upload_that_is_gone_ends_the_job_with_words(ada, account, bring):
    checked = bring(ada, as_lines(TEA), only_look=True)
    job = importing.request(account, checked, now=NOW)
    job_files.remove(job.payload["token"])

    with pytest.raises(importing.UploadGone):
        job_kinds.perform(job.pk)

    job.refresh_from_db()
    assert job.state == "failed"
    assert "还在" in job.error or "not there any more" in job.error


# --- tables ----------------------------------------------------------------------------

TABLE = (
    "名称,内容,类型,标签,重要性,城市\r\n"
    '早茶,明喝绿茶,user,"茶，早上",0.8,上海\r\n,,,,,\r\n,x,?,,,\r\n'
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_a_table_is_read_in_the_encodings_of_spreadsheets(ada, bring, encoding):
    checked, imported = bring(ada, TABLE.encode(encoding), "表.csv")

    assert counts(imported) == {"new": 1, "error": 1}
    [memory] = memories.walk(ada, "ming")
    assert (memory.name, memory.content, memory.type) == ("早茶", "明喝绿茶", "user")
    assert (memory.tags, memory.importance) == (["茶", "早上"], 0.8)
    assert memory.metadata == {"城市": "上海"}
    heading, row = failed_rows(imported)
    assert heading[2:] == ["名称", "内容", "类型", "标签", "重要性", "城市"]
    assert (row[0], row[2:5]) == ("4", ["", "x", "?"])
    assert checked.payload["encoding"] == encoding


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_without_types_gets_the_one_that_was_chosen(ada, bring, delimiter):
    table = f'content{delimiter}name\n"two\nlines"{delimiter}a\n\n=1+1{delimiter}\'b\n'

    _, imported = bring(ada, table.encode(), "t.csv", type="project")

    assert counts(imported) == {"new": 2}
    found = {memory.name: (memory.content, memory.type) for memory in memories.walk(ada, "ming")}
    assert found == {"a": ("two\nlines", "project"), "'b": ("=1+1", "project")}


def test_a_spreadsheets_dates_are_read(ada, bring):
    bring(ada, b"content,created\nx,2026/3/1 9:05\n", "t.csv")

    [memory] = memories.walk(ada, "ming")
    assert memory.created_at.isoformat() == "2026-03-01T09:05:00+00:00"


@given(st.text(max_size=8))
def test_what_is_guarded_from_formulas_comes_back(text):
    assert unguarded(guarded(text)) == text
    assert guarded(text)[:1] not in {"=", "+", "-", "@", "\t", "\r"}


# --- Markdown and ZIPs -----------------------------------------------------------------


def test_markdown_of_others_is_read(ada, bring):
    files = {
        "a/tea.md": "# Morning tea\n\nMing drinks *tea*.\n",
        "b.md": "---\nname: Deploys\ntags: [deploy, 发布]\ntype: project\n---\nOn Fridays\n",
        "c.md": "---\ntags:\n  - x\nimportance: 0.9\nlang: en\n---\n\nonly text",
        "d.md": "no front\n".encode("gb18030"),
        "e.md": "---\na: &a [x]\nb: [*a, *a]\n---\ntext",
        "f.md": "---\nname: empty\n---\n",
        "__MACOSX/g.md": "x", ".h.md": "x", "i.txt": "x",
    }  # fmt: skip

    _, imported = bring(ada, as_zip(files), "notes.zip")

    found = {memory.name: memory for memory in memories.walk(ada, "ming")}
    assert counts(imported) == {"new": 4, "error": 2}
    assert found["Morning tea"].content == "Ming drinks *tea*."
    assert (found["Deploys"].tags, found["Deploys"].type) == (["deploy", "发布"], "project")
    assert (found["c"].importance, found["c"].metadata) == (0.9, {"lang": "en"})
    assert found["d"].content == "no front"
    assert [row[2] for row in failed_rows(imported)] == ["file", "e.md", "f.md"]


def refusals():
    locked = bytearray(as_zip({"a.md": "x"}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(signature) + offset] |= 1
    bomb = as_zip({"a.md": b"0" * (60 * 1024 * 1024)})
    return {
        "locked": ("a.zip", bytes(locked), "password"),
        "slip": ("a.zip", as_zip({"../a.md": "x"}), "leads out"),
        "absolute": ("a.zip", as_zip({"/etc/a.md": "x"}), "leads out"),
        "drive": ("a.zip", as_zip({"C:\\a.md": "x"}), "leads out"),
        "bomb": ("a.zip", bomb, "Unpacked"),
        "damaged": ("a.zip", as_zip({"a.md": "x" * 99})[:40], "damaged"),
        "nothing in it": ("a.zip", as_zip({"a.txt": "x"}), "neither memories.jsonl"),
        "no zip": ("a.zip", b"hello", "is none"),
        "empty": ("a.csv", b"", "empty"),
        "no content": ("a.csv", b"name,text\na,b\n", "content"),
        "binary": ("a.csv", b"\x00\x01\x02\xff", "NUL"),
        "encoding": ("a.csv", b"content\n\xff\xff\xff\n", "GB18030"),
        "list": ("a.json", b'[{"content": "x"}]', "one memory a line"),
        "wide lines": ("a.jsonl", '{"a": 1}'.encode("utf-16"), "UTF-16"),
        "unknown": ("a.pdf", b"%PDF-1.7", "cannot be seen"),
    }  # fmt: skip


@pytest.mark.parametrize("case", refusals())
def test_what_cannot_be_imported_is_refused_with_words(db, settings, case):
    name, data, words = refusals()[case]
    before = set(settings.JOB_FILES_DIR.iterdir())

    with pytest.raises(BadUpload, match=words):
        uploads.keep(name, [data])

    assert set(settings.JOB_FILES_DIR.iterdir()) == before


def test_a_file_that_is_too_large_is_refused_while_it_comes(settings):
    settings.IMPORT_MAX_MB = 1
    pieces = iter([b"{}\n" * 350_000] * 3)

    with pytest.raises(BadUpload, match="more than 1 MB"):
        uploads.keep("a.jsonl", pieces)

    assert len(list(pieces)) == 2


def test_files_are_kept_for_us_alone(ada, bring):
    checked = bring(ada, as_lines(TEA), only_look=True)

    folder = job_files.folder_of(checked.payload["token"])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "upload").stat().st_mode & 0o777 == 0o600
    with pytest.raises(ValueError, match="token"):
        job_files.folder_of("../hippo.sqlite3")


def test_lines_of_all_sorts_are_told_apart(ada, bring):
    data = (
        b"\xef\xbb\xbf"
        + as_lines(TEA)
        + b"\n \n[1]\n\xff\n"
        + b'{"type":"user","content":"a\\u0000b"}\n'
    )

    checked, imported = bring(ada, data)

    assert counts(imported) == {"new": 1, "error": 3}
    assert [row[0] for row in failed_rows(imported)] == ["line", "4", "5", "6"]
    assert failed_rows(checked, importing.CHECK_FAILED) == failed_rows(imported)


# --- there and back --------------------------------------------------------------------


def live(agent, remember):
    """Give ming memories of several kinds with awkward texts."""
    remember(agent, "ming", "=1+1 支付\r\nmodule", name="-cmd|'/C calc'!A0", tags=["a,b", "发布"],
             description="\"quoted\", it's", importance=1 / 3, metadata={"a": [1, None]},
             pinned=True, due_at="2026-12-03T09:00:00Z")  # fmt: skip
    remember(agent, "ming", "  spaces \n\n# heading\n", name="'apostrophe", type="project")
    remember(agent, "ming", "a fact", name="x  y", kind="fact", status="paused",
             detail={"subject": "Ming", "predicate": "has", "object": "a \u2028 cat"})  # fmt: skip
    remember(agent, "ming", "plain", description="_so_", tags=[" x".strip(), "[y"])


def fields_of(agent, *, without=()):
    names = [name for name in (*DRAFT_FIELDS, "created_at", "updated_at", "version")
             if name not in without]  # fmt: skip
    return [
        {name: getattr(memory, name) for name in names} for memory in memories.walk(agent, "ming")
    ]


def exported(account, places, form, wanted=None):
    wanted = wanted or exporting.MemoryFilter()
    job = done(exporting.request(account, Choice(places, wanted, form), now=NOW))
    assert job.state == "done"
    return job, job_files.file_of(job, "export").read_bytes()


@pytest.mark.parametrize("form", ["jsonl", "csv", "markdown"])
def test_an_export_is_imported_elsewhere_with_nothing_lost(agent, account, remember, bring, form):
    live(agent, remember)
    other = make_agent("eve", agent.memory_config.backend)

    job, data = exported(account, ((agent, "ming"),), form)
    name = f"a.{exporting.FORMATS[form]}"
    _, imported = bring(other, data, name)

    assert job.result["memories"] == 4
    assert counts(imported) == {"new": 4}
    assert fields_of(other) == fields_of(agent)
    checked = bring(agent, data, name, only_look=True)
    assert counts(checked) == {"duplicate": 4}


def test_a_table_has_no_formula_and_begins_as_excel_wants_it(ada, account, remember):
    live(ada, remember)

    _, data = exported(account, ((ada, "ming"),), "csv")

    assert data.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert len(rows) == 5
    assert not [cell for row in rows for cell in row if cell[:1] in {"=", "+", "-", "@"}]
    assert {row[0][:1] for row in rows[1:]} == {"'"}  # ids, which Excel would round


def test_an_export_holds_what_the_filter_lets_through(ada, account, remember):
    remember(ada, "ming", "tea", tags=["drink"])
    remember(ada, "ming", "deploy")
    remember(ada, "ming", "old", tags=["drink"], status="trashed")
    remember(ada, "bob", "tea", tags=["drink"])

    wanted = exporting.MemoryFilter(tags=("drink",))
    _, data = exported(account, ((ada, "ming"),), "jsonl", wanted)

    assert [json.loads(line)["content"] for line in data.splitlines()] == ["tea"]


def test_everything_that_was_downloaded_comes_in_again(ada, grace, account, bring, remember):
    saved = remember(ada, "ming", "支付模块周五上线")
    memories.update(ada, "ming", saved.pk, {"content": "周四上线"}, actor=MING, now=LATER)
    remember(ada, "ming", "old", status="trashed")
    remember(grace, "ming", "Grace knows")
    packed = io.BytesIO()
    takeout.write_zip(packed, library.shelves_of(account))
    before = fields_of(ada), fields_of(grace), len(memories.history(ada, "ming", saved.pk))
    for agent in (ada, grace):
        Memory.objects.for_agent(agent).delete()

    _, imported = bring(ada, packed.getvalue(), "all.zip", places=((ada, "ming"), (grace, "ming")))

    assert counts(imported) == {"new": 3}
    assert (fields_of(ada), fields_of(grace)) == before[:2]
    assert len(memories.history(ada, "ming", saved.pk)) == before[2]


def test_the_markdown_of_everything_alone_comes_in_again(ada, account, bring, remember):
    live(ada, remember)
    packed = io.BytesIO()
    takeout.write_zip(packed, library.shelves_of(account))
    with zipfile.ZipFile(packed) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name.endswith(".md")}
    before = fields_of(ada)
    Memory.objects.for_agent(ada).delete()

    bring(ada, as_zip(files), "md.zip")

    assert fields_of(ada) == before


# --- nothing stays ---------------------------------------------------------------------


def test_erasing_somebody_takes_their_files_and_jobs_along(agent, account, bring, remember):
    remember(agent, "ming", "Ming drinks tea")
    checked, imported = bring(agent, as_lines(TEA, {"type": "?"}))
    export, _ = exported(account, ((agent, "ming"),), "jsonl")
    others = bring(agent, as_lines(TEA), places=((agent, "bob"),), only_look=True)
    tokens = [job.payload["token"] for job in (checked, imported, export)]
    job = receipts.request_erasure(account.pk, library.shelves_of(account), now=NOW)

    erased = done(job)

    assert erased.state == "done"
    assert erased.result["jobs"] == 3
    assert not [token for token in tokens if job_files.folder_of(token).exists()]
    assert set(Job.objects.values_list("pk", flat=True)) == {erased.pk, others.pk}
    assert job_files.folder_of(others.payload["token"]).exists()


def test_deleting_an_agent_takes_its_files_and_jobs_along(agent, bring, account):
    checked, _ = bring(agent, as_lines(TEA))

    agent.delete()

    assert not Job.objects.filter(kind__in=job_files.KINDS).exists()
    assert not job_files.folder_of(checked.payload["token"]).exists()
    assert erasure  # the signal does it


def test_files_go_after_a_week_and_strays_after_a_day(ada, account, bring):
    import os

    checked = bring(ada, as_lines(TEA), only_look=True)
    stray = job_files.make()
    fresh = job_files.make()
    old = (NOW - timedelta(days=400)).timestamp()
    for token in (stray, checked.payload["token"]):
        os.utime(job_files.folder_of(token), (old, old))
    Job.objects.filter(pk=checked.pk).update(finished_at=NOW)

    job_files.sweep(now=NOW + timedelta(days=6))
    after_six_days = job_files.folder_of(checked.payload["token"]).exists()
    job_files.sweep(now=NOW + timedelta(days=8))

    assert after_six_days
    assert not job_files.folder_of(checked.payload["token"]).exists()
    assert not job_files.folder_of(stray).exists()
    assert fresh


def test_reasons_are_told_in_the_language_of_who_asked(ada, bring):
    rows = as_lines({"content": "x", "name": "n" * 300}) + b"{not json\n[]\n"

    with translation.override("zh-hans"):
        checked = bring(ada, rows, only_look=True)

    reasons = [row["reason"] for row in importing.shown_rows(checked, "error")]
    assert "最多 255 个字符" in reasons[0]
    assert [reason for reason in reasons if "This is" in reason] == []
