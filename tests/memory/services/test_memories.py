"""The life of a memory, the same in both engines."""

import base64
import random
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from django.db import DatabaseError, IntegrityError, connections
from django.test.utils import CaptureQueriesContext
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory.databases import store_alias
from memory.drafts import DRAFT_FIELDS, parse_draft
from memory.errors import InvalidMemory, StoreNotOpen, UnknownMemory, VersionConflict
from memory.filters import MemoryFilter
from memory.models import ActorKind, Memory, MemoryRevision, Scope
from memory.recall_log import log_of
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services import memories
from memory.services.erasure import erase_agent, erase_scope
from memory.services.writing import Actor
from tests.conftest import MING, NOW
from tests.memory.rows import assert_consistent, is_index_empty, row_counts, rows_of, terms_left

ADA = Actor(ActorKind.AGENT, "ada")
LATER = NOW + timedelta(hours=1)
FACT = {"subject": "Ming", "predicate": "deploys on", "object": "Fridays"}
EVERYTHING = {
    "type": "project",
    "kind": "fact",
    "tier": "short_term",
    "name": " 支付模块 🎉 ",
    "content": "Ming deploys\r\non Fridays ",
    "description": "when deploys happen ",
    "detail": {**FACT, "object": "周五 👨‍👩‍👧"},
    "metadata": {"z": 1, "a": [None, True, 1.0, -0.0, 2**70]},
    "tags": ["deploy", "发布"],
    "source": "chat ",
    "importance": 0.1,
    "confidence": 1 / 3,
    "pinned": True,
    "core": True,
    "visibility": "team",
    "status": "paused",
    "due_at": datetime(2026, 12, 3, 9, 0, 0, 123456, tzinfo=UTC),
    "expires_at": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
}


def listed(agent, user_id="ming", wanted=None):
    return [memory.name for memory in memories.list_page(agent, user_id, wanted).memories]


def found(agent, query, user_id="ming"):
    result = search(agent, user_id, SearchRequest(query, limit=100), now=NOW)
    return [hit.memory.name for hit in result.hits]


# --- saving and reading ----------------------------------------------------------------


def test_a_saved_memory_is_read_as_it_was_written(agent):
    saved = memories.save(agent, "ming", parse_draft(EVERYTHING), now=NOW)

    read = memories.get(agent, "ming", saved.pk)

    for memory in (saved, read):
        assert {name: getattr(memory, name) for name in DRAFT_FIELDS} == EVERYTHING
        assert repr(memory.metadata) == repr(EVERYTHING["metadata"])
        assert (memory.created_at, memory.updated_at) == (NOW, NOW)
        assert (memory.version, memory.access_count, memory.last_accessed_at) == (1, 0, None)
        assert memory.external_id is None
    assert memories.history(agent, "ming", saved.pk) == []


def test_ids_are_53_bit_and_ascend(agent, remember):
    ids = [remember(agent, "ming", f"week {week}").pk for week in range(9)]

    assert ids == sorted(set(ids))
    assert all(0 < each < 2**53 for each in ids)


def test_a_memory_is_found_as_soon_as_it_is_saved(agent, remember):
    remember(agent, "ming", "支付模块周五上线")

    assert found(agent, "支付") == listed(agent) == ["支付模块周五上线"]


def test_metadata_of_every_json_kind_comes_back_equal(agent, remember):
    metadata = {
        "a": None, "list": [1, "x", None, []], "deep": {"k": {"k": [{}]}}, "empty": {},
        "big": 9007199254740993, 'key with "quote" and .dot': "v", "": "empty key", "юни": "код",
        "floats": [0.1, 1e308, 5e-324, 1.0, -0.0], "signs": "\\ ' \" % \u2028 \x7f 🎉",
        "bigger": 2**200,
    }  # fmt: skip
    memory = remember(agent, "ming", "Ming deploys", metadata=metadata)

    def update(metadata):
        changes = {"metadata": metadata}
        memories.update(agent, "ming", memory.pk, changes, actor=MING, now=LATER)
        return memories.get(agent, "ming", memory.pk).metadata

    assert repr(memories.get(agent, "ming", memory.pk).metadata) == repr(metadata)
    assert update({"a": 1}) == {"a": 1}  # replaced whole
    assert update({"a": None}) == {"a": None}
    for wrong in ([], "text", None, 7):
        with pytest.raises(InvalidMemory):
            update(wrong)
    assert memories.get(agent, "ming", memory.pk).metadata == {"a": None}
    states = [revision.state["metadata"] for revision in memories.history(agent, "ming", memory.pk)]
    assert repr(states) == repr([{"a": 1}, metadata])


