"""Upkeep does what is due and nothing else, once, whatever becomes of the other stores."""

import time
from datetime import timedelta

import pytest
import time_machine
from django.db import OperationalError, connections

from agents.models import Agent, MemoryConfig
from memory.databases import known_aliases, store_alias
from memory.drafts import parse_draft
from memory.models import (
    ActorKind,
    IdempotencyRecord,
    Job,
    JobState,
    Memory,
    MemoryRevision,
    MemoryTerms,
    Scope,
    Store,
    StoreState,
)
from memory.services import job_kinds, jobs, maintenance, memories, upkeep
from memory.services.jobs import JobCancelled
from tests.conftest import MING, NOW, make_agent
from tests.memory.rows import assert_consistent, rows_of

INSTANT = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def trash_days(settings):
    """How long the trash is kept, as an operator may set it."""
    settings.TRASH_DAYS = 7
    return timedelta(days=7)


def do(kind, *, now=NOW):
    """Do a job from its beginning to its end and return its result."""
    run = jobs.claim(jobs.enqueue(kind, now=now).pk, now=now)
    result = job_kinds.KINDS[kind](run, now=now)
    assert run.finish(result)
    return result


def perform(job, *, now=NOW):
    """Do a job as a worker does."""
    with time_machine.travel(now):
        job_kinds.perform(job.pk)


def start_reindex(agent, **checkpoint):
    """Return a run that reindexes, its job as an earlier run left it."""
    job = job_kinds.enqueue_reindex(agent, now=NOW)
    Job.objects.filter(pk=job.pk).update(checkpoint=checkpoint, done=checkpoint.get("done", 0))
    return jobs.claim(job.pk, now=NOW)


def throw_away(agent, memory, *, now=NOW):
    memories.trash(agent, "ming", memory.pk, actor=MING, now=now)


def restore(agent, memory, *, now):
    return memories.restore(agent, "ming", memory.pk, actor=MING, now=now)


def statuses(agent):
    return {memory.name: memory.status for memory in memories.walk(agent)}


def names(agent):
    return set(statuses(agent))


def assert_sound(*agents):
    for agent in agents:
        assert list(maintenance.check(agent)) == []
        assert_consistent(agent)


def beside(agent):
    """Make another agent in the same store."""
    return make_agent("eve", agent.memory_config.backend)


def set_state(agent, state):
    Store.objects.using(store_alias(agent)).filter(agent_id=agent.pk).update(state=state)
    Scope.objects.for_agent(agent).update(state=state)


def note_request(agent, user_id, key, *, created_at):
    return IdempotencyRecord.objects.using(store_alias(agent)).create(
        scope=Scope.objects.of_user(agent, user_id).get(),
        key=key,
        fingerprint="0" * 64,
        outcome={"id": 1},
        created_at=created_at,
    )


def requests_of(agent):
    records = IdempotencyRecord.objects.using(store_alias(agent))
    return set(records.filter(scope__agent_id=agent.pk).values_list("key", flat=True))


# --- expire ----------------------------------------------------------------------------


def test_what_has_expired_goes_to_the_trash_with_a_revision(agent, remember, names_found):
    memory = remember(agent, "ming", "The demo is on Friday", name="Demo", expires_at=NOW + DAY)
    now = NOW + 2 * DAY

    result = do("expire", now=now)

    assert result == {"trashed": 1}
    (revision,) = memories.history(agent, "ming", memory.pk)
    assert (revision.actor_kind, revision.actor) == (ActorKind.SYSTEM, "hippo")
    assert (revision.reason, revision.created_at) == ("expired", now)
    assert (revision.version, revision.state["status"]) == (1, "active")
    (trashed,) = memories.walk(agent)
    assert (trashed.status, trashed.version, trashed.updated_at) == ("trashed", 2, now)
    assert trashed.expires_at == NOW + DAY
    assert names_found(agent, "ming", "demo", now=NOW) == []
    assert_sound(agent)


