"""Ids: distinct over processes, ascending in one, exact in JSON."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import DatabaseError, connection

from memory.ids import EPOCH, MAX_ID, NODES, IdGenerator, next_ids
from memory.models import NodeLease
from tests.conftest import NOW

pytestmark = pytest.mark.django_db

LEASE = timedelta(minutes=2)


def node_of(memory_id):
    return memory_id >> 6 & NODES - 1


def milliseconds_of(memory_id):
    return memory_id >> 13


def test_an_id_fits_a_json_number():
    moments = [EPOCH, NOW, datetime(2060, 10, 1, tzinfo=UTC)]
    for moment in moments:
        with time_machine.travel(moment, tick=False):
            ids = IdGenerator().next_ids(100, now=moment)
            assert all(0 <= each <= MAX_ID == 2**53 - 1 for each in ids)
            assert all(int(float(each)) == each for each in ids)


def test_an_id_tells_its_time():
    with time_machine.travel(NOW, tick=False):
        (memory_id,) = IdGenerator().next_ids(1, now=NOW)

    made_at = EPOCH + timedelta(milliseconds=milliseconds_of(memory_id))
    assert made_at == NOW


def test_ids_ascend_within_a_millisecond_and_beyond():
    generator = IdGenerator()
    with time_machine.travel(NOW, tick=False) as clock:
        ids = generator.next_ids(1_000, now=NOW)  # more than a millisecond has room for
        ids += generator.next_ids(10, now=NOW)
        clock.shift(timedelta(milliseconds=3))
        ids += generator.next_ids(10, now=NOW)

    assert ids == sorted(set(ids))
    assert {node_of(each) for each in ids} == {0}


def test_none_are_none():
    assert IdGenerator().next_ids(0, now=NOW) == []


def test_a_clock_that_goes_back_does_not_make_ids_go_back():
    generator = IdGenerator()
    with time_machine.travel(NOW, tick=False) as clock:
        before = generator.next_ids(5, now=NOW)
        clock.shift(timedelta(hours=-1))
        after = generator.next_ids(5, now=NOW)
        clock.shift(timedelta(hours=1, seconds=1))
        later = generator.next_ids(5, now=NOW)

    ids = before + after + later
    assert ids == sorted(set(ids))


def test_generators_of_two_processes_make_different_ids():
    one, other = IdGenerator(), IdGenerator()
    with time_machine.travel(NOW, tick=False):
        ids = one.next_ids(200, now=NOW)
        others = other.next_ids(200, now=NOW)

    assert not set(ids) & set(others)
    assert {node_of(each) for each in ids} != {node_of(each) for each in others}
    assert NodeLease.objects.count() == 2


def test_a_lease_is_renewed_before_it_lapses():
    generator, other = IdGenerator(), IdGenerator()
    node = node_of(generator.next_ids(1, now=NOW)[0])

    for minutes in range(1, 10):
        moment = NOW + timedelta(minutes=minutes)
        assert node_of(generator.next_ids(1, now=moment)[0]) == node
        lease = NodeLease.objects.get(node=node)
        assert lease.expires_at > moment + timedelta(seconds=50)
    assert node_of(other.next_ids(1, now=NOW + timedelta(minutes=10))[0]) != node


def test_between_renewals_ids_cost_no_query(django_assert_num_queries):
    generator = IdGenerator()
    generator.next_ids(1, now=NOW)

    with django_assert_num_queries(0):
        generator.next_ids(100, now=NOW + timedelta(seconds=50))


def test_a_lapsed_lease_is_taken_over():
    stopped, started = IdGenerator(), IdGenerator()
    node = node_of(stopped.next_ids(1, now=NOW)[0])

    late = NOW + LEASE + timedelta(seconds=1)
    taken = started.next_ids(1, now=late)

    assert node_of(taken[0]) == node
    assert NodeLease.objects.count() == 1
    assert node_of(stopped.next_ids(1, now=late)[0]) != node  # it wakes up, and sees


def test_a_lease_that_runs_is_left_alone():
    running, started = IdGenerator(), IdGenerator()
    node = node_of(running.next_ids(1, now=NOW)[0])

    assert node_of(started.next_ids(1, now=NOW + LEASE)[0]) != node


def test_all_nodes_in_use_is_told():
    NodeLease.objects.bulk_create(
        NodeLease(node=node, holder=f"process {node}", expires_at=NOW + LEASE)
        for node in range(NODES)
    )
    generator = IdGenerator()

    with pytest.raises(DatabaseError, match="in use"):
        generator.next_ids(1, now=NOW)

    NodeLease.objects.filter(node=77).delete()
    assert node_of(generator.next_ids(1, now=NOW)[0]) == 77


def test_a_forked_process_takes_a_node_of_its_own(monkeypatch):
    generator = IdGenerator()
    with time_machine.travel(NOW, tick=False):
        parents = generator.next_ids(5, now=NOW)
        monkeypatch.setattr("os.getpid", lambda: 1_000_000)
        childs = generator.next_ids(5, now=NOW)

    assert node_of(childs[0]) != node_of(parents[0])
    assert not set(parents) & set(childs)


def test_threads_of_one_process_get_distinct_ids():
    generator = IdGenerator()
    generator.next_ids(1, now=NOW)

    def make(_):
        return [each for _ in range(50) for each in generator.next_ids(10, now=NOW)]

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, range(8)))

    assert all(ids == sorted(ids) for ids in made)
    assert len(set().union(*made)) == 8 * 50 * 10


@pytest.mark.django_db(transaction=True)
def test_processes_that_start_at_once_get_distinct_nodes():
    generators = [IdGenerator() for _ in range(6)]
    barrier = threading.Barrier(len(generators))

    def make(generator):
        with closing(connection):
            barrier.wait()
            return generator.next_ids(100, now=NOW)

    with ThreadPoolExecutor(len(generators)) as pool:
        made = list(pool.map(make, generators))

    assert len({node_of(ids[0]) for ids in made}) == 6
    assert len(set().union(*made)) == 600


def test_the_process_shares_one_generator():
    now = datetime.now(UTC)

    ids = next_ids(3, now=now) + next_ids(3, now=now)

    assert ids == sorted(set(ids))