NAMES = count()


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=50),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20),
)
@settings(max_examples=25)
@example("👨‍👩‍👧 👍🏽 🇨🇳", "e\u0301")
@example("trailing ", " both ")
@example("\ufeff\ufffe\uffff\U0010ffff", "\x1f\x7f\x85")
@example("line\r\nline\rline\n", "\t")
@example("\\ \\' \" % _ ; -- NULL \\0 \x1a", "{}[]()<>&")
@example("𠮷野家 ภาษา العربية שָׁלוֹם नमस्ते", "Ａ①ﬁ")
def test_every_text_is_kept_letter_by_letter(agent, text, short):
    user_id = f"{short}{next(NAMES)}"
    draft = parse_draft(
        {
            "type": "user",
            "content": f"Ming{text}",
            "name": f"Ming{short} ",
            "description": text[:500],
            "source": short,
            "metadata": {text: [short, {short: text}]},
            "kind": "procedure",
            "detail": {"when": f"Ming{short}", "steps": [f"Ming{text}"]},
        }
    )

    saved = memories.save(agent, user_id, draft, now=NOW)
    read = memories.get(agent, user_id, saved.pk)

    assert [getattr(read, name) for name in DRAFT_FIELDS if name != "tags"] == [
        getattr(draft, name) for name in DRAFT_FIELDS if name != "tags"
    ]
    assert [memory.pk for memory in memories.walk(agent, user_id)] == [saved.pk]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])), max_size=5))
@settings(max_examples=15)
@example(["a", "b", "a b", "🎉", "100%", "_", "\\", "'", '"'])
def test_every_tag_is_kept_and_found(agent, words):
    user_id = f"user {next(NAMES)}"
    draft = parse_draft(
        {"type": "user", "content": "tea", "tags": [f"#{word[:60]}" for word in words]}
    )

    saved = memories.save(agent, user_id, draft, now=NOW)

    assert memories.get(agent, user_id, saved.pk).tags == list(draft.tags)
    for tag in draft.tags:
        assert listed(agent, user_id, MemoryFilter(tags=(tag,))) == ["tea"]
    assert listed(agent, user_id, MemoryFilter(tags=(*draft.tags, "tea"))) == []


def test_a_blank_memory_is_refused_and_leaves_nothing(agent):
    for body in (
        {"name": "a", "content": ""},
        {"name": "b", "content": "  \n\t "},
        {"name": "c"},
        {"name": "d", "content": None},
        {"name": "e", "content": "\u200b"},
        {},
    ):
        with pytest.raises(InvalidMemory) as caught:
            memories.save(agent, "ming", parse_draft({"type": "user", **body}), now=NOW)
        assert "content" in caught.value.fields

    assert set(row_counts(agent).values()) == {0}


# --- batches ---------------------------------------------------------------------------


def test_a_batch_is_saved_in_order(agent):
    drafts = [parse_draft({"type": "user", "content": f"week {week}"}) for week in range(450)]

    saved = memories.save_batch(agent, "ming", drafts, now=NOW)

    assert [memory.content for memory in saved] == [f"week {week}" for week in range(450)]
    assert [memory.pk for memory in memories.walk(agent, "ming")] == [each.pk for each in saved]
    assert_consistent(agent)


def test_a_batch_of_long_memories_goes_to_mysql_in_pieces(grace):
    content = " ".join(f"{number:x}" for number in range(0xA000, 0xA000 + 13_000))
    drafts = [parse_draft({"type": "user", "content": content})] * 30

    with CaptureQueriesContext(connections[store_alias(grace)]) as captured:
        memories.save_batch(grace, "ming", drafts, now=NOW)

    # a server takes 16 MB (MariaDB) or 64 MB (MySQL) a statement unless told otherwise
    assert max(len(each["sql"]) for each in captured.captured_queries) < 4 * 1024**2
    assert row_counts(grace)["MemoryTerms"] == 30


def test_an_empty_batch_saves_nothing(agent):
    assert memories.save_batch(agent, "ming", [], now=NOW) == []
    assert listed(agent) == []


def test_a_batch_that_fails_half_way_saves_nothing(agent, remember, monkeypatch):
    first = remember(agent, "ming", "kumquat")
    before = rows_of(agent, first)
    drafts = [parse_draft({"type": "user", "content": f"durian {n}"}) for n in range(3)]
    with monkeypatch.context() as patch:
        taken = [first.pk + 10**6, first.pk, first.pk + 10**6 + 1]
        patch.setattr(memories, "next_ids", lambda count, now: taken)
        with pytest.raises(IntegrityError):
            memories.save_batch(agent, "ming", drafts, now=NOW)
        with pytest.raises(IntegrityError):
            memories.save_batch(agent, "bob", drafts, now=NOW)

    assert rows_of(agent, first) == before
    assert listed(agent) == ["kumquat"]
    assert found(agent, "durian") == []
    assert terms_left(agent, "durian") == 0
    assert len(memories.save_batch(agent, "ming", drafts, now=NOW)) == 3
    assert_consistent(agent)