def test_what_has_not_expired_stays_as_it_is(agent, remember):
    eve = beside(agent)
    kept = [
        (agent, remember(agent, "ming", "Ming drinks green tea", pinned=True)),
        (agent, remember(agent, "bob", "Bob drinks coffee", expires_at=NOW + DAY)),
        (eve, remember(eve, "ming", "支付模块周五上线", expires_at=NOW + INSTANT)),
    ]
    remember(agent, "ming", "The demo is on Friday", expires_at=NOW - DAY, now=NOW - 2 * DAY)
    rows = [rows_of(owner, memory) for owner, memory in kept]

    assert do("expire") == {"trashed": 1}

    after = [rows_of(owner, memory) for owner, memory in kept]
    assert after[1:] == rows[1:]
    assert after[0][:3] == rows[0][:3]  # its scope counts one less
    assert_sound(agent, eve)


def test_a_memory_expires_at_its_very_moment(agent, remember):
    for name, moment in {"before": NOW - INSTANT, "at": NOW, "after": NOW + INSTANT}.items():
        remember(agent, "ming", f"{name} the moment", name=name, expires_at=moment, now=NOW - DAY)

    do("expire")

    assert statuses(agent) == {"before": "trashed", "at": "trashed", "after": "active"}
    assert do("expire", now=NOW + INSTANT) == {"trashed": 1}


def test_whatever_is_kept_expires_and_comes_back_as_it_was(agent, remember):
    expiry = {"expires_at": NOW, "now": NOW - DAY}
    kept = {
        status: remember(agent, "ming", f"A {status} note", name=status, **expiry)
        for status in ("active", "paused", "archived", "superseded")
    }
    for status, memory in kept.items():
        memories.update(agent, "ming", memory.pk, {"status": status}, actor=MING, now=NOW - HOUR)

    assert do("expire") == {"trashed": 4}

    for status, memory in kept.items():
        assert restore(agent, memory, now=NOW).status == status
    assert_sound(agent)


def test_a_memory_restored_after_it_expired_is_kept(agent, remember, names_found):
    memory = remember(agent, "ming", "green tea", name="Tea", expires_at=NOW, now=NOW - DAY)
    do("expire")

    restored = restore(agent, memory, now=NOW + HOUR)
    again = do("expire", now=NOW + DAY)

    assert restored.expires_at is None
    assert again == {"trashed": 0}
    assert names_found(agent, "ming", "tea", now=NOW + DAY) == ["Tea"]


def test_a_memory_restored_before_it_expires_expires_still(agent, remember):
    memory = remember(agent, "ming", "green tea", name="Tea", expires_at=NOW + DAY)
    throw_away(agent, memory)

    assert restore(agent, memory, now=NOW + HOUR).expires_at == NOW + DAY
    assert do("expire", now=NOW + 2 * HOUR) == {"trashed": 0}
    assert do("expire", now=NOW + DAY) == {"trashed": 1}


def test_expiring_twice_changes_nothing(agent, remember):
    memory = remember(agent, "ming", "green tea", expires_at=NOW, now=NOW - DAY)
    do("expire")
    rows = rows_of(agent, memory)

    assert do("expire", now=NOW + HOUR) == {"trashed": 0}

    assert rows_of(agent, memory) == rows


def test_what_was_thrown_away_does_not_expire(agent, remember):
    memory = remember(agent, "ming", "green tea", expires_at=NOW, now=NOW - DAY)
    throw_away(agent, memory, now=NOW - HOUR)
    rows = rows_of(agent, memory)

    assert do("expire") == {"trashed": 0}

    assert rows_of(agent, memory) == rows


def test_an_expiry_put_off_meanwhile_counts(agent, remember, monkeypatch):
    memory = remember(agent, "ming", "green tea", name="Tea", expires_at=NOW, now=NOW - DAY)
    trash = upkeep._trash_expired

    def late(*args):
        changes = {"expires_at": NOW + DAY}
        memories.update(agent, "ming", memory.pk, changes, actor=MING, now=NOW)
        return trash(*args)

    monkeypatch.setattr(upkeep, "_trash_expired", late)

    assert do("expire") == {"trashed": 0}

    assert statuses(agent) == {"Tea": "active"}


