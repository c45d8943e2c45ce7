"""Moving: all of an agent and nothing of another's; whatever fails, one store is open."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import OperationalError

from agents.models import Agent, AgentNotErased, MemoryConfig
from memory import databases
from memory.databases import Place, agent_at, known_aliases, store_alias
from memory.drafts import parse_draft
from memory.errors import (
    BackendUnavailable,
    HippoError,
    InvalidMemory,
    MoveRefused,
    StoreNotOpen,
    WouldStrandMemories,
)
from memory.filters import MemoryFilter
from memory.models import (
    FormerStore,
    IdempotencyRecord,
    Job,
    Memory,
    MemoryRevision,
    MemoryTerms,
    Scope,
    Store,
)
from memory.services import job_kinds, jobs, maintenance, memories, writing
from memory.services.moves import agreement, copying, moving, placing
from tests.conftest import MING, NOW, make_agent
from tests.memory.rows import assert_consistent, row_counts, rows_of

LATER = NOW + timedelta(days=1)
OTHER = Place("sqlite", "other.db")
PLACES = {
    "sqlite to mysql": (Place("sqlite", "memory.db"), Place("mysql", "")),
    "mysql to sqlite": (Place("mysql", ""), Place("sqlite", "memory.db")),
    "to another file": (Place("sqlite", "memory.db"), OTHER),
}
ODD_USERS = ["team/anna", " ", "u1", "u1 ", "U1", "ж-用户-🙂", "'; --", "%", "🙂" * 255]


@pytest.fixture(scope="module", autouse=True)
def other_file(django_db_setup, django_db_blocker):
    """Open the other file once: Django's tests allow only databases known before they begin."""
    with django_db_blocker.unblock():
        databases.migrate_store(OTHER.alias())


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Let a handful of memories be several chunks."""
    monkeypatch.setattr(copying, "CHUNK", 2)
    monkeypatch.setattr(copying, "_RANGE", 5)
    monkeypatch.setattr(agreement, "_CHUNK", 2)


@pytest.fixture(params=PLACES, ids=str)
def way(request):
    return PLACES[request.param]


@pytest.fixture
def target(way):
    return way[1]


@pytest.fixture
def agent(way, db):
    """An agent that is about to move `way`."""
    return Agent.objects.create_agent("ada", language="en", **fields(way[0]))


def fields(place):
    return {"backend": place.backend, "sqlite_path": place.sqlite_path}


def again(agent):
    """Return the agent as it is configured now."""
    return Agent.objects.named(agent.name)


def move(agent, place, *, now=NOW):
    """Move, and return the job as it ended."""
    job = moving.enqueue(agent, **fields(place), now=now)
    with suppress(HippoError, OperationalError):
        job_kinds.perform(job.pk)
    job.refresh_from_db()
    return job


def moved(agent, place):
    job = move(agent, place)
    assert (job.state, job.error) == ("done", "")
    return again(agent)


def fill(agent, remember):
    """Save a little of everything; return the memory that has a history."""
    for user_id in ODD_USERS:
        remember(agent, user_id, f"tea of {user_id}", tags=["one", "two"])
    drafts = [parse_draft({"type": "user", "content": f"支付模块 note {n}"}) for n in range(7)]
    saved = memories.save_batch(agent, "ming", drafts, now=NOW)
    kept = remember(
        agent, "ming", "Ming deploys on Fridays", name="Deploys", importance=0.1 + 0.2,
        metadata={"big": 2**62, "one": 1, "true": True, "float": 1.0, "b": 1, "a": [None]},
        expires_at="2031-01-01T00:00:00.123456Z",
    )  # fmt: skip
    for number in range(3):
        changes = {"content": f"Ming deploys on day {number}"}
        memories.update(agent, "ming", kept.pk, changes, actor=MING, now=LATER, reason="对")
    memories.trash(agent, "ming", saved[0].pk, actor=MING, now=LATER)
    memories.touch(agent, "ming", [kept.pk, saved[1].pk], now=LATER)
    memories.touch(agent, "ming", [kept.pk], now=LATER)
    Memory.objects.for_agent(agent).filter(pk=saved[2].pk).update(external_id="elsewhere-1")
    purged = remember(agent, "only purged", "gone")
    memories.purge(agent, "only purged", purged.pk)
    scope = Scope.objects.of_user(agent, "ming").get()
    note_request(scope, "key-1", [kept.pk])
    return kept


def note_request(scope, key, ids):
    IdempotencyRecord.objects.using(scope._state.db).create(
        scope=scope, key=key, fingerprint="f" * 64, outcome={"ids": ids}, created_at=NOW
    )


def everything(agent):
    """Return all rows of an agent that must be the same in every store."""
    alias = store_alias(agent)
    users = dict(Scope.objects.for_agent(agent).values_list("pk", "user_id"))
    found = {"users": sorted(users.values())}
    for model, key in (
        (Memory, "scope_id"), (MemoryRevision, "memory__scope_id"), (IdempotencyRecord, "scope_id")
    ):  # fmt: skip
        rows = model.objects.using(alias).filter(**{f"{key}__in": users}).order_by("pk")
        found[model.__name__] = [
            {**row, "scope_id": users.get(row.get("scope_id")), "id": row["id"] * (model is Memory)}
            for row in rows.values()
        ]
    found["MemoryRevision"].sort(key=lambda row: (row["memory_id"], row["version"]))
    found["IdempotencyRecord"].sort(key=lambda row: (row["scope_id"], row["key"]))
    return found


def found(agent, names_found):
    queries = ["tea", "支付", "deploys", "note", "fridays"]
    return {
        (user, query): names_found(agent, user, query, limit=50)
        for user in ("ming", *ODD_USERS)
        for query in queries
    }


def assert_whole(agent):
    """Assert that the agent's present store is open, and its index and counts right."""
    assert list(maintenance.check(agent)) == []
    assert_consistent(agent)
    states = {*Scope.objects.for_agent(agent).values_list("state", flat=True)}
    assert states | {placing.state_of(agent)} == {"open"}