def test_one_bad_draft_of_many_is_named_before_anything_is_stored(agent):
    bodies = [
        {"name": "a", "content": "1"},
        {"name": "b", "content": "2", "type": "nonsense"},
        {"name": "c", "content": None},
        {"name": "d", "content": "4"},
        {"name": "a", "content": "same name again"},
    ]

    drafts, refused = [], {}
    for position, body in enumerate(bodies):
        try:
            drafts.append(parse_draft({"type": "user", **body}))
        except InvalidMemory as error:
            refused[position] = set(error.fields)
    saved = memories.save_batch(agent, "ming", drafts, now=NOW)

    assert refused == {1: {"type"}, 2: {"content"}}
    assert sorted(listed(agent)) == sorted(memory.name for memory in saved) == ["a", "a", "d"]


# --- changing --------------------------------------------------------------------------


def test_a_change_keeps_the_old_state_with_who_when_and_why(agent):
    memory = memories.save(agent, "ming", parse_draft(EVERYTHING), now=NOW)
    changes = {"content": "Ming deploys on Thursdays", "tags": [], "due_at": None, "pinned": False}

    updated = memories.update(
        agent, "ming", memory.pk, changes, actor=ADA, now=LATER, reason="Ming said so"
    )

    read = memories.get(agent, "ming", memory.pk)
    for changed in (updated, read):
        assert {name: getattr(changed, name) for name in DRAFT_FIELDS} == {**EVERYTHING, **changes}
        assert (changed.version, changed.created_at, changed.updated_at) == (2, NOW, LATER)
    (revision,) = memories.history(agent, "ming", memory.pk)
    assert (revision.version, revision.created_at) == (1, LATER)
    assert (revision.actor_kind, revision.actor, revision.reason) == (
        "agent",
        "ada",
        "Ming said so",
    )
    times = {"due_at": "2026-12-03T09:00:00.123456+00:00"}
    times["expires_at"] = "9999-12-31T23:59:59.999999+00:00"
    assert revision.state == {**EVERYTHING, **times}
    assert repr(revision.state["metadata"]) == repr(EVERYTHING["metadata"])


def test_a_correction_leaves_one_memory_with_the_new_text(agent, remember):
    office = remember(agent, "ming", "The office is in Riga", name="office")

    changes = {"content": "The office is in Tartu"}
    updated = memories.update(agent, "ming", office.pk, changes, actor=ADA, now=LATER)

    assert updated.pk == office.pk
    assert listed(agent) == found(agent, "office") == found(agent, "Tartu") == ["office"]
    assert found(agent, "Riga") == []
    assert memories.history(agent, "ming", office.pk)[0].state["content"] == "The office is in Riga"


def test_history_is_newest_first(agent, remember):
    memory = remember(agent, "ming", "version 1")
    for version in (2, 3, 4):
        changes = {"content": f"version {version}"}
        memories.update(agent, "ming", memory.pk, changes, actor=MING, now=NOW)

    history = memories.history(agent, "ming", memory.pk)

    assert [revision.version for revision in history] == [3, 2, 1]
    assert [revision.state["content"][-1] for revision in history] == ["3", "2", "1"]


def test_the_same_again_writes_nothing(agent):
    memory = memories.save(agent, "ming", parse_draft(EVERYTHING), now=NOW)
    before = rows_of(agent, memory)
    whole = {**EVERYTHING, "due_at": "2026-12-03T17:00:00.123456+08:00"}

    for changes in ({}, whole, *({name: value} for name, value in whole.items())):
        with CaptureQueriesContext(connections[store_alias(agent)]) as captured:
            same = memories.update(agent, "ming", memory.pk, changes, actor=MING, now=LATER)
        assert same.version == 1
        statements = [each["sql"].split()[0] for each in captured.captured_queries]
        assert not {"INSERT", "UPDATE", "DELETE"} & set(statements), changes

    assert rows_of(agent, memory) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [({"n": 1}, {"n": True}), ({"n": 1}, {"n": 1.0}), ({"a": 1, "b": 2}, {"b": 2, "a": 1})],
)
def test_values_that_python_holds_equal_are_changes_in_json(ada, remember, old, new):
    memory = remember(ada, "ming", "tea", metadata=old)

    memories.update(ada, "ming", memory.pk, {"metadata": new}, actor=MING, now=LATER)

    assert repr(memories.get(ada, "ming", memory.pk).metadata) == repr(new)


def test_a_change_of_what_is_not_searched_leaves_the_index_alone(agent, remember):
    memory = remember(agent, "ming", "Ming deploys on Fridays")
    terms = rows_of(agent, memory)[1]
    alias = store_alias(agent)

    with CaptureQueriesContext(connections[alias]) as captured:
        changes = {"importance": 0.9, "pinned": True, "status": "paused", "metadata": {"a": 1}}
        memories.update(agent, "ming", memory.pk, changes, actor=MING, now=LATER)

    assert rows_of(agent, memory)[1] == terms
    assert not any("memoryterms" in each["sql"] for each in captured.captured_queries)