def test_many_chunks_of_several_users_expire_and_are_erased(agent, remember, trash_days):
    for user_id, count in {"ming": 230, "bob": 190}.items():
        drafts = [
            parse_draft(
                {"type": "project", "content": f"note {number}", "name": f"{user_id} {number}",
                 **({"expires_at": NOW.isoformat()} if number % 20 else {})}
            )
            for number in range(count)
        ]  # fmt: skip
        memories.save_batch(agent, user_id, drafts, now=NOW - DAY)
    kept = {f"ming {number}" for number in range(0, 230, 20)}
    kept |= {f"bob {number}" for number in range(0, 190, 20)}

    expired = do("expire")

    assert expired == {"trashed": 420 - len(kept)}
    assert Job.objects.latest("pk").done == 420 - len(kept)
    assert {name for name, status in statuses(agent).items() if status == "active"} == kept
    assert_sound(agent)

    assert do("purge_trash", now=NOW + trash_days) == {"erased": 420 - len(kept)}

    assert names(agent) == kept
    assert not MemoryRevision.objects.using(store_alias(agent)).exists()
    assert_sound(agent)


# --- purge_trash -----------------------------------------------------------------------


def test_what_has_been_in_the_trash_long_enough_is_erased_whole(agent, remember, trash_days):
    eve = beside(agent)
    old = remember(agent, "ming", "green tea", name="Old")
    done = {"actor": MING, "now": NOW}
    memories.update(agent, "ming", old.pk, {"content": "black tea"}, **done)
    throw_away(agent, old)
    newer = remember(agent, "ming", "coffee", name="Newer")
    throw_away(agent, newer, now=NOW + INSTANT)
    kept = [
        (agent, newer),
        (agent, remember(agent, "ming", "Ming deploys on Fridays", name="Kept")),
        (agent, remember(agent, "bob", "Bob drinks coffee")),
        (eve, remember(eve, "ming", "支付模块周五上线")),
    ]
    rows = [rows_of(owner, memory) for owner, memory in kept]

    result = do("purge_trash", now=NOW + trash_days)

    assert result == {"erased": 1}
    assert rows_of(agent, old)[:3] == [[], [], []]
    assert [rows_of(owner, memory) for owner, memory in kept] == rows
    assert_sound(agent, eve)
    assert do("purge_trash", now=NOW + trash_days) == {"erased": 0}
    assert do("purge_trash", now=NOW + trash_days + INSTANT) == {"erased": 1}


def test_the_trash_is_kept_for_thirty_days_if_nothing_is_set(agent, remember):
    throw_away(agent, remember(agent, "ming", "green tea"))

    assert do("purge_trash", now=NOW + 30 * DAY - INSTANT) == {"erased": 0}
    assert do("purge_trash", now=NOW + 30 * DAY) == {"erased": 1}


def test_a_stay_in_the_trash_begins_anew_after_a_restore(agent, remember, trash_days):
    memory = remember(agent, "ming", "green tea", name="Tea")
    throw_away(agent, memory)
    restore(agent, memory, now=NOW + DAY)
    assert do("purge_trash", now=NOW + 2 * trash_days) == {"erased": 0}

    throw_away(agent, memory, now=NOW + 2 * trash_days)

    assert do("purge_trash", now=NOW + 3 * trash_days - INSTANT) == {"erased": 0}
    assert do("purge_trash", now=NOW + 3 * trash_days) == {"erased": 1}


def test_a_memory_restored_meanwhile_is_not_erased(agent, remember, trash_days, monkeypatch):
    memory = remember(agent, "ming", "green tea", name="Tea")
    throw_away(agent, memory)
    purge = upkeep._purge

    def late(*args):
        restore(agent, memory, now=NOW + trash_days)
        return purge(*args)

    monkeypatch.setattr(upkeep, "_purge", late)

    assert do("purge_trash", now=NOW + trash_days) == {"erased": 0}

    assert statuses(agent) == {"Tea": "active"}
    assert len(memories.history(agent, "ming", memory.pk)) == 2
    assert_sound(agent)


def test_requests_are_forgotten_after_a_day(agent, remember):
    eve = beside(agent)
    for owner in (agent, eve):
        for user_id in ("ming", "bob"):
            remember(owner, user_id, "green tea")
            for key, age in {"old": DAY + INSTANT, "day": DAY, "new": HOUR}.items():
                note_request(owner, user_id, f"{user_id} {key}", created_at=NOW - age)

    result = do("purge_trash")

    assert result == {"erased": 0}
    kept = {"ming day", "ming new", "bob day", "bob new"}
    assert requests_of(agent) == requests_of(eve) == kept
    assert len(names(agent)) == 1


