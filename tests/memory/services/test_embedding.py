"""Vectors of what was saved: made beside all else, each once, whatever the model does."""

import itertools
import threading
import time
from contextlib import suppress
from datetime import timedelta

import time_machine
from django.db import OperationalError, connections
from django.utils import timezone

from memory.databases import store_alias
from memory.errors import HippoError
from memory.indexing import EMBEDDED_CHARS, embedding_text
from memory.llm.embeddings import EmbeddingFailed
from memory.models import Job, JobState, MemoryVector, Scope, Store, StoreState
from memory.retrieval import embedder
from memory.services import (
    backlog,
    embedding,
    erasure,
    job_kinds,
    job_list,
    jobs,
    maintenance,
    memories,
)
from memory.services.embedding import Tally
from memory.services.moves import moving
from tests.conftest import MING, NOW
from tests.memory.letters import Letters
from tests.memory.rows import assert_consistent

DONE = {"actor": MING, "now": NOW}


def rows_of(agent):
    """Return an agent's rows by their memory's name."""
    scopes = list(Scope.objects.for_agent(agent).values_list("pk", flat=True))
    rows = MemoryVector.objects.using(store_alias(agent)).filter(scope_id__in=scopes)
    return {row.memory.name: row for row in rows.select_related("memory")}


def assert_embedded(agent, model):
    """Assert that every row holds what `model` makes of the text as it is now."""
    rows = rows_of(agent)
    scopes = dict(Scope.objects.for_agent(agent).values_list("pk", "vector_stamp"))
    for row in rows.values():
        assert (row.model, row.dimension) == (model.model, model.dimension)
        assert bytes(row.vector) == model.vector_of(row.memory).tobytes()
        assert (row.attempts, row.stamp <= scopes[row.scope_id]) == (0, True)
    return len(rows)


def embed(now=NOW):
    """Do the job and return it; its error is in its row."""
    job = jobs.enqueue("embed", now=now)
    with suppress(EmbeddingFailed, HippoError):
        job_kinds.perform(job.pk)
    job.refresh_from_db()
    return job


# --- what is embedded ------------------------------------------------------------------


def test_what_was_saved_gets_its_vector(agent, letters, remember):
    remember(agent, "ming", "Ming deploys on Fridays", name="deploys")
    remember(agent, "bob", "支付模块周五上线", name="支付")

    job = embed()

    assert (job.state, job.result) == ("done", {"embedded": 2, "refused": 0})
    assert (job.done, job.total) == (2, 2)
    assert assert_embedded(agent, letters) == 2
    assert all(row.stamp == row.memory.scope.vector_stamp for row in rows_of(agent).values())


def test_what_has_its_vector_is_not_asked_for_again(agent, letters, remember):
    remember(agent, "ming", "Ming deploys on Fridays")
    embed()
    scope = Scope.objects.for_agent(agent).get()

    embed()

    assert len(letters.asked) == 1
    assert Scope.objects.for_agent(agent).get().vector_stamp == scope.vector_stamp


def test_a_changed_text_is_embedded_anew_and_the_trash_has_no_row(agent, letters, remember):
    memory = remember(agent, "ming", "Ming deploys on Fridays")
    embed()

    memories.update(agent, "ming", memory.pk, {"content": "Ming deploys on Mondays"}, **DONE)
    assert [row.model for row in rows_of(agent).values()] == [""]
    embed()
    assert assert_embedded(agent, letters) == 1

    memories.trash(agent, "ming", memory.pk, **DONE)
    assert rows_of(agent) == {}
    memories.restore(agent, "ming", memory.pk, **DONE)
    embed()
    assert assert_embedded(agent, letters) == 1
    assert_consistent(agent)


def test_the_memories_of_an_agent_that_is_off_are_embedded(agent, letters, remember):
    remember(agent, "ming", "Ming deploys on Fridays")
    agent.memory_config.enabled = False
    agent.memory_config.save()

    embed()

    assert assert_embedded(agent, letters) == 1