def test_a_change_of_what_is_searched_is_found_at_once(agent, remember):
    for changes in (
        {"name": "kumquat"},
        {"content": "kumquat"},
        {"description": "kumquat"},
        {"tags": ["kumquat"]},
        {"kind": "fact", "detail": {**FACT, "object": "kumquat"}},
    ):
        memory = remember(agent, "ming", "durian", name="durian", description="durian")
        memories.update(agent, "ming", memory.pk, changes, actor=MING, now=LATER)
        assert found(agent, "kumquat") == [changes.get("name", "durian")]
        memories.purge(agent, "ming", memory.pk)
    assert_consistent(agent)


def test_a_memory_of_another_kind_leaves_its_old_detail_behind(agent, remember):
    memory = remember(agent, "ming", "Ming deploys", kind="fact", detail=FACT)

    def update(**changes):
        return memories.update(agent, "ming", memory.pk, changes, actor=MING, now=LATER)

    with pytest.raises(InvalidMemory) as caught:
        update(kind="procedure")
    assert set(caught.value.fields) == {"detail.when", "detail.steps"}
    with pytest.raises(InvalidMemory):
        update(detail={"subject": "Ming"})
    assert update(detail={**FACT, "object": "Mondays"}).detail["object"] == "Mondays"
    assert update(kind="observation").detail == {}
    assert memories.get(agent, "ming", memory.pk).version == 3


@pytest.mark.parametrize(
    "changes",
    [{"content": ""}, {"name": " "}, {"status": "trashed"}, {"version": 7}, {"importance": 2}],
)
def test_a_change_that_cannot_be_is_refused_whole(ada, remember, changes):
    memory = remember(ada, "ming", "Ming deploys")
    before = rows_of(ada, memory)

    changes = {"description": "weekly", **changes}
    with pytest.raises(InvalidMemory) as caught:
        memories.update(ada, "ming", memory.pk, changes, actor=MING, now=LATER)

    assert "description" not in caught.value.fields
    assert rows_of(ada, memory) == before


def test_a_change_of_an_old_version_is_refused(agent, remember):
    memory = remember(agent, "ming", "Ming deploys on Fridays")

    def update(content, version):
        return memories.update(
            agent, "ming", memory.pk, {"content": content}, actor=MING, now=LATER,
            expected_version=version,
        )  # fmt: skip

    assert update("Ming deploys on Thursdays", 1).version == 2
    before = rows_of(agent, memory)
    for stale in (1, 3, 0):
        with pytest.raises(VersionConflict):
            update("Ming never deploys", stale)
        with pytest.raises(VersionConflict):
            memories.trash(agent, "ming", memory.pk, actor=MING, now=LATER, expected_version=stale)
    assert rows_of(agent, memory) == before
    assert memories.trash(agent, "ming", memory.pk, actor=MING, now=LATER, expected_version=2)


# --- reinforcing and touching ----------------------------------------------------------


def test_reinforcing_moves_importance_within_its_bounds(agent, remember):
    memory = remember(agent, "ming", "Ming deploys", importance=0.5)

    def reinforce(delta):
        return memories.reinforce(agent, "ming", memory.pk, delta, actor=ADA, now=LATER).importance

    assert [reinforce(delta) for delta in (0.2, 0.1, 1, 1, -0.3, -1, -1)] == [
        0.7, 0.8, 1.0, 1.0, 0.7, 0.0, 0.0,
    ]  # fmt: skip
    history = memories.history(agent, "ming", memory.pk)
    assert len(history) == 5  # at a bound nothing changes
    assert {(revision.actor, revision.reason) for revision in history} == {("ada", "reinforce")}


@pytest.mark.parametrize("delta", [1.01, -1.01, float("nan"), float("inf")])
def test_reinforcing_by_more_than_one_is_refused(ada, remember, delta):
    memory = remember(ada, "ming", "Ming deploys")

    with pytest.raises(InvalidMemory) as caught:
        memories.reinforce(ada, "ming", memory.pk, delta, actor=ADA, now=LATER)

    assert set(caught.value.fields) == {"delta"}