def test_many_requests_are_forgotten(agent, remember, monkeypatch):
    monkeypatch.setattr(upkeep, "_CHUNK", 3)
    remember(agent, "ming", "green tea")
    for number in range(10):
        note_request(agent, "ming", str(number), created_at=NOW - 2 * DAY)

    do("purge_trash")

    assert requests_of(agent) == set()


# --- what takes no writes --------------------------------------------------------------


@pytest.mark.parametrize("state", [state for state in StoreState if state != StoreState.OPEN])
def test_memories_that_take_no_writes_are_left_alone(agent, remember, trash_days, state):
    eve = beside(agent)
    frozen = []
    for owner in (agent, eve):
        due = remember(owner, "ming", "green tea", expires_at=NOW, now=NOW - DAY)
        trashed = remember(owner, "ming", "coffee", now=NOW - DAY)
        throw_away(owner, trashed, now=NOW - DAY)
        note_request(owner, "ming", "old", created_at=NOW - 2 * DAY)
        frozen += [due, trashed]
    set_state(agent, state)
    rows = [rows_of(agent, memory) for memory in frozen[:2]]
    now = NOW - DAY + trash_days

    assert do("expire", now=now) == {"trashed": 1}
    assert do("purge_trash", now=now) == {"erased": 1}

    assert [rows_of(agent, memory) for memory in frozen[:2]] == rows
    assert (requests_of(agent), requests_of(eve)) == ({"old"}, set())
    set_state(agent, StoreState.OPEN)
    assert do("expire", now=now) == {"trashed": 1}
    assert do("purge_trash", now=now) == {"erased": 1}
    assert requests_of(agent) == set()


def test_a_store_that_freezes_meanwhile_is_left_and_tried_again(agent, remember, monkeypatch):
    memory = remember(agent, "ming", "green tea", expires_at=NOW, now=NOW - DAY)
    rows = rows_of(agent, memory)[:3]
    trash = upkeep._trash_expired

    def late(*args):
        set_state(agent, StoreState.FROZEN)
        return trash(*args)

    monkeypatch.setattr(upkeep, "_trash_expired", late)
    job = jobs.enqueue("expire", now=NOW)

    with pytest.raises(upkeep.Incomplete):
        perform(job)

    assert rows_of(agent, memory)[:3] == rows
    assert Job.objects.get().state == JobState.PENDING


# --- stores that fail ------------------------------------------------------------------


def leads_outside(settings):
    return "../outside.db"


def cannot_be_opened(settings):
    (settings.MEMORY_DIR / "shut.db.lock").mkdir(exist_ok=True)
    return "shut.db"


FAULTS = [leads_outside, cannot_be_opened]


@pytest.fixture
def eve(settings, request):
    """An agent whose store fails, and who comes first."""
    eve = make_agent("eve", "sqlite")
    aliases = connections.settings
    MemoryConfig.objects.filter(agent=eve).update(sqlite_path=request.param(settings))
    yield eve
    connections.settings = aliases  # or every test after this one would empty that store


@pytest.mark.parametrize("eve", FAULTS, indirect=True)
@pytest.mark.parametrize("kind", ["expire", "purge_trash"])
def test_a_store_that_fails_stops_no_other_and_is_tried_again(eve, agent, remember, kind):
    memory = remember(agent, "ming", "tea", expires_at=NOW - 60 * DAY, now=NOW - 70 * DAY)
    if kind == "purge_trash":
        throw_away(agent, memory, now=NOW - 60 * DAY)
    job = jobs.enqueue(kind, now=NOW)

    with pytest.raises(upkeep.Incomplete):
        perform(job)

    waits = Job.objects.get()
    assert (waits.state, waits.attempts, waits.done) == (JobState.PENDING, 1, 1)
    assert waits.error.startswith("Incomplete: eve: ")
    assert agent.name not in waits.error
    assert statuses(agent) == ({memory.name: "trashed"} if kind == "expire" else {})

    MemoryConfig.objects.filter(agent=eve).update(sqlite_path="memory.db")  # it is mended
    perform(job)

    done = Job.objects.get()
    assert (done.state, done.attempts, done.error) == (JobState.DONE, 2, "")
    assert list(done.result.values()) == [1]  # all of its runs