def test_of_a_long_text_the_beginning_is_embedded(ada, letters, remember):
    memory = remember(ada, "ming", "é" * 5_000, name="a log", description="pasted")

    embed()

    (text,) = letters.asked[0]
    assert text == embedding_text(memory)
    assert text.startswith("a log. pasted. é")
    assert len(text) == EMBEDDED_CHARS


def test_many_users_are_embedded_in_chunks(agent, letters, remember, monkeypatch):
    monkeypatch.setattr(embedding, "_CHUNK", 3)
    for number in range(8):
        remember(agent, f"user {number % 3}", f"note {number}", name=f"note {number}")

    job = embed()

    assert [len(texts) for texts in letters.asked] == [3, 3, 2]
    assert (job.done, job.total) == (8, 8)
    assert assert_embedded(agent, letters) == 8


def test_another_model_replaces_vectors_one_by_one(agent, letters, remember, monkeypatch):
    monkeypatch.setattr(embedding, "_CHUNK", 2)
    for number in range(5):
        remember(agent, "ming", f"note {number}", name=f"note {number}")
    embed()
    other, made = Letters("a-later-model", 4), []
    monkeypatch.setattr(embedder, "current", lambda: other)
    other.meanwhile = lambda: made.append(sorted(row.model for row in rows_of(agent).values()))

    embed()

    assert made[0] == ["letters"] * 5
    assert made[1] == ["a-later-model"] * 2 + ["letters"] * 3
    assert assert_embedded(agent, other) == 5


def test_a_model_that_changes_meanwhile_does_the_rest_and_then_all(
    agent, letters, remember, monkeypatch
):
    monkeypatch.setattr(embedding, "_CHUNK", 2)
    for number in range(5):
        remember(agent, "ming", f"note {number}", name=f"note {number}")
    other = Letters("other", 4)
    letters.meanwhile = lambda: monkeypatch.setattr(embedder, "current", lambda: other)

    job = embed()

    assert len(letters.asked) == 1
    assert (job.state, assert_embedded(agent, other)) == ("done", 5)


# --- what changes meanwhile ------------------------------------------------------------


def once(act):
    """Return what does `act` the first time it is called."""
    left = [act]
    return lambda: left.pop()() if left else None


def test_a_text_that_changes_meanwhile_does_not_get_the_old_ones_vector(agent, letters, remember):
    memory = remember(agent, "ming", "Ming deploys on Fridays", name="deploys")
    remember(agent, "ming", "Ming drinks tea", name="tea")
    changes = {"content": "abcdefgh abcdefgh"}
    letters.meanwhile = once(lambda: memories.update(agent, "ming", memory.pk, changes, **DONE))

    assert embed().result == {"embedded": 1, "refused": 0}
    assert {name: row.model for name, row in rows_of(agent).items()} == {
        "deploys": "", "tea": "letters",
    }  # fmt: skip
    embed()

    assert assert_embedded(agent, letters) == 2
    assert_consistent(agent)


def test_what_goes_and_comes_back_meanwhile_is_embedded_as_it_came_back(agent, letters, remember):
    memory = remember(agent, "ming", "Ming deploys on Fridays", name="deploys")

    def go_and_come_back():
        memories.trash(agent, "ming", memory.pk, **DONE)
        memories.restore(agent, "ming", memory.pk, **DONE)

    letters.meanwhile = once(go_and_come_back)

    assert embed().result["embedded"] == 0
    embed()
    assert assert_embedded(agent, letters) == 1


def test_what_goes_meanwhile_leaves_no_row(agent, letters, remember):
    memory = remember(agent, "ming", "Ming deploys on Fridays")
    letters.meanwhile = once(lambda: memories.trash(agent, "ming", memory.pk, **DONE))

    assert embed().state == "done"

    assert rows_of(agent) == {}
    assert_consistent(agent)


