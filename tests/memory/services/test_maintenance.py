"""Upkeep: every kind of damage is found, and a reindex mends all of it."""

import threading

import pytest
from django.db import connections
from django.db.models import F

from memory import fts, indexing
from memory.analyzer import document_terms, encode_term, scope_key
from memory.databases import store_alias
from memory.drafts import parse_draft
from memory.models import Memory, MemoryTerms, MemoryVector, Scope
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services import maintenance, memories
from tests.conftest import MING, NOW, make_agent
from tests.memory.rows import assert_consistent

TOPICS = ("tea", "deploys", "支付", "marathon", "peanuts")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Let a handful of memories be several chunks."""
    monkeypatch.setattr(maintenance, "_CHUNK", 2)


@pytest.fixture
def damaged(agent):
    """An agent with memories of two users, about to be damaged."""
    fill(agent)
    yield agent
    wipe(agent)


def fill(agent):
    for user_id in ("ming", "bob"):
        drafts = [
            parse_draft({"type": "user", "name": topic, "content": f"{user_id} on {topic}"})
            for topic in TOPICS
        ]
        memories.save_batch(agent, user_id, drafts, now=NOW)


def wipe(agent):
    """Take all memories away and leave a whole index, whatever the damage was."""
    alias = store_alias(agent)
    if is_sqlite(agent):  # its triggers would stumble over the damage
        execute(agent, *fts.drop_statements(connections[alias]))
    for model in (MemoryVector, MemoryTerms, Memory, Scope):
        model.objects.using(alias).all().delete()
    if not fts.has_index(connections[alias]):
        fts.rebuild_index(connections[alias])


def is_sqlite(agent):
    return agent.memory_config.backend == "sqlite"


def execute(agent, *statements):
    with connections[store_alias(agent)].cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def rows_of(agent, user_id="ming"):
    """Return a user's memories as queries that change rows past the services."""
    return Memory.objects.in_scope(agent, user_id)


def terms_of(agent, topic):
    memory = rows_of(agent).get(name=topic)
    return MemoryTerms.objects.using(memory._state.db).filter(pk=memory.pk)


def scope_of(agent, user_id="ming"):
    return Scope.objects.of_user(agent, user_id)


def faults_of(agent):
    return list(maintenance.check(agent))


def names_found(agent, user_id="ming"):
    return {
        hit.memory.name
        for topic in TOPICS
        for hit in search(agent, user_id, SearchRequest(topic), now=NOW).hits
    }


# --- nothing wrong ---------------------------------------------------------------------


def test_work_leaves_nothing_to_mend(agent, remember):
    kept = remember(agent, "ming", "支付模块周五上线", name="上线", tags=["deploy"])
    trashed = remember(agent, "ming", "Ming drinks coffee")
    purged = remember(agent, "bob", "Bob drinks tea")
    restored = remember(agent, "bob", "Bob deploys on Mondays")
    remember(agent, "bob", "？！…")  # not one term in it
    done = {"actor": MING, "now": NOW}
    memories.update(agent, "ming", kept.pk, {"content": "周四上线"}, **done)
    memories.touch(agent, "ming", [kept.pk], now=NOW)
    memories.trash(agent, "ming", trashed.pk, **done)
    memories.purge(agent, "bob", purged.pk)
    memories.trash(agent, "bob", restored.pk, **done)
    memories.restore(agent, "bob", restored.pk, **done)

    assert faults_of(agent) == []
    assert maintenance.reindex(agent) == 4
    assert faults_of(agent) == []
    assert_consistent(agent)


def test_agent_without_memories_has_nothing_to_mend(agent):
    assert faults_of(agent) == []
    assert maintenance.reindex(agent) == 0


def test_check_writes_nothing(damaged):
    terms_of(damaged, "tea").update(terms="")
    before = [list(rows_of(damaged).values()), list(terms_of(damaged, "tea").values())]

    faults_of(damaged)

    after = [list(rows_of(damaged).values()), list(terms_of(damaged, "tea").values())]
    assert after == before


# --- damage ----------------------------------------------------------------------------


