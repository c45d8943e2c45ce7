"""One change of many memories: all of a kind, undone as one, and by a job where they are many."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model

from agents.models import Identity
from memory.filters import MemoryFilter
from memory.models import Job, JobState, Memory
from memory.services import bulk, job_kinds, library, memories
from memory.services.bulk import Bulk
from tests.conftest import MING, NOW, make_agent

LATER = NOW + timedelta(minutes=1)


@pytest.fixture
def ming(db):
    account = get_user_model().objects.create_user("ming")
    Identity.objects.create(account=account, user_id="ming")
    return account


def doing(action, value="", at=LATER):
    return Bulk(action, value, "ming", at)


def state(agent, field):
    rows = Memory.objects.in_scope(agent, "ming").order_by("pk")
    return [getattr(memory, field) for memory in rows]


@pytest.mark.parametrize(
    ("action", "value", "field", "after"),
    [
        ("delete", "", "status", ["trashed", "trashed", "trashed"]),
        ("pause", "", "status", ["paused", "paused", "archived"]),
        ("resume", "", "status", ["active", "active", "archived"]),
        ("pin", "", "pinned", [True, True, True]),
        ("unpin", "", "pinned", [False, False, False]),
        ("type", "project", "type", ["project", "project", "project"]),
        ("tag", "tea", "tags", [["tea"], ["tea"], ["jam", "tea"]]),
    ],
)
def test_each_action_changes_what_it_names_and_is_undone(
    agent, ming, remember, action, value, field, after
):
    remember(agent, "ming", "kumquat", pinned=True)
    remember(agent, "ming", "quince", status="paused", tags=["tea"])
    remember(agent, "ming", "medlar", status="archived", tags=["jam"])
    before = state(agent, field)
    shelves = library.shelves_of(ming)

    bulk.change(bulk.matching(shelves, MemoryFilter(), doing("pin")), doing(action, value))
    assert state(agent, field) == after

    bulk.undo(shelves, doing(action, value), now=LATER + timedelta(seconds=5))
    assert state(agent, field) == before


def test_what_was_deleted_together_is_found_again_after_undo(agent, ming, remember, names_found):
    for number in range(5):
        remember(agent, "ming", f"kumquat {number}", name=str(number))
    shelves = library.shelves_of(ming)

    assert bulk.change(bulk.matching(shelves, MemoryFilter(), doing("pin")), doing("delete")) == 5
    assert names_found(agent, "ming", "kumquat") == []
    assert bulk.undo(shelves, doing("delete"), now=LATER) == 5

    assert sorted(names_found(agent, "ming", "kumquat")) == list("01234")


def test_undo_leaves_what_somebody_changed_since_and_what_another_did(agent, ming, remember):
    first, second = remember(agent, "ming", "kumquat"), remember(agent, "ming", "quince")
    shelves = library.shelves_of(ming)
    bulk.change(bulk.matching(shelves, MemoryFilter(), doing("pin")), doing("pin"))
    memories.update(
        agent, "ming", first.pk, {"content": "kumquat tea"}, actor=MING,
        now=LATER + timedelta(seconds=1),
    )  # fmt: skip

    nobody = Bulk("pin", "", "mallory", LATER)
    assert bulk.undo(shelves, nobody, now=LATER + timedelta(seconds=2)) == 0
    assert bulk.undo(shelves, doing("pin"), now=LATER + timedelta(seconds=2)) == 1

    assert state(agent, "pinned") == [True, False]
    assert bulk.undo(shelves, doing("pin"), now=LATER + timedelta(seconds=3)) == 0
    assert memories.get(agent, "ming", second.pk).version == 3


def test_only_ones_own_can_be_selected(agent, ming, remember):
    own, other = remember(agent, "ming", "kumquat"), remember(agent, "bob", "quince")
    shelves = library.shelves_of(ming)

    selected = bulk.select(shelves, [own.pk, other.pk, 5], doing("pin"))

    assert list(selected.values()) == [[own.pk]]


def test_many_are_changed_and_put_back_by_a_job_that_goes_on_where_it_stopped(
    agent, ming, remember, monkeypatch
):
    monkeypatch.setattr(bulk, "AT_ONCE", 4)
    second = make_agent("barbara", agent.memory_config.backend)
    for each in (agent, second):
        for number in range(10):
            remember(each, "ming", f"kumquat {number}", type=("user", "project")[number % 2])
        remember(each, "bob", "kumquat of bob")
    shelves = library.shelves_of(ming)
    wanted = MemoryFilter(types=("user",))
    job = bulk.request(ming.pk, shelves, wanted, doing("delete"), now=NOW)
    assert bulk.latest_for(ming.pk, now=NOW) == job
    real, calls = bulk._change, []

    def killed(*args, **kwargs):
        calls.append(args)
        if len(calls) == 2:
            raise OSError("killed")
        return real(*args, **kwargs)

    monkeypatch.setattr(bulk, "_change", killed)
    with pytest.raises(OSError, match="killed"):
        job_kinds.perform(job.pk)
    job_kinds.perform(job.pk)

    assert Job.objects.get(pk=job.pk).state == JobState.DONE
    assert bulk.find(ming.pk, job.pk).result == {"changed": 10}
    left = [each.status for each in memories.walk(agent, "ming")]
    assert left.count("trashed") == 5
    assert [each.status for each in memories.walk(agent, "bob")] == ["active"]

    undoing = bulk.request(
        ming.pk, shelves, MemoryFilter(), doing("undo", LATER.isoformat(), NOW), now=NOW
    )
    job_kinds.perform(undoing.pk)
    assert {each.status for each in memories.walk(second, "ming")} == {"active"}


def test_a_job_is_its_accounts_own(ada, ming, remember):
    remember(ada, "ming", "kumquat")
    shelves = library.shelves_of(ming)
    job = bulk.request(ming.pk, shelves, MemoryFilter(), doing("pin"), now=NOW)

    assert bulk.find(ming.pk + 1, job.pk) is None
    assert bulk.latest_for(ming.pk + 1, now=NOW) is None


def test_what_was_deleted_can_be_restored_together_by_hand_or_by_a_job(agent, ming, remember):
    remember(agent, "ming", "kumquat", status="paused")
    remember(agent, "ming", "quince", expires_at=NOW + timedelta(seconds=30))
    kept = remember(agent, "ming", "medlar")
    shelves = library.shelves_of(ming)
    for memory in memories.list_page(agent, "ming").memories:
        if memory.pk != kept.pk:
            memories.trash(agent, "ming", memory.pk, actor=MING, now=NOW)
    trashed = MemoryFilter(statuses=("trashed",))

    selected = bulk.matching(shelves, trashed, doing("restore"))
    assert bulk.change(selected, doing("restore")) == 2
    assert state(agent, "status") == ["paused", "active", "active"]
    assert state(agent, "expires_at") == [None, None, None]

    bulk.undo(shelves, doing("restore"), now=LATER)
    assert state(agent, "status") == ["trashed", "trashed", "active"]
    job = bulk.request(ming.pk, shelves, trashed, doing("restore"), now=NOW)
    job_kinds.perform(job.pk)
    assert state(agent, "status") == ["paused", "active", "active"]
