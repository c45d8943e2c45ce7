"""Prepared queries: the same rows as their querysets, with whatever values."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from memory import prepared
from memory.databases import store_alias
from memory.models import Memory, Scope
from tests.conftest import NOW

METADATA = {"a": [None, True, 2**70], "": "empty key"}


@pytest.fixture(autouse=True)
def nothing_prepared():
    """Let every test compile for itself."""
    for connection in connections.all(initialized_only=True):
        connection.__dict__.pop("hippo_prepared", None)


@pytest.fixture
def alias(agent, remember):
    """The store of an agent with a few memories, each an hour after the one before."""
    for hour in range(4):
        remember(
            agent,
            "ming" if hour % 2 else 'bob\'s \\ % "友"',
            f"note {hour}",
            metadata=METADATA,
            tags=["deploy", "发布"],
            due_at=datetime(2026, 12, 3, 9, 0, 0, 123456, tzinfo=UTC),
            pinned=bool(hour % 2),
            now=NOW + timedelta(hours=hour, microseconds=hour),
        )
    return store_alias(agent)


def values_of(memories):
    """Return every column of each memory with its type."""
    names = [column.attname for column in Memory._meta.concrete_fields]
    return [[repr(getattr(memory, name)) for name in names] for memory in memories]


def of_scope(alias):
    def build(scope_id, moment):
        found = Memory.objects.using(alias).filter(scope_id=scope_id, created_at__gte=moment)
        return found.order_by("id")

    return build


def named(alias):
    def build(name):
        return Memory.objects.using(alias).filter(name=name).values_list("id", "created_at")

    return build


def ids_of(alias):
    def build(first, second):
        return Memory.objects.using(alias).filter(pk__in=[first, second]).values_list("id")

    return build


def fetch(alias, name):
    return prepared.run("named", named(alias), [name], alias)


# --- rows ------------------------------------------------------------------------------


def test_rows_are_those_of_the_queryset_with_the_types_of_its_columns(alias):
    build = of_scope(alias)
    for scope in Scope.objects.using(alias).all():
        values = (scope.pk, NOW)

        rows = prepared.run("of scope", build, values, alias)

        found = prepared.instances(Memory, rows, alias)
        assert values_of(found) == values_of(build(*values))
        assert len(found) == 2
        assert {memory._state.db for memory in found} == {alias}
        assert not any(memory._state.adding for memory in found)
        assert found[0].created_at.tzinfo is UTC
        assert repr(found[0].metadata) == repr(METADATA)
        assert found[0].tags == ["deploy", "发布"]


def test_other_values_on_reuse_give_other_rows(alias):
    build = named(alias)
    fetch(alias, "nothing")

    for hour in range(4):
        expected = list(build(f"note {hour}"))

        assert [tuple(row) for row in fetch(alias, f"note {hour}")] == expected
        assert len(expected) == 1
    assert fetch(alias, "note 4") == []


def test_query_is_compiled_once(alias):
    compiled = []

    def build(name):
        compiled.append(name)
        return named(alias)(name)

    with CaptureQueriesContext(connections[alias]) as context:
        for hour in range(3):
            prepared.run("counted", build, [f"note {hour}"], alias)

    assert len(compiled) == 1
    assert len(context) == 3


def test_each_key_and_each_database_has_a_query_of_its_own(ada, grace, remember):
    for agent in (ada, grace):
        remember(agent, "ming", f"{agent.name} on tea", name="Tea")

    for alias in (store_alias(ada), store_alias(grace)):
        [row] = fetch(alias, "Tea")
        assert list(named(alias)("Tea")) == [tuple(row)]
        ids = prepared.run("ids", ids_of(alias), [row[0], 7], alias)
        assert [tuple(each) for each in ids] == [(row[0],)]


def test_value_may_stand_in_the_query_more_than_once(alias):
    def build(moment):
        found = Memory.objects.using(alias).filter(created_at__lte=moment, updated_at__gte=moment)
        return found.values_list("name")

    for hour in (2, 1):
        moment = NOW + timedelta(hours=hour, microseconds=hour)
        rows = prepared.run("twice", build, [moment], alias)
        assert [tuple(row) for row in rows] == [(f"note {hour}",)]


def test_equal_values_are_not_confused(alias):
    [first], [second] = fetch(alias, "note 0"), fetch(alias, "note 1")
    run = lambda *ids: prepared.run("ids", ids_of(alias), ids, alias)  # noqa: E731

    assert sorted(row[0] for row in run(first[0], first[0])) == [first[0]]
    assert sorted(row[0] for row in run(first[0], second[0])) == sorted([first[0], second[0]])


def test_value_is_never_read_as_sql(alias):
    texts = ["", "'", '"', "%s", "%", "\\", "\\'", "100%", "'; DROP TABLE memory_memory; --",
             "\x020\x03", "支付 🎉", "note 1 "]  # fmt: skip
    [[memory_id, _]] = fetch(alias, "note 1")
    for text in texts:
        assert fetch(alias, text) == []
        Memory.objects.using(alias).filter(pk=memory_id).update(name=text)
        assert [row[0] for row in fetch(alias, text)] == [memory_id]
        assert fetch(alias, "note 1") == []
        assert len(fetch(alias, "note 2")) == 1


def test_rows_may_be_left_as_the_driver_gives_them(alias):
    [raw] = prepared.run("raw", named(alias), ["note 1"], alias, convert=False)
    [converted] = prepared.run("raw", named(alias), ["note 1"], alias)

    assert raw[0] == converted[0]
    assert converted[1] == NOW + timedelta(hours=1, microseconds=1)
    assert converted[1].tzinfo is UTC
    assert getattr(raw[1], "tzinfo", None) is None


# --- refusals --------------------------------------------------------------------------


def test_value_that_is_no_parameter_is_refused(alias):
    def build(name, limit):
        return named(alias)(name)[: abs(limit)]

    with pytest.raises(ValueError, match="not among its parameters"):
        prepared.run("limited", build, ["note 1", 1], alias)
    with pytest.raises(ValueError, match="not among its parameters"):
        prepared.run("unused", lambda name, other: named(alias)(name), ["a", "b"], alias)
    with pytest.raises(ValueError, match="not among its parameters"):
        prepared.run("changed", lambda name: named(alias)(f"{name}!"), ["note 1"], alias)


def test_query_that_was_refused_is_not_kept(alias):
    with pytest.raises(ValueError, match="parameters"):
        prepared.run("named", lambda name: named(alias)("note 1"), ["note 1"], alias)

    assert len(fetch(alias, "note 1")) == 1


# --- connections -----------------------------------------------------------------------


def test_query_outlives_its_connection(alias):
    first = fetch(alias, "note 1")

    connections[alias].close()

    assert fetch(alias, "note 1") == first
    assert len(fetch(alias, "note 2")) == 1


def test_threads_each_have_a_connection_of_their_own(alias):
    expected = {hour: fetch(alias, f"note {hour}") for hour in range(4)}
    barrier, wrong, used = threading.Barrier(4, timeout=30), [], set()

    def work(number):
        try:
            barrier.wait()
            for turn in range(25):
                hour = (number + turn) % 4
                if fetch(alias, f"note {hour}") != expected[hour]:
                    wrong.append(hour)
            used.add(id(connections[alias]))
            barrier.wait()  # an id is unique only while its object lives
        except Exception as error:  # noqa: BLE001
            wrong.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert len(used) == 4
    assert id(connections[alias]) not in used