def test_a_user_who_is_erased_meanwhile_leaves_no_row(agent, letters, remember):
    remember(agent, "ming", "Ming deploys on Fridays")
    alias = store_alias(agent)
    scope = Scope.objects.for_agent(agent).get()
    letters.meanwhile = once(lambda: erasure.erase_scope(scope))

    assert embed().state == "done"

    assert not MemoryVector.objects.using(alias).exists()


def test_what_is_shut_meanwhile_waits_until_it_is_open(agent, letters, remember):
    remember(agent, "ming", "Ming deploys on Fridays")
    alias = store_alias(agent)

    def set_state(state):
        Store.objects.using(alias).filter(agent_id=agent.pk).update(state=state)
        Scope.objects.for_agent(agent).update(state=state)

    letters.meanwhile = once(lambda: set_state(StoreState.FROZEN))

    assert embed().result["embedded"] == 0
    assert backlog.sweep(now=NOW) is None
    assert len(letters.asked) == 1
    set_state(StoreState.OPEN)
    assert backlog.sweep(now=NOW) is not None
    embed()

    assert assert_embedded(agent, letters) == 1


def test_saves_go_on_beside_it_and_every_vector_is_that_of_its_text(agent, letters, remember):
    errors, is_done = [], threading.Event()
    names = map(str, itertools.count())

    def write(user):
        try:
            for number in range(25):
                saved = remember(agent, user, f"note {number} of {user}", name=next(names))
                if number % 3 == 0:
                    changes = {"content": f"abc {number} defgh {user}"}
                    memories.update(agent, user, saved.pk, changes, **DONE)
                if number % 7 == 0:
                    memories.trash(agent, user, saved.pk, **DONE)
        except Exception as error:  # noqa: BLE001
            errors.append(error)
        finally:
            connections.close_all()

    def keep_embedding():
        try:
            while not is_done.is_set():
                rows = backlog.of_store(store_alias(agent))
                list(embedding.embed_rows(rows, letters, Tally()))
        except Exception as error:  # noqa: BLE001
            errors.append(error)
        finally:
            connections.close_all()

    writers = [threading.Thread(target=write, args=[user]) for user in ("ming", "ming", "bob")]
    # two at once: a job, and an operator at the command line
    embedders = [threading.Thread(target=keep_embedding) for _ in range(2)]
    for thread in [*writers, *embedders]:
        thread.start()
    for thread in writers:
        thread.join()
    is_done.set()
    for thread in embedders:
        thread.join()
    embed()

    assert errors == []
    assert assert_embedded(agent, letters) == 3 * (25 - 4)
    assert_consistent(agent)
    assert list(maintenance.check(agent)) == []


# --- a model that fails ----------------------------------------------------------------


def test_a_text_that_is_refused_holds_up_no_other(agent, letters, remember):
    for number in range(20):
        remember(agent, "ming", f"note {number}", name=f"note {number}")
    letters.refused = {"note 3", "note 11"}

    job = embed()

    assert (job.state, job.result) == ("done", {"embedded": 18, "refused": 2})
    rows = rows_of(agent)
    assert {name for name, row in rows.items() if not row.model} == letters.refused
    assert {name: row.attempts for name, row in rows.items() if row.attempts} == {
        "note 3": 1, "note 11": 1,
    }  # fmt: skip


def test_a_refused_text_is_tried_again_after_longer_and_longer_waits(
    ada, letters, remember, monkeypatch
):
    clock = [0.0]
    monkeypatch.setattr(backlog.time, "monotonic", lambda: clock[0])
    remember(ada, "ming", "note", name="note")
    letters.refused = {"note"}
    tried, attempts = [], 0
    for minute in range(4 * 24 * 60):
        clock[0] = 60.0 * minute
        if attempts in backlog.due_attempts():
            embed()
            tried.append(minute)
            attempts = rows_of(ada)["note"].attempts

    waits = [later - earlier for earlier, later in itertools.pairwise(tried)]
    assert waits[:7] == [2, 2, 4, 8, 16, 32, 64]
    assert waits[8:] == [24 * 60, 24 * 60]