def test_touching_counts_and_changes_nothing_else(agent, remember):
    memory = remember(agent, "ming", "Ming deploys")
    trashed = remember(agent, "ming", "gone")
    memories.trash(agent, "ming", trashed.pk, actor=MING, now=NOW)
    ((before,), *other_rows) = rows_of(agent, memory)

    ids = [memory.pk, memory.pk, trashed.pk, 1]
    assert memories.touch(agent, "ming", ids, now=LATER) == 1
    assert memories.touch(agent, "ming", [memory.pk], now=LATER + timedelta(hours=1)) == 1
    assert memories.touch(agent, "ming", [], now=LATER) == 0
    assert memories.touch(agent, "bob", [memory.pk], now=LATER) == 0

    used = {
        "access_count": 2,
        "last_accessed_at": LATER + timedelta(hours=1),
        "recall_log": log_of({LATER.date(): 2}),
    }
    assert rows_of(agent, memory) == [[{**before, **used}], *other_rows]


# --- the trash -------------------------------------------------------------------------


def test_what_is_in_the_trash_is_gone_but_for_the_trash(agent, remember):
    memory = remember(agent, "ming", "kumquat")

    trashed = memories.trash(agent, "ming", memory.pk, actor=MING, now=LATER, reason="wrong")

    assert (trashed.status, trashed.version, trashed.updated_at) == ("trashed", 2, LATER)
    assert listed(agent) == found(agent, "kumquat") == []
    assert listed(agent, wanted=MemoryFilter(statuses=("trashed",))) == ["kumquat"]
    assert rows_of(agent, memory)[1] == []
    (revision,) = memories.history(agent, "ming", memory.pk)
    assert (revision.actor, revision.reason, revision.created_at) == ("ming", "wrong", LATER)
    assert revision.state["status"] == "active"
    with pytest.raises(UnknownMemory):
        memories.get(agent, "ming", memory.pk)
    with pytest.raises(UnknownMemory):
        memories.update(agent, "ming", memory.pk, {"name": "a"}, actor=MING, now=LATER)
    with pytest.raises(UnknownMemory):
        memories.reinforce(agent, "ming", memory.pk, 0.1, actor=MING, now=LATER)


def test_trashing_twice_does_not_move_the_date(agent, remember):
    memory = remember(agent, "ming", "kumquat")
    memories.trash(agent, "ming", memory.pk, actor=MING, now=NOW)
    before = rows_of(agent, memory)

    with pytest.raises(UnknownMemory):
        memories.trash(agent, "ming", memory.pk, actor=MING, now=LATER)
    assert memories.trash_matching(agent, "ming", MemoryFilter(), actor=MING, now=LATER) == 0
    in_trash = MemoryFilter(statuses=("trashed",))
    assert memories.trash_matching(agent, "ming", in_trash, actor=MING, now=LATER) == 0

    assert rows_of(agent, memory) == before


def test_a_restored_memory_has_the_status_it_had(agent, remember):
    for status in ("active", "paused", "archived", "superseded"):
        memory = remember(agent, "ming", f"kumquat {status}", status=status)
        memories.trash(agent, "ming", memory.pk, actor=MING, now=NOW)

        restored = memories.restore(agent, "ming", memory.pk, actor=MING, now=LATER)

        assert (restored.status, restored.version, restored.updated_at) == (status, 3, LATER)
        assert memories.get(agent, "ming", memory.pk).status == status
        history = memories.history(agent, "ming", memory.pk)
        assert [revision.state["status"] for revision in history] == ["trashed", status]
    assert found(agent, "kumquat") == ["kumquat active"]
    assert_consistent(agent)


def test_restoring_twice_is_restoring_once(agent, remember):
    memory = remember(agent, "ming", "kumquat")
    memories.trash(agent, "ming", memory.pk, actor=MING, now=NOW)
    memories.restore(agent, "ming", memory.pk, actor=MING, now=NOW)
    before = rows_of(agent, memory)

    assert memories.restore(agent, "ming", memory.pk, actor=MING, now=LATER).version == 3

    assert rows_of(agent, memory) == before


def test_a_memory_saved_into_the_trash_can_be_restored(agent, remember):
    memory = remember(agent, "ming", "kumquat", status="trashed")
    assert found(agent, "kumquat") == []

    memories.restore(agent, "ming", memory.pk, actor=MING, now=LATER)

    assert found(agent, "kumquat") == ["kumquat"]


def test_trash_matching_takes_what_matches_and_no_more(agent, remember):
    remember(agent, "ming", "old", now=NOW - timedelta(days=9), tags=["a"])
    remember(agent, "ming", "feedback", type="feedback", tags=["a"])
    remember(agent, "ming", "archived", status="archived", tags=["a"])
    remember(agent, "ming", "plain")
    remember(agent, "bob", "bob's", tags=["a"])

    def trash(**wanted):
        return memories.trash_matching(
            agent, "ming", MemoryFilter(**wanted), actor=ADA, now=LATER, reason="spring"
        )

    assert trash(tags=("b",)) == 0
    assert trash(created_before=NOW) == 1
    assert trash(types=("feedback",), tags=("a",)) == 1
    assert trash(statuses=("active",), tags=("a",)) == 0
    assert listed(agent) == ["plain", "archived"]
    assert trash(tags=("a",)) == 1
    assert listed(agent) == ["plain"]
    assert listed(agent, "bob") == ["bob's"]
    assert memories.trash_matching(agent, "mallory", MemoryFilter(), actor=ADA, now=NOW) == 0
    (trashed,) = memories.list_page(
        agent, "ming", MemoryFilter(statuses=("trashed",), types=("feedback",))
    ).memories
    (revision,) = memories.history(agent, "ming", trashed.pk)
    assert (revision.actor, revision.reason) == ("ada", "spring")
    assert_consistent(agent)


