"""Memories out and in again: nothing lost, nothing doubled, bad lines named and skipped."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory.drafts import DRAFT_FIELDS, parse_draft
from memory.models import ActorKind, Memory, MemoryRevision
from memory.services import maintenance, memories
from memory.services.transfers.transfer import ImportReport, export_lines, import_lines
from memory.services.writing import Actor
from tests.conftest import MING, NOW, make_agent
from tests.memory.rows import assert_consistent, row_counts

LATER = NOW + timedelta(hours=1)
TEA = {"user_id": "ming", "type": "user", "content": "Ming drinks green tea"}
FACT = {"subject": "Ming", "predicate": "deploys on", "object": "周五 🎉"}
METADATA = {
    "z": 1, "a": [None, True, 1.0, -0.0, 2**70, 9007199254740993], "": "empty key",
    'key with "quote" and .dot': "\\ ' \" % \u2028 \x7f", "юни": {"deep": [{}]},
}  # fmt: skip


def as_bytes(*lines):
    """Return lines of a file: records as JSON, text and bytes as they are."""
    return [
        line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode() + b"\n"
        for line in lines
    ]


def take_in(agent, *lines, user_id=None, now=NOW):
    return import_lines(agent, as_bytes(*lines), user_id=user_id, now=now)


def exported(agent, user_id=None):
    return list(export_lines(agent, user_id))


def file_of(agent, user_id=None):
    return [line.encode() + b"\n" for line in export_lines(agent, user_id)]


def contents(agent, user_id="ming"):
    return [memory.content for memory in memories.walk(agent, user_id)]


def rows(agent):
    """Return everything the store holds of an agent, but for the numbers of its rows."""
    of_agent = Memory.objects.for_agent(agent)
    revisions = MemoryRevision.objects.using(of_agent.db).filter(memory__in=of_agent)
    return (
        [
            {name: value for name, value in row.items() if name != "scope_id"}
            for row in of_agent.order_by("id").values()
        ],
        [
            {name: value for name, value in row.items() if name != "id"}
            for row in revisions.order_by("memory_id", "version").values()
        ],
    )


@pytest.fixture(params=["to mysql", "to sqlite"])
def there_and_back(request, ada, grace):
    """An agent, and another one on the other engine."""
    return (ada, grace) if request.param == "to mysql" else (grace, ada)


def live(agent):
    """Give the agent memories of every kind, with a past, the trash included."""
    everything = parse_draft({
        "type": "project", "kind": "fact", "tier": "short_term", "name": " 支付模块 🎉 ",
        "content": "Ming deploys\r\non Fridays ", "description": "when deploys happen ",
        "detail": FACT, "metadata": METADATA, "tags": ["deploy", "发布"], "source": "chat ",
        "importance": 0.1, "confidence": 1 / 3, "pinned": True, "core": True,
        "visibility": "team", "due_at": "2026-12-03T09:00:00.123456Z",
        "expires_at": "9999-12-31T23:59:59.999999Z",
    })  # fmt: skip
    changed = memories.save(agent, "ming", everything, now=NOW)
    changes = [{"content": "支付模块周五上线"}, {"pinned": False, "metadata": {"a": 2**200}}]
    for hours, values in enumerate(changes, 1):
        now = NOW + timedelta(hours=hours, microseconds=7)
        memories.update(agent, "ming", changed.pk, values, actor=MING, reason="Ming 说 so", now=now)
    memories.touch(agent, "ming", [changed.pk], now=NOW + timedelta(hours=5))
    procedure = {"when": "a deploy fails", "steps": ["read the log", "回滚"], "keywords": ["x"]}
    drafts = [
        {"type": "feedback", "kind": "procedure", "content": "Roll back", "detail": procedure},
        {"type": "reference", "kind": "summary", "content": "两条",
         "detail": {"source_ids": [changed.pk], "session_id": "s-1"}, "status": "archived"},
        {"type": "user", "content": "Ming drinks coffee"},
    ]  # fmt: skip
    saved = memories.save_batch(agent, "ming", [parse_draft(each) for each in drafts], now=NOW)
    actor = Actor(ActorKind.AGENT, "ada")
    memories.trash(agent, "ming", saved[-1].pk, actor=actor, reason="no more", now=LATER)
    memories.save(agent, " Ming ", parse_draft({**drafts[-1], "status": "paused"}), now=NOW)
    import_lines(agent, as_bytes({**TEA, "id": "m-1"}), now=NOW)


# --- there and back --------------------------------------------------------------------


def test_round_trip_into_the_other_engine_loses_nothing(there_and_back, names_found):
    source, target = there_and_back
    live(source)

    report = import_lines(target, file_of(source), now=LATER)

    assert report == ImportReport(created=6)
    assert rows(target) == rows(source)
    assert exported(target) == exported(source)
    assert list(maintenance.check(target)) == []
    assert_consistent(target)
    assert names_found(target, "ming", "green tea") == ["Ming drinks green tea"]
    assert names_found(target, "ming", "coffee") == []


def test_exported_line_holds_every_field_as_json(agent):
    live(agent)

    [line, *_] = [json.loads(each) for each in exported(agent, "ming")]

    assert set(line) == {
        "id", "user_id", *DRAFT_FIELDS, "created_at", "updated_at", "last_accessed_at",
        "version", "access_count", "recalls", "revisions",
    }  # fmt: skip
    assert (line["version"], line["access_count"]) == (3, 1)
    assert line["metadata"] == {"a": 2**200}
    assert line["due_at"] == "2026-12-03T09:00:00.123456+00:00"
    assert repr(line["revisions"][0]["state"]["metadata"]) == repr(METADATA)
    assert [each["version"] for each in line["revisions"]] == [1, 2]
    assert {each["reason"] for each in line["revisions"]} == {"Ming 说 so"}


def test_second_import_changes_nothing(there_and_back):
    source, target = there_and_back
    live(source)
    import_lines(target, file_of(source), now=LATER)
    before = rows(target), row_counts(target)

    report = import_lines(target, file_of(source), now=LATER + timedelta(days=1))

    assert report == ImportReport(unchanged=6)
    assert (rows(target), row_counts(target)) == before


def test_import_into_the_agent_itself_changes_nothing(agent):
    live(agent)
    before = rows(agent), row_counts(agent)

    assert import_lines(agent, file_of(agent), now=LATER) == ImportReport(unchanged=6)
    assert (rows(agent), row_counts(agent)) == before


def test_trash_comes_back_with_the_status_it_had(there_and_back, names_found):
    source, target = there_and_back
    live(source)
    import_lines(target, file_of(source), now=LATER)
    [trashed] = Memory.objects.in_scope(target, "ming").filter(status="trashed")

    memories.restore(target, "ming", trashed.pk, actor=MING, now=LATER)

    assert names_found(target, "ming", "coffee") == ["Ming drinks coffee"]
    assert [each.version for each in memories.history(target, "ming", trashed.pk)] == [2, 1]


def test_export_of_one_user_holds_no_other_and_no_other_agent(agent, remember):
    neighbour = make_agent("eve", agent.memory_config.backend)
    remember(agent, "ming", "Ming drinks tea")
    remember(agent, "bob", "Bob drinks tea")
    remember(neighbour, "ming", "Eve knows Ming")

    assert [json.loads(line)["content"] for line in exported(agent, "ming")] == ["Ming drinks tea"]
    assert len(exported(agent)) == 2
    assert exported(agent, "Ming") == exported(agent, "") == []


# --- taken ids -------------------------------------------------------------------------


def test_taken_id_gets_a_new_one_and_is_recognised(agent, remember):
    neighbour = make_agent("eve", agent.memory_config.backend)
    original = remember(agent, "ming", "Ming drinks tea")
    memories.update(agent, "ming", original.pk, {"pinned": True}, actor=MING, now=LATER)

    report = import_lines(neighbour, file_of(agent), now=LATER)

    [copy] = memories.walk(neighbour)
    assert report.created == 1
    [(number, message)] = report.renumbered
    assert number == 1
    assert str(original.pk) in message
    assert str(copy.pk) in message
    assert copy.pk != original.pk
    assert (copy.content, copy.pinned, copy.version) == ("Ming drinks tea", True, 2)
    assert [each.version for each in memories.history(neighbour, "ming", copy.pk)] == [1]
    assert contents(agent) == ["Ming drinks tea"]
    again = import_lines(neighbour, file_of(agent), now=LATER)
    assert again == ImportReport(unchanged=1)
    assert [each.pk for each in memories.walk(neighbour)] == [copy.pk]


def test_taken_id_is_recognised_after_the_other_is_gone(agent, remember):
    neighbour = make_agent("eve", agent.memory_config.backend)
    original = remember(agent, "ming", "Ming drinks tea")
    lines = file_of(agent)
    import_lines(neighbour, lines, now=NOW)
    memories.purge(agent, "ming", original.pk)

    report = import_lines(neighbour, lines, now=NOW)

    assert report == ImportReport(unchanged=1)
    assert contents(neighbour) == ["Ming drinks tea"]


def test_taken_id_leaves_the_name_from_elsewhere(agent):
    neighbour = make_agent("eve", agent.memory_config.backend)
    take_in(agent, {**TEA, "id": "m-1"})
    lines = file_of(agent)

    import_lines(neighbour, lines, now=NOW)

    [copy] = memories.walk(neighbour)
    assert copy.external_id == "m-1"
    assert import_lines(neighbour, lines, now=NOW) == ImportReport(unchanged=1)
    assert take_in(neighbour, {**TEA, "id": "m-1"}) == ImportReport(unchanged=1)


def test_id_of_another_user_of_the_agent_is_taken_too(agent, remember):
    original = remember(agent, "ming", "Ming drinks tea")

    report = import_lines(agent, file_of(agent), user_id="bob", now=NOW)

    assert len(report.renumbered) == report.created == 1
    [copy] = memories.walk(agent, "bob")
    assert copy.pk != original.pk
    assert [each.pk for each in memories.walk(agent, "ming")] == [original.pk]


# --- twice -----------------------------------------------------------------------------


def test_newer_memory_here_stays_and_is_reported(agent, remember):
    memory = remember(agent, "ming", "Ming drinks tea")
    remember(agent, "ming", "Ming deploys on Fridays")
    lines = file_of(agent)
    memories.update(agent, "ming", memory.pk, {"content": "coffee"}, actor=MING, now=LATER)

    report = import_lines(agent, lines, now=LATER)

    assert (report.created, report.updated, report.unchanged) == (0, 0, 1)
    [(number, message)] = report.kept
    assert number == 1
    assert str(memory.pk) in message
    assert contents(agent) == ["coffee", "Ming deploys on Fridays"]


def test_trashed_memory_here_is_not_brought_back_by_an_older_line(agent, remember):
    memory = remember(agent, "ming", "Ming drinks tea")
    lines = file_of(agent)
    memories.trash(agent, "ming", memory.pk, actor=MING, now=LATER)

    assert len(import_lines(agent, lines, now=LATER).kept) == 1
    assert [each.status for each in memories.walk(agent)] == ["trashed"]


def test_edited_line_of_the_same_version_updates_and_keeps_the_old_state(
    agent, remember, names_found
):
    memory = remember(agent, "ming", "Ming drinks tea", name="Drinks")
    [line] = map(json.loads, exported(agent))

    report = take_in(agent, {**line, "content": "Ming drinks coffee"}, now=LATER)

    assert report == ImportReport(updated=1)
    found = memories.get(agent, "ming", memory.pk)
    assert (found.content, found.version, found.updated_at) == ("Ming drinks coffee", 2, LATER)
    [revision] = memories.history(agent, "ming", memory.pk)
    assert (revision.state["content"], revision.version) == ("Ming drinks tea", 1)
    assert (revision.actor_kind, revision.reason) == ("system", "import")
    assert names_found(agent, "ming", "coffee") == ["Drinks"]
    assert names_found(agent, "ming", "tea") == []
    assert_consistent(agent)


def test_edited_line_updates_where_python_sees_no_difference(agent, remember, subtests):
    for old, new in ((1, True), (1, 1.0), (0.0, -0.0), (0, False)):
        with subtests.test(f"{old} to {new}"):
            memory = remember(agent, "ming", "Ming drinks tea", metadata={"cups": old})
            line = json.loads(exported(agent)[-1])

            take_in(agent, {**line, "metadata": {"cups": new}}, now=LATER)

            found = memories.get(agent, "ming", memory.pk)
            assert repr(found.metadata) == repr({"cups": new})


def test_same_id_twice_in_one_file_is_one_memory(agent):
    report = take_in(agent, {**TEA, "id": 7}, {**TEA, "id": 7, "content": "coffee"}, now=LATER)

    assert report == ImportReport(created=1, updated=1)
    assert contents(agent) == ["coffee"]
    [revision] = memories.history(agent, "ming", 7)
    assert revision.state["content"] == TEA["content"]
    assert_consistent(agent)


def test_same_id_twice_for_two_users_is_two_memories(agent):
    report = take_in(agent, {**TEA, "id": 7}, {**TEA, "id": 7, "user_id": "bob"})

    assert report.created == 2
    assert len(report.renumbered) == 1
    assert contents(agent, "ming") == contents(agent, "bob") == [TEA["content"]]


def test_line_without_an_id_is_taken_in_once(agent):
    lines = [TEA, {**TEA, "content": "Ming deploys on Fridays"}, TEA]

    first, second = take_in(agent, *lines), take_in(agent, *lines)

    assert first == ImportReport(created=2, unchanged=1)
    assert second == ImportReport(unchanged=3)
    assert len(contents(agent)) == 2
    assert {each.version for each in memories.walk(agent)} == {1}


def test_line_without_an_id_does_not_undo_what_was_changed_here(agent):
    take_in(agent, TEA)
    [memory] = memories.walk(agent)
    memories.update(agent, "ming", memory.pk, {"content": "coffee"}, actor=MING, now=LATER)

    report = take_in(agent, TEA, now=LATER)

    assert contents(agent) == ["coffee"]
    assert len(report.kept) == 1


# --- what a line may look like ---------------------------------------------------------


def test_line_of_an_evaluation_set_is_a_memory(agent, names_found):
    line = {
        "id": "mb-zh-001", "scope": "小明", "type": "user", "name": "咖啡", "content": "不加糖",
        "description": "", "created_at": "2023-05-01T10:00:00", "lang": "zh",
        "metadata": {"n": 1},
    }  # fmt: skip

    report = take_in(agent, line)

    [memory] = memories.walk(agent)
    assert report == ImportReport(created=1)
    assert memory.external_id == "mb-zh-001"
    assert memory.scope.user_id == "小明"
    assert memory.metadata == {"scope": "小明", "lang": "zh", "n": 1}
    assert memory.created_at == memory.updated_at == datetime(2023, 5, 1, 10, tzinfo=UTC)
    assert names_found(agent, "小明", "咖啡") == ["咖啡"]
    assert take_in(agent, line) == ImportReport(unchanged=1)
    assert exported(agent) == [json.dumps(json.loads(each), ensure_ascii=False)
                               for each in exported(agent)]  # fmt: skip


def test_id_that_is_none_of_ours_is_remembered_by_name(agent):
    for given_id in ("m-1", "7", "🎉", 0, -7, 2**53, 2**70):
        user_id = f"user of {given_id}"
        line = {**TEA, "id": given_id, "user_id": user_id}

        assert take_in(agent, line) == ImportReport(created=1)
        assert take_in(agent, line) == ImportReport(unchanged=1)

        [memory] = memories.walk(agent, user_id)
        assert memory.external_id == str(given_id)
        assert 0 < memory.pk < 2**53


def test_user_given_for_all_lines_overrides_theirs(agent):
    lines = [TEA, {**TEA, "user_id": "bob", "content": "b"}, {"type": "user", "content": "c"}]

    report = take_in(agent, *lines, user_id="mallory ")

    assert report == ImportReport(created=3)
    assert sorted(contents(agent, "mallory ")) == sorted([TEA["content"], "b", "c"])
    assert contents(agent, "ming") == contents(agent, "bob") == []


def test_blank_lines_count_and_mean_nothing(agent):
    lines = [b"\n", b"  \r\n", b"nonsense\n", b"\n", *as_bytes(TEA), b""]

    report = take_in(agent, *lines)

    assert report.created == 1
    assert [number for number, _ in report.errors] == [3]


def test_file_with_windows_line_ends_is_the_same_file(agent):
    [line] = as_bytes(TEA)

    assert take_in(agent, line) == ImportReport(created=1)
    assert take_in(agent, line.replace(b"\n", b"\r\n")) == ImportReport(unchanged=1)
    assert take_in(agent, line.strip()) == ImportReport(unchanged=1)
    assert contents(agent) == [TEA["content"]]


def test_byte_order_mark_does_not_matter(agent):
    assert take_in(agent, b"\xef\xbb\xbf" + as_bytes(TEA)[0]) == ImportReport(created=1)


def test_empty_file_does_nothing(agent):
    assert take_in(agent) == ImportReport()
    assert set(row_counts(agent).values()) == {0}


# --- bad lines -------------------------------------------------------------------------


def line_with(**fields):
    return json.dumps({**TEA, **fields}, ensure_ascii=True).encode()


REVISION = {
    "version": 1, "state": {"type": "user", "content": "Ming drinks coffee"},
    "actor_kind": "user", "actor": "ming", "reason": "", "created_at": "2026-11-30T09:00:00Z",
}  # fmt: skip


def line_with_revisions(*revisions, version=2):
    return line_with(version=version, revisions=list(revisions))


NO_UTF8, NO_JSON = "line: This is not UTF-8", "line: This is not JSON"
NO_OBJECT = "line: This is not a JSON object"
BAD_LINES = {
    "bad UTF-8": (b'{"user_id": "ming", "type": "user", "content": "\xff tea"}', NO_UTF8),
    "half of a surrogate in UTF-8": (line_with().replace(b"green", b"\xed\xa0\xbd"), "content:"),
    "bad JSON": (b'{"content": ', NO_JSON),
    "two records": (line_with() + line_with(), NO_JSON),
    "deep JSON": (b'{"metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", NO_JSON),
    "number of 5000 digits": (line_with(metadata={"n": 0}).replace(b"0", b"9" * 5000), NO_JSON),
    "array": (b"[1, 2]", NO_OBJECT),
    "text": (b'"Ming drinks tea"', NO_OBJECT),
    "null": (b"null", NO_OBJECT),
    "no content": (b'{"user_id": "ming", "type": "user"}', "content:"),
    "no type": (b'{"user_id": "ming", "content": "tea"}', "type:"),
    "no user": (b'{"type": "user", "content": "tea"}', "user_id:"),
    "user that is no text": (line_with(user_id=7), "user_id:"),
    "user of 256 characters": (line_with(user_id="m" * 256), "user_id:"),
    "half a surrogate in the user": (line_with(user_id="\ud83d"), "user_id:"),
    "unknown type": (line_with(type="nonsense"), "type:"),
    "blank content": (line_with(content=" \u200b"), "content:"),
    "null content": (line_with(content=None), "content:"),
    "half a surrogate": (line_with(content="tea \ud83d"), "content:"),
    "NUL": (line_with(content="tea\x00"), "content:"),
    "too long": (line_with(content="t" * 65_537), "content:"),
    "long name": (line_with(name="n" * 256), "name:"),
    "half a surrogate in a tag": (line_with(tags=["\ud83d"]), "tags:"),
    "metadata that is no object": (line_with(metadata=[]), "metadata:"),
    "half a surrogate in metadata": (line_with(metadata={"\ud83d": 1}), "metadata:"),
    "half a surrogate in a field of no memory": (line_with(lang="\ud83d"), "metadata:"),
    "not a number": (line_with(metadata={"n": float("nan")}), "metadata:"),
    "importance past 1": (line_with(importance=7), "importance:"),
    "fact without a subject": (line_with(kind="fact"), "detail.subject:"),
    "id that is neither number nor text": (line_with(id=1.5), "id:"),
    "true for an id": (line_with(id=True), "id:"),
    "blank id": (line_with(id=""), "id:"),
    "id of 256 characters": (line_with(id="m" * 256), "id:"),
    "external id that is no text": (line_with(external_id=7), "external_id:"),
    "half a surrogate in the external id": (line_with(external_id="\ud83d"), "external_id:"),
    "NUL in the external id": (line_with(external_id="m\x00"), "external_id:"),
    "time that is none": (line_with(created_at="yesterday"), "created_at:"),
    "version that is none": (line_with(version="two"), "version:"),
    "negative count": (line_with(access_count=-1), "access_count:"),
    "count past every column": (line_with(access_count=2**31), "access_count:"),
    "revisions that are no list": (line_with(revisions={}), "revisions:"),
    "revision that is no object": (line_with_revisions(7), "revisions:"),
    "revision without a state": (line_with_revisions({"version": 1}), "revisions:"),
    "revision of nobody": (line_with_revisions({**REVISION, "actor_kind": "x"}), "revisions:"),
    "revision without a time": (line_with_revisions({**REVISION, "created_at": ""}), "created_at:"),
    "revision whose state is none": (line_with_revisions({**REVISION, "state": {}}), "type:"),
    "revision whose actor cannot be stored": (
        line_with_revisions({**REVISION, "actor": "\ud83d"}), "actor:"),
    "revision whose reason cannot be stored": (
        line_with_revisions({**REVISION, "reason": "\x00"}), "reason:"),
    "two revisions of one version": (line_with_revisions(REVISION, REVISION), "revisions:"),
    # the memory's own next change would be a second revision of version 1
    "revision as late as the memory": (line_with_revisions(REVISION, version=1), "revisions:"),
}  # fmt: skip


def test_bad_line_is_named_and_skipped(agent, subtests):
    for fault, (bad, named) in BAD_LINES.items():
        with subtests.test(fault):
            good = [{**TEA, "user_id": fault, "content": f"tea {n}"} for n in range(3)]
            lines = [good[0], bad + b"\n", good[1], b"\n", bad + b"\n", good[2]]

            report = take_in(agent, *lines)

            assert report.created == 3
            assert [number for number, _ in report.errors] == [2, 5]
            assert all(message.startswith(named) for _, message in report.errors), report.errors
            assert sorted(contents(agent, fault)) == ["tea 0", "tea 1", "tea 2"]
    assert contents(agent, "ming") == []


def test_blank_external_ids_are_not_one_name(agent):
    lines = [{**TEA, "id": number, "external_id": "", "content": str(number)} for number in (7, 8)]

    report = take_in(agent, *lines)

    assert report.created + len(report.errors) == 2
    assert len(contents(agent)) == report.created


def test_file_with_bad_items_keeps_the_good_ones(agent):
    """Field case C032, as a file."""
    lines = [
        {"name": "a", "content": "1"},
        {"name": "b", "content": "2", "type": "nonsense"},
        {"name": "c", "content": None},
        {"name": "d", "content": "4"},
        {"name": "a", "content": "same name again"},
    ]

    report = take_in(agent, *({"type": "user", **line} for line in lines), user_id="ming")

    assert [number for number, _ in report.errors] == [2, 3]
    found = [(each.name, each.content) for each in memories.walk(agent)]
    assert len(found) == report.created == row_counts(agent)["Memory"] == 3
    assert sorted(found) == [("a", "1"), ("a", "same name again"), ("d", "4")]
    assert take_in(agent, TEA) == ImportReport(created=1)


TRICKY = ["user", "ming", "m-1", "2026-11-30", 7, 2**53, "\ud83d", "\x00", ""]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(TRICKY),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)  # fmt: skip
SURPRISES = """id external_id version access_count created_at updated_at last_accessed_at name tags
    metadata detail kind status importance due_at scope lang""".split()
REVISIONS = st.builds(
    lambda name, value: {**REVISION, name: value},
    st.sampled_from([*REVISION, "more"]),
    JSON_VALUES | st.integers(0, 3),
)
RECORDS = st.builds(
    lambda surprises, revisions: {**TEA, "version": 3, "revisions": revisions, **surprises},
    st.dictionaries(st.sampled_from(SURPRISES), JSON_VALUES, max_size=3),
    st.lists(REVISIONS, max_size=2),
)


@given(st.lists(RECORDS, max_size=4))
@settings(max_examples=40)
@example([{**TEA, "id": 7, "external_id": "m-1"}, {**TEA, "id": 8, "external_id": "m-1"}])
@example([{**TEA, "id": 7, "external_id": "m-1"}, {**TEA, "id": "m-1"}, {**TEA, "id": "7"}])
def test_no_file_stops_an_import_or_is_taken_in_twice(agent, records):
    lines = [json.dumps(record).encode() for record in records]

    first = import_lines(agent, lines, now=NOW)
    second = import_lines(agent, lines, now=NOW)

    for report in (first, second):
        done = report.created + report.updated + report.unchanged
        assert done + len(report.kept) + len(report.errors) == len(lines)
    assert second.created == 0
    assert second.errors == first.errors
    assert import_lines(agent, file_of(agent), now=NOW).errors == []


# --- size ------------------------------------------------------------------------------


def test_large_file_is_taken_in_by_chunks(agent):
    count = 5_000 if agent.memory_config.backend == "sqlite" else 2_000  # a matter of time
    handed_out, waiting = 0, []

    def file():
        nonlocal handed_out
        for number in range(count):
            if handed_out % 100 == 0:
                waiting.append(handed_out - Memory.objects.for_agent(agent).count())
            handed_out += 1
            user_id = f"user {number % 2}"
            [line] = as_bytes({"user_id": user_id, "type": "user", "content": f"tea {number}"})
            yield line

    report = import_lines(agent, file(), now=NOW)

    assert report == ImportReport(created=count)
    assert max(waiting) <= 500
    assert sum(1 for _ in export_lines(agent)) == count
    assert_consistent(agent)