def remove_row(agent):
    terms_of(agent, "tea").delete()


def remove_all_rows(agent):
    MemoryTerms.objects.of_scope(scope_of(agent).get()).delete()


def empty_terms(agent):
    terms_of(agent, "tea").update(terms="")


def swap_terms(agent):
    key = scope_key(scope_of(agent).get().pk)
    terms_of(agent, "tea").update(terms=f"\n\n {encode_term('coffee', key)} ")


def change_folded(agent):
    terms_of(agent, "tea").update(folded="coffee\n\ncoffee")


def change_length(agent):
    terms_of(agent, "tea").update(content_terms=F("content_terms") + 7)


def vector_of(agent, topic="tea"):
    memory = rows_of(agent).get(name=topic)
    return MemoryVector.objects.using(memory._state.db).filter(pk=memory.pk)


def remove_vector_row(agent):
    vector_of(agent).delete()


def change_digest(agent):
    vector_of(agent).update(digest="0" * 32)


def cut_vector(agent):
    vector_of(agent).update(model="letters", dimension=8, vector=b"1" * 15)


def name_no_model(agent):
    vector_of(agent).update(dimension=8, vector=b"1" * 16)


def give_vector_to_another_scope(agent):
    vector_of(agent).update(scope_id=scope_of(agent, "bob").get().pk)


def leave_vector_of_the_trash(agent):
    row = vector_of(agent).get()
    memory = rows_of(agent).get(name="tea")
    memories.trash(agent, "ming", memory.pk, actor=MING, now=NOW)
    row.save(using=memory._state.db, force_insert=True)


def give_row_to_another_scope(agent):
    terms_of(agent, "tea").update(scope_id=scope_of(agent, "bob").get().pk)


def change_text(agent):
    rows_of(agent).filter(name="tea").update(content="ming on coffee")


def trash_past_the_index(agent):
    rows_of(agent).filter(name="tea").update(status="trashed")


def count_too_many(agent):
    scope_of(agent).update(memory_count=F("memory_count") + 3)


def count_too_few(agent):
    scope_of(agent).update(memory_count=1)


def count_none(agent):
    scope_of(agent).update(memory_count=0, content_terms=0)


def count_length_wrong(agent):
    scope_of(agent).update(content_terms=1)


def clear_fts(agent):
    execute(agent, f"INSERT INTO {fts.FTS_TABLE}({fts.FTS_TABLE}) VALUES ('delete-all')")


def lose_one_in_fts(agent):
    row = terms_of(agent, "tea").get()
    with connections[store_alias(agent)].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {fts.FTS_TABLE}({fts.FTS_TABLE}, rowid, terms) VALUES ('delete', %s, %s)",
            [row.pk, row.terms],
        )


def add_stray_to_fts(agent):
    execute(agent, f"INSERT INTO {fts.FTS_TABLE}(rowid, terms) VALUES (7, 'b1stray')")


def write_past_the_triggers(agent):
    """Rewrite terms while the triggers were away, as a remade table does."""
    execute(agent, *(f"DROP TRIGGER {name}" for name in fts._TRIGGERS))
    swap_terms(agent)
    for name, body in fts._TRIGGERS.items():
        execute(agent, f"CREATE TRIGGER {name} {body}")


def drop_index(agent):
    execute(agent, *fts.drop_statements(connections[store_alias(agent)]))


def drop_trigger(name):
    def drop(agent):
        execute(agent, f"DROP TRIGGER {name}")

    drop.__name__ = f"drop {name}"
    return drop


DAMAGE = [
    remove_row, remove_all_rows, empty_terms, swap_terms, change_folded, change_length,
    give_row_to_another_scope, change_text, trash_past_the_index, count_too_many,
    count_too_few, count_none, count_length_wrong, drop_index, remove_vector_row, change_digest,
    cut_vector, name_no_model, give_vector_to_another_scope, leave_vector_of_the_trash,
]  # fmt: skip
# InnoDB's index has no table and no triggers of ours
SQLITE_DAMAGE = [
    clear_fts, lose_one_in_fts, add_stray_to_fts, write_past_the_triggers,
    *map(drop_trigger, fts._TRIGGERS),
]  # fmt: skip