def test_a_model_that_is_down_is_no_texts_fault_and_nothing_is_lost(agent, letters, remember):
    for number in range(5):
        remember(agent, "ming", f"note {number}", name=f"note {number}")
    letters.is_down = True

    job = embed()

    assert (job.state, job.error) == ("pending", "EmbeddingFailed: The model says no.")
    assert {(row.model, row.attempts) for row in rows_of(agent).values()} == {("", 0)}
    letters.is_down = False
    job_kinds.perform(job.pk)
    assert assert_embedded(agent, letters) == 5


def test_an_outage_in_the_middle_keeps_what_was_made(agent, letters, remember, monkeypatch):
    monkeypatch.setattr(embedding, "_CHUNK", 2)
    for number in range(6):
        remember(agent, "ming", f"note {number}", name=f"note {number}")
    letters.meanwhile = lambda: setattr(letters, "is_down", len(letters.asked) > 2)

    job = embed()

    assert job.state == "pending"
    assert sorted(row.model for row in rows_of(agent).values()) == [""] * 2 + ["letters"] * 4
    assert (job.done, job.total) == (4, 6)


def test_an_outage_is_one_job_however_long_it_is(ada, letters, remember):
    remember(ada, "ming", "Ming deploys on Fridays")
    letters.is_down = True
    with time_machine.travel(NOW, tick=False) as clock:
        for minute in range(70):
            letters.is_down = minute < 60
            clock.move_to(NOW + timedelta(minutes=minute))
            job = backlog.sweep(now=timezone.now())
            if job and job.state == JobState.PENDING:
                embed(timezone.now())
            if minute == 59:
                tries = len(letters.asked)

    assert 25 <= tries <= 35  # five in five minutes, then none for five
    assert Job.objects.get().state == JobState.DONE
    assert assert_embedded(ada, letters) == 1


def test_a_model_that_gives_another_length_from_now_on_does_all_anew(agent, letters, remember):
    for number in range(5):
        remember(agent, "ming", f"note {number}", name=f"note {number}")
    embed()
    stamp = Scope.objects.for_agent(agent).get().vector_stamp
    remember(agent, "bob", "Bob drinks tea", name="tea")
    letters.dimension = 4

    embed()
    half = {row.memory.scope.user_id: row for row in rows_of(agent).values()}
    embed()

    assert (half["ming"].model, half["bob"].dimension) == ("", 4)
    assert half["ming"].stamp > stamp
    assert assert_embedded(agent, letters) == 6


def test_a_length_that_comes_and_goes_is_a_failure(agent, letters, remember):
    remember(agent, "ming", "Ming deploys on Fridays", name="deploys")
    embed()
    remember(agent, "ming", "Ming drinks tea", name="tea")
    lengths = iter([4, 8])
    letters.meanwhile = lambda: setattr(letters, "dimension", next(lengths))

    job = embed()

    assert "several lengths" in job.error
    assert {name: row.dimension for name, row in rows_of(agent).items()} == {"deploys": 8, "tea": 0}


def test_a_store_that_is_down_holds_up_no_other(ada, grace, letters, remember, monkeypatch):
    for agent in (ada, grace):
        remember(agent, "ming", "Ming deploys on Fridays")

    def open_store(alias):
        if alias == "mysql":
            raise OperationalError(2003, "no MySQL here")

    monkeypatch.setattr(embedding, "open_store", open_store)

    job = embed()

    assert (job.state, "no MySQL here" in job.error) == ("pending", True)
    assert assert_embedded(ada, letters) == 1
    assert [row.model for row in rows_of(grace).values()] == [""]


# --- who asks for it -------------------------------------------------------------------