# --- what arrives ----------------------------------------------------------------------


def test_everything_arrives_as_it_was(agent, target, remember, names_found):
    kept = fill(agent, remember)
    before, hits = everything(agent), found(agent, names_found)

    job = move(agent, target)

    there = again(agent)
    assert (job.state, job.error) == ("done", "")
    assert {name: job.result[name] for name in ("memories", "users", "revisions", "requests")} == {
        "memories": len(ODD_USERS) + 8, "users": len(ODD_USERS) + 2, "revisions": 4, "requests": 1,
    }  # fmt: skip
    assert store_alias(there) == target.alias()
    assert everything(there) == before
    assert found(there, names_found) == hits
    assert memories.get(there, "ming", kept.pk).access_count == 2
    assert len(memories.history(there, "ming", kept.pk)) == 3
    assert_whole(there)


def test_old_copy_stays_and_takes_no_writes(agent, target, remember, way):
    fill(agent, remember)
    before = everything(agent)

    moved(agent, target)

    assert everything(agent) == before
    [(row, alias, count, state)] = moving.former_stores(agent)
    assert Place.of(row) == way[0]
    assert (alias, count, state) == (way[0].alias(), len(before["Memory"]), "moved")
    for user_id in ("ming", "a new user"):
        with pytest.raises(StoreNotOpen):
            remember(agent, user_id, "from a process that has not heard of it")
    assert memories.touch(agent, "ming", [row["id"] for row in before["Memory"]], now=NOW) == 0