def test_trash_matching_works_in_chunks(agent):
    drafts = [parse_draft({"type": "user", "content": f"week {week}"}) for week in range(1_050)]
    memories.save_batch(agent, "ming", drafts, now=NOW)

    assert memories.trash_matching(agent, "ming", MemoryFilter(), actor=MING, now=LATER) == 1_050

    assert listed(agent) == found(agent, "week") == []
    assert is_index_empty(agent)
    assert row_counts(agent)["MemoryRevision"] == 1_050
    assert_consistent(agent)


# --- erasing ---------------------------------------------------------------------------


@pytest.mark.parametrize("is_trashed", [False, True])
def test_a_purged_memory_leaves_no_row_anywhere(agent, remember, is_trashed):
    memory = remember(agent, "ming", "kumquat 金橘")
    memories.update(agent, "ming", memory.pk, {"content": "durian"}, actor=MING, now=NOW)
    if is_trashed:
        memories.trash(agent, "ming", memory.pk, actor=MING, now=NOW)

    memories.purge(agent, "ming", memory.pk)

    counts = row_counts(agent)
    assert counts["Memory"] == counts["MemoryTerms"] == counts["MemoryRevision"] == 0
    assert is_index_empty(agent)
    assert terms_left(agent, "kumquat", "金橘", "durian") == 0
    for again in (
        lambda: memories.purge(agent, "ming", memory.pk),
        lambda: memories.restore(agent, "ming", memory.pk, actor=MING, now=NOW),
        lambda: memories.history(agent, "ming", memory.pk),
    ):
        with pytest.raises(UnknownMemory):
            again()
    assert_consistent(agent)


def test_a_purge_leaves_the_neighbours(agent, remember):
    memory = remember(agent, "ming", "kumquat")
    kept = remember(agent, "ming", "kumquat jam")
    before = rows_of(agent, kept)[:3]

    memories.purge(agent, "ming", memory.pk)

    assert rows_of(agent, kept)[:3] == before
    assert found(agent, "kumquat") == ["kumquat jam"]


def test_an_erased_agent_leaves_nothing(agent):
    drafts = [parse_draft({"type": "user", "content": f"rambutan {n}"}) for n in range(520)]
    for user_id in ("ming", "bob"):
        saved = memories.save_batch(agent, user_id, drafts, now=NOW)
        memories.update(agent, user_id, saved[0].pk, {"name": "a"}, actor=MING, now=NOW)
        memories.trash(agent, user_id, saved[1].pk, actor=MING, now=NOW)

    assert erase_agent(agent) == 1_040

    # the mark that keeps late writers out stays until the agent's own row is gone
    assert row_counts(agent) == {**dict.fromkeys(row_counts(agent), 0), "Store": 1}
    assert is_index_empty(agent)
    assert erase_agent(agent) == 0
    with pytest.raises(StoreNotOpen, match="being deleted"):
        memories.save(agent, "carol", drafts[0], now=NOW)


@pytest.mark.parametrize("delete", [lambda a: a.delete(), lambda a: type(a).objects.all().delete()])
def test_deleting_an_agent_erases_its_memories(agent, remember, delete):
    remember(agent, "ming", "rambutan")
    memory = remember(agent, "bob", "红毛丹")
    memories.trash(agent, "bob", memory.pk, actor=MING, now=NOW)
    alias = store_alias(agent)

    delete(agent)

    assert not Memory.objects.using(alias).exists()
    assert not MemoryRevision.objects.using(alias).exists()
    assert set(row_counts_of(alias)) == {0}


def row_counts_of(alias):
    with connections[alias].cursor() as cursor:
        for table in ("memory", "memoryterms", "memoryrevision", "scope", "store"):
            cursor.execute(f"SELECT count(*) FROM memory_{table}")
            yield cursor.fetchone()[0]


def test_erasing_a_user_leaves_the_others(agent, remember):
    memory = remember(agent, "ming", "rambutan")
    remember(agent, "bob", "rambutan of bob")

    assert erase_scope(memory.scope) == 1

    assert found(agent, "rambutan") == listed(agent) == []
    assert found(agent, "rambutan", "bob") == ["rambutan of bob"]
    assert row_counts(agent)["Scope"] == 1
    remember(agent, "ming", "a new life")
    assert listed(agent) == ["a new life"]
    assert_consistent(agent)