def test_damage_is_found_and_mended(agent, subtests):
    for damage in [*DAMAGE, *(SQLITE_DAMAGE if is_sqlite(agent) else [])]:
        with subtests.test(damage.__name__):
            try:
                fill(agent)
                damage(agent)
                expected = {each.name for each in rows_of(agent) if each.status == "active"}

                faults = faults_of(agent)
                maintenance.reindex(agent)

                assert faults
                assert faults_of(agent) == []
                assert names_found(agent) == expected
                assert names_found(agent, "bob") == set(TOPICS)
                assert_consistent(agent)
            finally:
                wipe(agent)


def test_fault_names_the_memory_and_its_user(agent, subtests):
    for damage in (
        remove_row, empty_terms, swap_terms, change_folded, change_text, trash_past_the_index,
        remove_vector_row, change_digest, cut_vector,
    ):  # fmt: skip
        with subtests.test(damage.__name__):
            fill(agent)
            memory = rows_of(agent).get(name="tea")
            damage(agent)

            faults = faults_of(agent)

            wipe(agent)
            assert ("ming", memory.pk) in {(fault.user_id, fault.memory_id) for fault in faults}
            assert {fault.user_id for fault in faults} == {"ming"}
            assert {fault.memory_id for fault in faults} <= {0, memory.pk}
            assert all(fault.problem for fault in faults)


def test_wrong_count_names_the_scope(damaged):
    for damage in (count_too_many, count_too_few, count_length_wrong, count_none):
        damage(damaged)

        assert {(fault.user_id, fault.memory_id) for fault in faults_of(damaged)} == {("ming", 0)}


def test_damage_of_many_kinds_at_once_is_mended(damaged):
    for damage in (remove_row, count_too_many):
        damage(damaged)
    rows_of(damaged).filter(name="deploys").update(content="ming on deploy days")
    rows_of(damaged, "bob").filter(name="tea").update(status="trashed")
    scope_of(damaged, "bob").update(content_terms=3)
    if is_sqlite(damaged):
        clear_fts(damaged)

    assert faults_of(damaged)
    maintenance.reindex(damaged)

    assert faults_of(damaged) == []
    assert names_found(damaged) == set(TOPICS)
    assert names_found(damaged, "bob") == set(TOPICS) - {"tea"}
    assert_consistent(damaged)


def test_damage_of_one_agent_is_none_of_its_neighbour(damaged, remember):
    neighbour = make_agent("eve", damaged.memory_config.backend)
    remember(neighbour, "ming", "Eve knows Ming's tea", name="tea")
    terms = list(MemoryTerms.objects.of_scope(scope_of(neighbour).get()).values())
    remove_row(damaged)

    assert faults_of(neighbour) == []
    maintenance.reindex(damaged)
    assert list(MemoryTerms.objects.of_scope(scope_of(neighbour).get()).values()) == terms
    assert names_found(neighbour) == {"tea"}


def test_rows_of_an_older_analyzer_are_found_and_mended(damaged, monkeypatch):
    monkeypatch.setattr(indexing, "ANALYZER_VERSION", 2)
    monkeypatch.setattr(indexing, "document_terms", lambda text: [*document_terms(text), "2026"])
    ids = set(Memory.objects.for_agent(damaged).values_list("pk", flat=True))

    faults = [fault for fault in faults_of(damaged) if "analyzer 1" in fault.problem]
    maintenance.reindex(damaged)

    assert {fault.memory_id for fault in faults} == ids
    assert faults_of(damaged) == []
    versions = Memory.objects.for_agent(damaged).values_list("indexed__analyzer_version", flat=True)
    assert set(versions) == {2}
    hits = search(damaged, "bob", SearchRequest("2026"), now=NOW).hits
    assert {hit.memory.name for hit in hits} == set(TOPICS)