@pytest.mark.parametrize("eve", FAULTS, indirect=True)
def test_a_store_that_fails_stops_no_other_from_being_optimized(eve, agent):
    job = jobs.enqueue("optimize_indexes", now=NOW)

    with pytest.raises(upkeep.Incomplete):
        perform(job)

    waits = Job.objects.get()
    aliases = known_aliases()
    assert (waits.state, waits.done, waits.total) == (
        JobState.PENDING, len(aliases) - 1, len(aliases),
    )  # fmt: skip
    assert waits.error.startswith("Incomplete: sqlite:")


def test_an_error_amid_a_store_keeps_what_was_done(agent, remember, monkeypatch):
    eve = beside(agent)
    for owner in (agent, eve):
        for number in range(5):
            remember(owner, "ming", f"tea {number}", expires_at=NOW, now=NOW - DAY)
    monkeypatch.setattr(upkeep, "_CHUNK", 2)
    trash, calls = upkeep._trash_expired, []

    def fail_once(*args):
        calls.append(args)
        if len(calls) == 2:
            raise OperationalError("gone")
        return trash(*args)

    monkeypatch.setattr(upkeep, "_trash_expired", fail_once)
    job = jobs.enqueue("expire", now=NOW)

    with pytest.raises(upkeep.Incomplete):
        perform(job)

    trashed = [list(statuses(owner).values()).count("trashed") for owner in (agent, eve)]
    assert trashed == [2, 5]
    perform(job)
    assert set(statuses(agent).values()) == {"trashed"}
    assert Job.objects.get().result == {"trashed": 10}
    assert_sound(agent, eve)


def test_an_agent_without_a_memory_stops_nothing(agent, remember):
    Agent.objects.create(name="newborn")
    remember(agent, "ming", "tea", expires_at=NOW, now=NOW - DAY)

    assert do("expire") == {"trashed": 1}
    assert do("purge_trash") == {"erased": 0}


# --- reindex ---------------------------------------------------------------------------


def lay(agent, *user_ids, count=3):
    """Save `count` memories for each user and return the users' scopes in order."""
    for user_id in user_ids:
        drafts = [
            parse_draft({"type": "user", "content": f"支付 note {number}", "name": str(number)})
            for number in range(count)
        ]
        memories.save_batch(agent, user_id, drafts, now=NOW)
    return [Scope.objects.of_user(agent, user_id).get() for user_id in user_ids]


def wear_out(agent):
    """Mark every index row of an agent as made by an analyzer of old."""
    for scope in Scope.objects.for_agent(agent):
        MemoryTerms.objects.of_scope(scope).update(analyzer_version=0)


def worn_out(agent):
    """Return the users whose index rows are still as they were."""
    return {
        scope.user_id
        for scope in Scope.objects.for_agent(agent)
        if MemoryTerms.objects.of_scope(scope).filter(analyzer_version=0).exists()
    }


def test_a_reindex_renews_every_row_of_its_agent_and_no_other(agent):
    eve = beside(agent)
    for owner in (agent, eve):
        lay(owner, "ming", "bob")
        wear_out(owner)
    job = job_kinds.enqueue_reindex(agent, now=NOW)

    perform(job)

    job = Job.objects.get()
    assert (job.state, job.result) == (JobState.DONE, {"reindexed": 6})
    assert (job.step, job.done, job.total) == (agent.name, 6, 6)
    assert (worn_out(agent), worn_out(eve)) == (set(), {"ming", "bob"})
    assert_sound(agent)


def test_agents_are_reindexed_apart_and_each_once(agent):
    eve = beside(agent)

    ids = [job_kinds.enqueue_reindex(each, now=NOW).pk for each in (agent, eve, agent)]

    assert ids[0] == ids[2] != ids[1]


def test_a_reindex_goes_on_after_the_scope_of_its_checkpoint(agent, monkeypatch):
    ming, _bob = lay(agent, "ming", "bob")
    wear_out(agent)
    run = start_reindex(agent, scope=ming.pk, done=3)
    renew, seen = maintenance._reindex, []

    def watched(*args):
        seen.append(Job.objects.values_list("done", "total").get())
        renew(*args)

    monkeypatch.setattr(maintenance, "_reindex", watched)

    result = upkeep.reindex(run, now=NOW)

    assert seen == [(3, 6)]
    assert result == {"reindexed": 6}
    assert (run.job.done, run.job.total) == (6, 6)
    assert worn_out(agent) == {"ming"}