# --- lists -----------------------------------------------------------------------------


def test_a_walk_through_all_pages_meets_every_memory_once(agent, remember):
    drafts = [parse_draft({"type": "user", "content": f"week {week}"}) for week in range(523)]
    originals = {memory.pk for memory in memories.save_batch(agent, "ming", drafts, now=NOW)}
    for number in range(40):
        remember(agent, "bob", f"bob {number}")

    met, pages, cursor = [], 0, ""
    while pages == 0 or cursor:
        page = memories.list_page(agent, "ming", cursor=cursor, limit=50)
        met += [memory.pk for memory in page.memories]
        assert len(page.memories) == 50 or not page.next
        pages, cursor = pages + 1, page.next
        if pages == 5:
            remember(agent, "ming", "one more, as old as the others")

    assert pages == 11
    assert len(met) == 523
    assert set(met) == originals
    assert met == sorted(met, reverse=True)


def test_a_walk_survives_the_deletion_of_where_it_stands(agent, remember):
    for week in range(6):
        remember(agent, "ming", f"week {week}", now=NOW + timedelta(days=week))
    page = memories.list_page(agent, "ming", limit=2)
    memories.purge(agent, "ming", page.memories[-1].pk)

    rest = memories.list_page(agent, "ming", cursor=page.next)

    assert [memory.name for memory in rest.memories] == ["week 3", "week 2", "week 1", "week 0"]
    assert rest.next == ""


def test_a_list_is_ordered_by_creation_not_by_id(agent, remember):
    remember(agent, "ming", "newest", now=LATER)
    remember(agent, "ming", "oldest", now=NOW - timedelta(days=1))
    remember(agent, "ming", "middle, first", now=NOW)
    remember(agent, "ming", "middle, second", now=NOW)

    assert listed(agent) == ["newest", "middle, second", "middle, first", "oldest"]


def test_a_page_has_one_to_two_hundred_memories(ada):
    drafts = [parse_draft({"type": "user", "content": f"week {week}"}) for week in range(201)]
    memories.save_batch(ada, "ming", drafts, now=NOW)

    for limit, shown in ((0, 1), (-5, 1), (1, 1), (200, 200), (10_000, 200)):
        page = memories.list_page(ada, "ming", limit=limit)
        assert len(page.memories) == shown
        assert page.next


def test_a_list_costs_one_query(agent, remember):
    for week in range(30):
        remember(agent, "ming", f"week {week}", tags=["a"])

    with CaptureQueriesContext(connections[store_alias(agent)]) as captured:
        page = memories.list_page(agent, "ming", MemoryFilter(tags=("a",)), limit=10)
        shown = [(memory.name, memory.tags, memory.metadata) for memory in page.memories]

    assert len(captured) == 1
    assert len(shown) == 10


@pytest.mark.parametrize(
    "position",
    ["|1", "2026-11-30T09:00:00|1", "2026-11-30T09:00:00+00:00|", "2026-11-30T09:00:00+00:00|a",
     "0001-01-01T00:00:00+14:00|1", "9999-12-31T23:00:00-14:00|1"],
)  # fmt: skip
def test_a_position_that_cannot_be_is_refused(ada, position):
    cursor = base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")

    with pytest.raises(InvalidMemory) as caught:
        memories.list_page(ada, "ming", cursor=cursor)

    assert set(caught.value.fields) == {"cursor"}


def test_a_cursor_of_no_list_is_refused(ada):
    for cursor in ("nonsense", "!!!", "支付", "\ud800", "A" * 10_000, "a", "\x00"):
        with pytest.raises(InvalidMemory) as caught:
            memories.list_page(ada, "ming", cursor=cursor)
        assert set(caught.value.fields) == {"cursor"}


def test_a_list_can_be_narrowed(agent, remember):
    remember(agent, "ming", "feedback", type="feedback", importance=0.9, tags=["a", "b"])
    remember(agent, "ming", "archived", status="archived", source="import")
    remember(agent, "ming", "short", tier="short_term", kind="summary", tags=["a"])

    def narrowed(**wanted):
        return set(listed(agent, wanted=MemoryFilter(**wanted)))

    assert narrowed() == {"feedback", "archived", "short"}
    assert narrowed(types=("feedback",)) == narrowed(min_importance=0.9) == {"feedback"}
    assert narrowed(types=("feedback", "user")) == {"feedback", "archived", "short"}
    assert narrowed(statuses=("archived",)) == narrowed(source="import") == {"archived"}
    assert narrowed(tier="short_term") == narrowed(kinds=("summary",)) == {"short"}
    assert narrowed(tags=("a",)) == {"feedback", "short"}
    assert narrowed(tags=("a", "b")) == {"feedback"}
    assert narrowed(created_after=NOW) == narrowed(created_before=NOW) == set()