def test_another_agent_in_either_store_is_not_touched(agent, target, remember, way):
    others = [
        Agent.objects.create_agent(f"barbara-{place.backend}-{number}", **fields(place))
        for number, place in enumerate(way)
    ]
    theirs = [remember(other, user, "tea") for other in others for user in ("ming", "team/anna")]
    memories.trash(others[0], "ming", theirs[0].pk, actor=MING, now=NOW)
    fill(agent, remember)
    before = [rows_of(others[number // 2], memory) for number, memory in enumerate(theirs)]

    there = moved(agent, target)
    moving.confirm(there, now=NOW)

    assert [rows_of(others[number // 2], memory) for number, memory in enumerate(theirs)] == before
    for other in others:
        assert_whole(other)


def test_agent_without_memories_moves(agent, target, remember):
    there = moved(agent, target)

    remember(there, "ming", "a first memory")

    assert store_alias(there) == target.alias()
    assert_whole(there)


def test_moving_there_and_back_takes_the_changes_along(agent, target, remember, way):
    kept = fill(agent, remember)
    there = moved(agent, target)
    memories.update(there, "ming", kept.pk, {"content": "Mondays"}, actor=MING, now=LATER)
    memories.purge(there, "u1", Memory.objects.in_scope(there, "u1").get().pk)
    memories.trash_matching(there, "u1 ", MemoryFilter(), actor=MING, now=LATER)
    memories.touch(there, "U1", [Memory.objects.in_scope(there, "U1").get().pk], now=LATER)
    IdempotencyRecord.objects.using(store_alias(there)).all().delete()
    note_request(Scope.objects.of_user(there, "ming").get(), "key-2", [kept.pk])
    remember(there, "new user", "new here")
    changed = everything(there)

    back = moved(there, way[0])

    assert store_alias(back) == way[0].alias()
    assert everything(back) == changed
    assert_whole(back)
    assert [alias for _, alias, _, _ in moving.former_stores(back)] == [target.alias()]


def test_id_that_changed_its_owner_since_the_old_copy_arrives_right(agent, target, remember, way):
    memory = remember(agent, "ming", "tea", name="Tea")
    Memory.objects.for_agent(agent).update(external_id="x")
    there = moved(agent, target)
    memories.purge(there, "ming", memory.pk)
    again_made = writing.new_memory(
        memory.pk, parse_draft({"type": "user", "content": "b"}), now=NOW
    )
    memories.store(there, "bob", [(again_made, copying.analyze(again_made))])
    successor = remember(there, "ming", "its successor")
    Memory.objects.for_agent(there).filter(pk=successor.pk).update(external_id="x")
    changed = everything(there)

    back = moved(there, way[0])

    assert everything(back) == changed
    assert_whole(back)


def test_damaged_old_copy_is_mended_on_the_way_back(agent, target, remember, way):
    fill(agent, remember)
    there = moved(agent, target)
    MemoryTerms.objects.using(store_alias(agent)).update(terms=" a1stale ")
    Scope.objects.for_agent(agent).update(memory_count=77)

    assert_whole(moved(there, way[0]))


# --- changes meanwhile -----------------------------------------------------------------


def before_call(monkeypatch, module, name, act, times=1):
    """Do something before the first calls of a function."""
    original, calls = getattr(module, name), []

    def wrapped(*args, **kwargs):
        calls.append(args)
        if len(calls) <= times:
            act()
        return original(*args, **kwargs)

    monkeypatch.setattr(module, name, wrapped)


def test_changes_during_the_copy_arrive(agent, target, remember, monkeypatch):
    kept = fill(agent, remember)
    doomed = remember(agent, "ming", "soon purged")

    def change():
        memories.purge(agent, "ming", doomed.pk)
        memories.update(agent, "ming", kept.pk, {"name": "Renamed"}, actor=MING, now=LATER)
        memories.touch(agent, "team/anna", list(
            Memory.objects.in_scope(agent, "team/anna").values_list("pk", flat=True)
        ), now=LATER)  # fmt: skip
        remember(agent, "late user", "late")

    before_call(monkeypatch, moving, "_freeze", change)

    there = moved(agent, target)

    assert everything(there) == everything(agent)
    assert memories.get(there, "ming", kept.pk).name == "Renamed"
    assert len(memories.list_page(there, "late user").memories) == 1
    assert_whole(there)


def test_external_id_that_passes_on_during_the_copy_arrives(agent, target, remember, monkeypatch):
    imported, *_ = [remember(agent, "ming", f"tea {number}") for number in range(7)]
    Memory.objects.for_agent(agent).filter(pk=imported.pk).update(external_id="x")

    def import_again():
        if Memory.objects.for_agent(agent_at(agent, target)).filter(external_id="x").exists():
            memories.purge(agent, "ming", imported.pk)
            successor = remember(agent, "ming", "its successor")
            Memory.objects.for_agent(agent).filter(pk=successor.pk).update(external_id="x")

    before_call(monkeypatch, copying, "_compare", import_again, times=2)

    job = move(agent, target)

    assert (job.state, job.error) == ("done", "")
    assert everything(again(agent)) == everything(agent)
    assert not Memory.objects.for_agent(again(agent)).filter(pk=imported.pk).exists()


def test_source_that_a_killed_run_left_frozen_takes_writes_while_the_next_copies(
    agent, target, remember, monkeypatch
):
    remember(agent, "ming", "tea")
    Store.objects.using(store_alias(agent)).update(state="frozen")
    Scope.objects.for_agent(agent).update(state="frozen")
    before_call(monkeypatch, copying, "sync", lambda: remember(agent, "ming", "more tea"))

    there = moved(agent, target)

    assert len(list(memories.walk(there))) == 2


def test_frozen_source_is_read_and_takes_no_writes(
    agent, target, remember, names_found, monkeypatch
):
    remember(agent, "ming", "tea", name="Tea")
    seen = []

    def look():
        seen.extend(names_found(agent, "ming", "tea"))
        with pytest.raises(StoreNotOpen):
            remember(agent, "ming", "more tea")

    before_call(monkeypatch, agreement, "tally", look)

    moved(agent, target)

    assert seen == ["Tea"]


def test_recall_counted_while_it_verifies_is_copied_in_another_round(
    agent, target, remember, monkeypatch
):
    memory = remember(agent, "ming", "tea")
    late = Memory.objects.for_agent(agent).filter(pk=memory.pk)
    before_call(monkeypatch, agreement, "tally", lambda: late.update(access_count=7))

    there = moved(agent, target)

    assert memories.get(there, "ming", memory.pk).access_count == 7


# --- what goes wrong -------------------------------------------------------------------

PHASES = [
    (copying, "sync"), (maintenance, "check"), (moving, "_freeze"), (moving, "_verified"),
    (agreement, "tally"), (agreement, "miscounted_users"), (placing, "reconfigure"),
]  # fmt: skip


def fail():
    raise OperationalError("the server has gone away")


@pytest.mark.parametrize(("module", "name"), PHASES, ids=[name for _, name in PHASES])
def test_failure_opens_the_source_and_the_next_run_goes_on(
    ada, remember, monkeypatch, module, name
):
    remember(ada, "ming", "tea")
    before_call(monkeypatch, module, name, fail)

    job = move(ada, OTHER)

    assert (job.state, "gone away" in job.error) == ("pending", True)
    assert store_alias(again(ada)) == store_alias(ada)
    remember(ada, "bob", "written between two tries")
    job_kinds.perform(job.pk)
    job.refresh_from_db()
    assert (job.state, job.result["memories"]) == ("done", 2)
    assert_whole(again(ada))


def test_copy_that_stays_different_is_not_switched_to(ada, remember, monkeypatch):
    remember(ada, "ming", "tea")
    monkeypatch.setattr(agreement, "difference", lambda *_: "the checksums do not agree")

    job = move(ada, OTHER)

    assert "checksums" in job.error
    assert store_alias(again(ada)) == store_alias(ada)
    assert_whole(ada)


@pytest.mark.parametrize("settle", ["_open_target", "_retire"])
def test_failure_after_the_switch_is_settled_by_the_next_run(ada, remember, monkeypatch, settle):
    remember(ada, "ming", "tea")
    before_call(monkeypatch, moving, settle, fail)

    job = move(ada, OTHER)

    there = again(ada)
    assert store_alias(there) == OTHER.alias()
    with pytest.raises(StoreNotOpen):
        remember(ada, "ming", "to the old store")
    job_kinds.perform(job.pk)
    job.refresh_from_db()
    assert (job.state, job.result["memories"]) == ("done", 1)
    assert_whole(there)
    assert placing.state_of(ada) == "moved"


@pytest.mark.parametrize(("module", "name"), PHASES, ids=[name for _, name in PHASES])
def test_cancel_before_the_switch_opens_the_source(ada, remember, monkeypatch, module, name):
    remember(ada, "ming", "tea")
    act = lambda: jobs.cancel(Job.objects.latest("pk").pk, now=NOW)  # noqa: E731
    before_call(monkeypatch, module, name, act)

    job = move(ada, OTHER)

    # at the switch itself it comes too late
    is_late = name == "reconfigure"
    assert job.state == ("done" if is_late else "cancelled")
    assert store_alias(again(ada)) == (OTHER.alias() if is_late else store_alias(ada))
    assert_whole(again(ada))


def test_unfinished_copy_can_be_erased_or_moved_to_again(ada, remember, monkeypatch):
    remember(ada, "ming", "tea")
    before_call(
        monkeypatch, agreement, "tally", lambda: jobs.cancel(Job.objects.latest("pk").pk, now=NOW)
    )
    move(ada, OTHER)

    [(_, alias, count, state)] = moving.former_stores(ada)
    assert (alias, count, state) == (OTHER.alias(), 1, "frozen")
    assert moving.confirm(ada, now=NOW) == 1
    assert moving.former_stores(ada) == []
    assert_whole(moved(ada, OTHER))


@pytest.mark.parametrize(
    "module_name", [(copying, "_apply"), (moving, "_freeze"), (moving, "_switch")]
)
def test_run_that_lost_its_job_writes_nothing_more(ada, remember, monkeypatch, module_name):
    remember(ada, "ming", "tea")

    def lose():
        Job.objects.update(claim="another run's")

    before_call(monkeypatch, *module_name, lose)

    job = move(ada, OTHER)

    assert (job.state, job.claim) == ("running", "another run's")
    assert store_alias(again(ada)) == store_alias(ada)
    assert not Memory.objects.for_agent(agent_at(ada, OTHER)).exists() or module_name[0] is moving
    assert placing.state_of(agent_at(ada, OTHER)) == "frozen"


@pytest.mark.parametrize("ending", ["cancelled", "failed"])
def test_source_that_a_killed_move_left_frozen_is_opened_when_the_job_ends(ada, remember, ending):
    memory = remember(ada, "ming", "tea")
    job = moving.enqueue(ada, **fields(OTHER), now=NOW)
    Store.objects.using(store_alias(ada)).update(state="frozen")
    Scope.objects.for_agent(ada).update(state="frozen")
    assert moving.reopen_abandoned(now=NOW) == 0
    Job.objects.filter(pk=job.pk).update(state=ending, active_key=None, finished_at=NOW)

    assert moving.reopen_abandoned(now=NOW) == 1

    assert moving.reopen_abandoned(now=NOW) == 0
    memories.trash(ada, "ming", memory.pk, actor=MING, now=NOW)
    assert_whole(ada)


# --- refusals --------------------------------------------------------------------------


def test_move_to_the_present_store_is_refused(agent, way):
    with pytest.raises(MoveRefused, match="already"):
        moving.enqueue(agent, **fields(way[0]), now=NOW)


@pytest.mark.parametrize("path", ["../x.db", "x", "", "a/b.db"])
def test_move_to_a_bad_path_is_refused(ada, path):
    with pytest.raises(InvalidMemory) as caught:
        moving.enqueue(ada, backend="sqlite", sqlite_path=path, now=NOW)
    assert "sqlite_path" in caught.value.fields


def test_move_to_mysql_that_is_not_there_is_refused(ada, monkeypatch):
    monkeypatch.setattr(placing, "mysql_obstacle", lambda: "MySQL does not answer.")

    with pytest.raises(BackendUnavailable, match="does not answer"):
        moving.enqueue(ada, backend="mysql", sqlite_path="", now=NOW)


def test_move_over_memories_that_were_left_is_refused(ada, remember):
    remember(ada, "ming", "tea")
    moving.change_store(ada, **fields(OTHER), leave=True, now=NOW)
    remember(again(ada), "ming", "coffee")

    with pytest.raises(MoveRefused, match="--confirm"):
        moving.enqueue(ada, backend="sqlite", sqlite_path="memory.db", now=NOW)


def test_second_move_elsewhere_is_refused_and_the_same_is_one(ada, remember):
    job = moving.enqueue(ada, **fields(OTHER), now=NOW)

    assert moving.enqueue(ada, **fields(OTHER), now=NOW) == job
    with pytest.raises(MoveRefused, match=f"job {job.pk}"):
        moving.enqueue(ada, backend="mysql", sqlite_path="", now=NOW)
    with pytest.raises(MoveRefused, match=f"job {job.pk}"):
        moving.change_store(ada, backend="mysql", sqlite_path="", now=NOW)
    with pytest.raises(MoveRefused, match=f"job {job.pk}"):
        moving.confirm(ada, now=NOW)


def test_id_that_is_anothers_in_the_target_ends_the_move(agent, target, remember):
    other = Agent.objects.create_agent("barbara", **fields(target))
    memory = remember(agent, "ming", "tea")
    taken = writing.new_memory(memory.pk, parse_draft({"type": "user", "content": "hers"}), now=NOW)
    memories.store(other, "ming", [(taken, copying.analyze(taken))])
    before = rows_of(other, taken)

    job = move(agent, target)

    assert job.state == "failed"
    assert str(memory.pk) in job.error
    assert store_alias(again(agent)) == store_alias(agent)
    assert rows_of(other, taken) == before
    assert_whole(agent)


def test_move_of_an_agent_that_was_deleted_ends_quietly(agent, target, remember, monkeypatch):
    remember(agent, "ming", "tea")
    before_call(monkeypatch, copying, "_apply", lambda: again(agent).delete())

    job = move(agent, target)

    assert (job.state, job.error) == ("done", "")
    for place in (agent, agent_at(agent, target)):
        assert set(row_counts(place).values()) == {0}
    assert not FormerStore.objects.exists()


def test_queued_move_of_a_deleted_agent_ends_quietly(ada):
    job = moving.enqueue(ada, **fields(OTHER), now=NOW)
    ada.delete()

    job_kinds.perform(job.pk)

    job.refresh_from_db()
    assert job.state == "done"


# --- another store without the memories ------------------------------------------------


def test_agent_without_memories_changes_its_store_at_once(agent, target, remember):
    memories.purge(agent, "ming", remember(agent, "ming", "tea").pk)

    moving.change_store(agent, **fields(target), now=NOW)

    there = again(agent)
    remember(there, "ming", "a first memory")
    assert store_alias(there) == target.alias()
    for user_id in ("ming", "bob"):
        with pytest.raises(StoreNotOpen):
            remember(agent, user_id, "from a process that has not heard of it")


def test_memories_are_not_left_behind_unasked(agent, target, remember):
    memory = remember(agent, "ming", "tea")
    memories.trash(agent, "ming", memory.pk, actor=MING, now=NOW)

    with pytest.raises(WouldStrandMemories, match="leave_memories") as caught:
        moving.change_store(agent, **fields(target), now=NOW)

    assert "1 memories" in str(caught.value)
    assert f"move_memories {agent.name} --to" in str(caught.value)
    assert store_alias(again(agent)) == store_alias(agent)
    assert not FormerStore.objects.exists()
    assert_whole(agent)


def test_memories_left_behind_are_there_on_the_way_back(agent, target, remember, way):
    memory = remember(agent, "ming", "tea")

    moving.change_store(agent, **fields(target), leave=True, now=NOW)

    there = again(agent)
    remember(there, "ming", "coffee")
    assert [m.content for m in memories.walk(there)] == ["coffee"]
    assert [each[1:] for each in moving.former_stores(there)] == [(way[0].alias(), 1, "left")]
    moving.change_store(there, **fields(way[0]), leave=True, now=NOW)
    back = again(agent)
    assert [m.content for m in memories.walk(back)] == ["tea"]
    memories.update(back, "ming", memory.pk, {"name": "Tea"}, actor=MING, now=NOW)
    assert [each[1] for each in moving.former_stores(back)] == [target.alias()]
    assert_whole(back)


def test_change_to_the_present_store_does_nothing(agent, way, remember):
    remember(agent, "ming", "tea")

    moving.change_store(agent, **fields(way[0]), now=NOW)

    assert_whole(again(agent))
    assert not FormerStore.objects.exists()


def test_old_copy_is_not_used_as_if_it_were_new(agent, target, remember, way):
    remember(agent, "ming", "tea")
    there = moved(agent, target)

    with pytest.raises(MoveRefused, match="--confirm"):
        moving.change_store(there, **fields(way[0]), leave=True, now=NOW)

    moving.confirm(there, now=NOW)
    moving.change_store(there, **fields(way[0]), leave=True, now=NOW)
    assert list(memories.walk(again(agent))) == []


def test_change_that_dies_half_way_leaves_an_open_store(agent, target, remember, monkeypatch):
    remember(agent, "ming", "tea")
    before_call(monkeypatch, placing, "reconfigure", fail)

    with pytest.raises(OperationalError):
        moving.change_store(agent, **fields(target), leave=True, now=NOW)

    assert_whole(again(agent))
    moving.change_store(agent, **fields(target), leave=True, now=NOW)
    remember(again(agent), "ming", "coffee")


# --- old copies ------------------------------------------------------------------------


def test_confirm_erases_old_copies_and_nothing_else(agent, target, remember):
    fill(agent, remember)
    there = moved(agent, target)
    before = everything(there)

    assert moving.confirm(there, now=NOW) == len(before["Memory"])

    assert moving.confirm(there, now=NOW) == 0
    assert everything(there) == before
    assert set(row_counts(agent).values()) == {0}
    assert moving.former_stores(there) == []
    assert_whole(there)


def test_files_of_former_stores_are_known(ada, remember):
    remember(ada, "ming", "tea")
    moving.change_store(ada, backend="mysql", sqlite_path="", leave=True, now=NOW)

    assert "sqlite:memory.db" in known_aliases()


def test_deleting_an_agent_erases_its_old_copies(agent, target, remember):
    fill(agent, remember)
    there = moved(agent, target)

    there.delete()

    for place in (agent, agent_at(agent, target)):
        assert set(row_counts(place).values()) == {0}
    assert not FormerStore.objects.exists()


def test_deleting_with_a_stale_configuration_erases_the_present_store(agent, target, remember):
    remember(agent, "ming", "tea")
    moved(agent, target)

    agent.delete()  # it still has the old one in memory

    assert set(row_counts(agent_at(make_agent("eve", "sqlite"), target)).values()) == {0}
    assert not FormerStore.objects.exists()


def test_agent_is_kept_while_a_former_store_does_not_answer(ada, remember, settings):
    remember(ada, "ming", "tea")
    FormerStore.objects.create(
        agent_id=ada.pk, backend="sqlite", sqlite_path="../gone.db", since=NOW
    )

    with pytest.raises(AgentNotErased):
        ada.delete()

    assert [each[1:] for each in moving.former_stores(ada)] == [("sqlite:../gone.db", None, None)]
    assert len(list(memories.walk(again(ada)))) == 1
    assert_whole(again(ada))
    assert MemoryConfig.objects.filter(agent=ada).exists()