@pytest.mark.parametrize("does_grow", [True, False])
def test_a_reindex_that_goes_on_stays_within_its_total(agent, does_grow):
    ming, _bob = lay(agent, "ming", "bob", count=5)
    run = start_reindex(agent, scope=ming.pk, done=5)
    if does_grow:
        lay(agent, "bob", count=2)
    else:
        memories.purge(agent, "ming", Memory.objects.in_scope(agent, "ming").first().pk)

    upkeep.reindex(run, now=NOW)

    run.job.refresh_from_db()
    assert run.job.done == run.job.total == (12 if does_grow else 10)


def test_memories_saved_during_a_reindex_do_not_run_above_its_total(agent, monkeypatch):
    lay(agent, "ming", "bob")
    run = start_reindex(agent)
    renew, seen = maintenance._reindex, []

    def meanwhile(agent, scope, ids):
        if not seen:
            lay(agent, "bob", count=4)
        renew(agent, scope, ids)
        seen.append(Job.objects.values_list("done", "total").get())

    monkeypatch.setattr(maintenance, "_reindex", meanwhile)

    upkeep.reindex(run, now=NOW)

    seen.append(Job.objects.values_list("done", "total").get())
    assert seen == [(0, 6), (3, 6), (10, 10)]


def test_a_cancelled_reindex_goes_on_where_it_ended(agent, monkeypatch):
    lay(agent, "ming", "bob", "mallory", count=4)
    wear_out(agent)
    monkeypatch.setattr(maintenance, "_CHUNK", 2)
    run = start_reindex(agent)
    renew, chunks = maintenance._reindex, []

    def cancel_amid(*args):
        renew(*args)
        chunks.append(args)
        if len(chunks) == 3:
            jobs.cancel(run.job.pk, now=NOW)

    monkeypatch.setattr(maintenance, "_reindex", cancel_amid)
    with pytest.raises(JobCancelled):
        upkeep.reindex(run, now=NOW)
    run.cancelled()
    wear_out(agent)

    jobs.retry(run.job.pk, now=NOW)
    perform(run.job)

    job = Job.objects.get()
    assert (job.state, job.done, job.total) == (JobState.DONE, 12, 12)
    assert worn_out(agent) == {"ming"}  # done before
    assert len(chunks) == 3 + 4
    assert_sound(agent)


def test_a_reindex_beats_through_its_long_statements(agent, monkeypatch):
    lay(agent, "ming")
    run = start_reindex(agent)
    refill, silent = maintenance.fts.refill_index, []

    def slowly(connection):
        Job.objects.update(heartbeat_at=NOW - HOUR)
        time.sleep(0.5)
        silent.extend(Job.objects.filter(heartbeat_at=NOW - HOUR))
        refill(connection)

    monkeypatch.setattr(jobs, "_BEAT_SECONDS", 0.01)
    monkeypatch.setattr(maintenance.fts, "refill_index", slowly)

    upkeep.reindex(run, now=NOW)

    assert silent == []


def test_an_agent_that_is_gone_has_nothing_to_reindex(agent):
    job = job_kinds.enqueue_reindex(agent, now=NOW)
    Agent.objects.filter(pk=agent.pk).delete()

    perform(job)

    assert (Job.objects.get().state, Job.objects.get().result) == (
        JobState.DONE, {"reindexed": 0},
    )  # fmt: skip


def test_a_reindex_whose_store_fails_is_tried_again(ada):
    job = job_kinds.enqueue_reindex(ada, now=NOW)
    MemoryConfig.objects.filter(agent=ada).update(sqlite_path="../outside.db")

    with pytest.raises(Exception, match="outside"):
        perform(job)

    assert Job.objects.get().state == JobState.PENDING


def test_jobs_that_ended_long_ago_are_forgotten(ada):
    days = upkeep.JOB_DAYS
    old = {"state": JobState.DONE, "finished_at": NOW - timedelta(days=days, seconds=1)}
    Job.objects.create(kind="expire", key="old", **old)
    Job.objects.create(kind="expire", key="young", **{**old, "finished_at": NOW})
    waits = Job.objects.create(
        kind="reindex", key="waits", created_at=NOW - timedelta(days=2 * days)
    )

    do("purge_trash")

    assert set(Job.objects.values_list("key", flat=True)) == {"young", "waits", "purge_trash"}
    assert Job.objects.get(key="waits") == waits