def test_a_walk_over_everything_reads_in_chunks_the_trash_included(agent):
    drafts = [parse_draft({"type": "user", "content": f"week {week}"}) for week in range(510)]
    for user_id in ("ming", "bob"):
        saved = memories.save_batch(agent, user_id, drafts, now=NOW)
        memories.trash(agent, user_id, saved[7].pk, actor=MING, now=NOW)

    with CaptureQueriesContext(connections[store_alias(agent)]) as captured:
        walked = list(memories.walk(agent))
        owners = {memory.scope.user_id for memory in walked}
        revisions = sum(len(memory.revisions.all()) for memory in walked)

    assert len(walked) == len({memory.pk for memory in walked}) == 1_020
    assert owners == {"ming", "bob"}
    assert revisions == 2
    assert len(captured) <= 7
    assert len(list(memories.walk(agent, "ming"))) == 510


# --- everything together ---------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_after_anything_the_scope_counts_what_there_is(agent, remember, seed):
    dice = random.Random(seed)
    words = ["kumquat", "支付", "deploys", "file_name", "QA"]
    states = {}  # id → (words, status)

    def content():
        return " ".join(dice.choices(words, k=dice.randint(1, 6)))

    def pick(*statuses):
        return dice.choice([pk for pk, (_, s) in states.items() if s in statuses] or [0])

    def save():
        draft = parse_draft({"type": "user", "content": content(), "tags": [dice.choice("ab")]})
        for memory in memories.save_batch(agent, "ming", [draft] * dice.randint(1, 3), now=NOW):
            states[memory.pk] = (memory.content, "active")

    def update():
        pk, new = pick("active", "archived"), content()
        memories.update(agent, "ming", pk, {"content": new, "name": "n"}, actor=MING, now=NOW)
        states[pk] = (new, states[pk][1])

    def set_status():
        pk, status = pick("active", "archived"), dice.choice(["active", "archived"])
        memories.update(agent, "ming", pk, {"status": status}, actor=MING, now=NOW)
        states[pk] = (states[pk][0], status)

    def trash():
        pk = pick("active", "archived")
        memories.trash(agent, "ming", pk, actor=MING, now=NOW)
        states[pk] = (states[pk][0], f"trashed {states[pk][1]}")

    def trash_tag():
        wanted = MemoryFilter(tags=(dice.choice("ab"),), statuses=("archived",))
        ids = {memory.pk for memory in memories.list_page(agent, "ming", wanted).memories}
        assert memories.trash_matching(agent, "ming", wanted, actor=MING, now=NOW) == len(ids)
        for pk in ids:
            states[pk] = (states[pk][0], "trashed archived")

    def restore():
        pk = pick("trashed active", "trashed archived")
        memories.restore(agent, "ming", pk, actor=MING, now=NOW)
        states[pk] = (states[pk][0], states[pk][1].removeprefix("trashed "))

    def purge():
        pk = pick("active", "archived", "trashed active")
        memories.purge(agent, "ming", pk)
        del states[pk]

    def fail():
        draft = parse_draft({"type": "user", "content": content()})
        taken = dice.choice(list(states))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memories, "next_ids", lambda count, now: [taken])
            memories.save(agent, "ming", draft, now=NOW)

    def touch():
        memories.touch(agent, "ming", list(states), now=NOW)

    save()
    remember(agent, "bob", " ".join(words))
    moves = [save, save, update, update, set_status, trash, restore, purge, fail, touch, trash_tag]
    for move in dice.choices(moves, k=60):
        try:
            move()
        except (UnknownMemory, DatabaseError):
            continue  # there was nothing to move, or the id was taken

    assert_consistent(agent)
    kept = {pk for pk, (_, status) in states.items() if not status.startswith("trashed")}
    assert {memory.pk for memory in memories.list_page(agent, "ming", limit=200).memories} == kept
    assert {memory.pk for memory in memories.walk(agent, "ming")} == set(states)
    for word in words:
        hits = search(agent, "ming", SearchRequest(word, limit=200), now=NOW).hits
        live = {pk for pk, (text, status) in states.items() if status == "active" and word in text}
        assert {hit.memory.pk for hit in hits} == live
    assert found(agent, "kumquat", "bob") == [" ".join(words)]


def test_agent_that_was_deleted_meanwhile_takes_no_save(agent):
    stale = type(agent).objects.named(agent.name)
    alias = store_alias(agent)
    agent.delete()

    with pytest.raises(StoreNotOpen, match="has been deleted"):
        memories.save(stale, "ming", parse_draft({"type": "user", "content": "tea"}), now=NOW)

    assert not Memory.objects.using(alias).exists()
    assert not Scope.objects.using(alias).exists()