def test_a_reindex_keeps_vectors_that_are_whole(damaged):
    kept, old = vector_of(damaged, "deploys"), vector_of(damaged, "tea")
    kept.update(model="letters", dimension=8, vector=b"1" * 16)
    old.update(model="letters", dimension=8, vector=b"1" * 16)
    change_text(damaged)
    scope = scope_of(damaged).get()

    maintenance.reindex(damaged)

    assert (kept.get().model, bytes(kept.get().vector)) == ("letters", b"1" * 16)
    assert kept.get().stamp > scope.vector_stamp
    assert (old.get().model, bytes(old.get().vector)) == ("", b"")


# --- while it runs ---------------------------------------------------------------------


def test_progress_adds_up_to_what_there_is(damaged):
    trashed = rows_of(damaged).get(name="tea")
    memories.trash(damaged, "ming", trashed.pk, actor=MING, now=NOW)
    checked, reindexed = [], []

    faults = list(maintenance.check(damaged, checked.append))
    done = maintenance.reindex(damaged, reindexed.append)

    assert faults == []
    assert maintenance.count_memories(damaged) == done == sum(checked) == sum(reindexed) == 10
    assert max(reindexed) <= 2


class Interrupted(Exception):
    pass


def test_reindex_that_was_interrupted_is_finished_by_the_next(damaged):
    remove_all_rows(damaged)
    calls = []

    def interrupt(count):
        calls.append(count)
        if len(calls) == 2:
            raise Interrupted

    with pytest.raises(Interrupted):
        maintenance.reindex(damaged, interrupt)

    half = names_found(damaged)
    assert 2 <= len(half) < len(TOPICS)
    assert names_found(damaged, "bob") == set(TOPICS)
    assert maintenance.reindex(damaged) == 10
    assert faults_of(damaged) == []
    assert names_found(damaged) == set(TOPICS)
    assert_consistent(damaged)


def test_reindex_interrupted_anywhere_leaves_a_whole_store_whole(damaged):
    for last in range(1, 7):
        calls = []

        def interrupt(count, calls=calls, last=last):
            calls.append(count)
            if len(calls) == last:
                raise Interrupted

        with pytest.raises(Interrupted):
            maintenance.reindex(damaged, interrupt)

        assert names_found(damaged) == names_found(damaged, "bob") == set(TOPICS)
        assert faults_of(damaged) == []


def test_searches_and_saves_go_on_during_a_reindex(damaged, remember):
    missed, errors, searches, saved, is_done = [], [], [], [], threading.Event()

    def keep_searching():
        try:
            while not is_done.is_set():
                # InnoDB shows a row's old words as deleted a moment before its new ones
                gone = set(TOPICS) - names_found(damaged)
                missed.extend(gone - names_found(damaged))
                searches.append(1)
        except Exception as error:  # noqa: BLE001
            errors.append(error)
        finally:
            connections.close_all()

    def work(count):
        missed.extend(set(TOPICS) - names_found(damaged, "bob"))
        if len(saved) < 3:  # a save for every chunk would never let it come to an end
            saved.append(remember(damaged, "ming", f"Ming reads page {len(saved)}"))

    searcher = threading.Thread(target=keep_searching)
    searcher.start()
    try:
        for _ in range(5):
            maintenance.reindex(damaged, work)
    finally:
        is_done.set()
        searcher.join()

    assert errors == []
    assert searches
    assert missed == []
    assert faults_of(damaged) == []
    assert_consistent(damaged)


def test_optimize_keeps_what_is_found(damaged):
    memory = rows_of(damaged).get(name="tea")
    memories.purge(damaged, "ming", memory.pk)

    maintenance.optimize(store_alias(damaged))

    assert names_found(damaged) == set(TOPICS) - {"tea"}
    assert names_found(damaged, "bob") == set(TOPICS)
    assert faults_of(damaged) == []


def test_memories_of_agents_that_are_no_more_are_counted(agent, remember):
    remember(agent, "ming", "支付模块周五上线")
    alias = store_alias(agent)
    assert maintenance.find_orphans(alias) == 0

    Scope.objects.for_agent(agent).update(agent_id=987_654)

    assert maintenance.find_orphans(alias) == 1