def test_without_a_model_nothing_is_left_and_a_job_does_nothing(agent, remember):
    remember(agent, "ming", "Ming deploys on Fridays")

    assert backlog.sweep(now=NOW) is None
    assert embed().result == {"embedded": 0, "refused": 0}


def test_the_sweep_leaves_a_job_only_where_something_waits(agent, letters, remember):
    assert backlog.sweep(now=NOW) is None
    remember(agent, "ming", "Ming deploys on Fridays")

    job = backlog.sweep(now=NOW)

    assert backlog.sweep(now=NOW) == job
    job_kinds.perform(job.pk)
    assert backlog.sweep(now=NOW) is None


def test_of_the_jobs_that_ended_well_the_last_is_kept(ada, letters):
    first, second = embed(), embed()
    Job.objects.filter(pk=second.pk).update(state=JobState.FAILED)

    third = embed()

    assert list(Job.objects.values_list("pk", flat=True)) == [third.pk, second.pk]
    assert first.pk < second.pk


def test_many_saves_ask_once_and_none_of_them_writes_a_job(
    agent, letters, remember, settings, monkeypatch
):
    settings.EMBEDDINGS = "embedded"
    monkeypatch.setattr(backlog, "WAIT_SECONDS", 0.3)
    for number in range(5):
        remember(agent, "ming", f"note {number}")
    left = Job.objects.count()
    wait_until(Job.objects.exists)
    asked = Job.objects.get()
    job_kinds.perform(asked.pk)
    remember(agent, "ming", "one more")
    wait_until(lambda: Job.objects.exclude(pk=asked.pk).exists())
    embed()

    assert left == 0
    assert assert_embedded(agent, letters) == 6


def wait_until(is_so, seconds=10):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


# --- what becomes of vectors -----------------------------------------------------------


def test_a_move_takes_vectors_along_and_old_copies_get_none(ada, letters, remember):
    remember(ada, "ming", "Ming deploys on Fridays", name="deploys")
    embed()
    remember(ada, "ming", "Ming drinks tea", name="tea")
    job = moving.enqueue(ada, backend="mysql", sqlite_path="", now=NOW)

    job_kinds.perform(job.pk)

    there = type(ada).objects.named("ada")
    assert {name: row.model for name, row in rows_of(there).items()} == {
        "deploys": "letters", "tea": "",
    }  # fmt: skip
    embed()
    assert assert_embedded(there, letters) == 2
    assert letters.asked[1:] == [["tea. Ming drinks tea"]]
    assert list(maintenance.check(there)) == []


def test_what_waits_is_found_by_an_index_however_much_has_a_vector(agent, letters, remember):
    for number in range(200):
        remember(agent, "ming", f"note {number}", name=f"note {number}")
    embed()
    remember(agent, "ming", "Ming deploys on Fridays")
    if agent.name == "grace":  # InnoDB counts anew a while after many were written
        with connections[store_alias(agent)].cursor() as cursor:
            cursor.execute("ANALYZE TABLE memory_memoryvector")
    rows = backlog.of_store(store_alias(agent)).filter(attempts__in=[0, 1])
    chunk = rows.filter(model="", memory__gt=-1).order_by("memory")[:64]

    plans = [rows.pending("letters").explain(), chunk.explain()]

    assert all("vector_by_model" in plan for plan in plans), plans
    assert not any("TEMP B-TREE" in plan or "sort" in plan.lower() for plan in plans), plans


def test_a_few_vectors_are_no_news_in_the_head_of_every_page(db, django_user_model):
    olga = django_user_model.objects.create_user("olga", is_staff=True)
    job = jobs.enqueue("embed", now=NOW)
    shown = []
    for total in (None, 3, 5_000):
        Job.objects.filter(pk=job.pk).update(total=total)
        shown.append(len(job_list.at_work(olga)))

    assert shown == [0, 0, 1]
