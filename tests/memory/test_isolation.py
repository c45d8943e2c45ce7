"""Nobody reaches what is another's: users, agents, and the terms in the index."""

import pytest

from memory.analyzer import document_terms, encode_term, scope_key
from memory.databases import store_alias
from memory.errors import HippoError, UnknownMemory, UnscopedQuery
from memory.filters import MemoryFilter
from memory.fts import TermQuery
from memory.models import Memory, MemoryRevision, MemoryTerms, Scope, Store
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services import memories
from tests.conftest import MING, NOW, make_agent
from tests.memory.rows import rows_of

ODD_USERS = [
    "team/anna", "../anna", "anna@example.org", "agent:main:42", "anna b", "a+b", "ж-用户-🙂",
    "%2F", "a?b#c", "0", "null", "550e8400-e29b-41d4-a716-446655440000", " ", "anna\tb", "'; --",
    "*", "%", "_", "\\", "🙂" * 255,
]  # fmt: skip
LIKE_U1 = [
    "u2", "u1 ", " u1", "U1", "u1%", "u_", "%", "u10", "u1:a", "u1.a", "u1/a", "u1/../u2", "ú1",
    "u\u03011", "u1\u200b", "ｕ１", "u1\n",
]  # fmt: skip


@pytest.fixture
def neighbour(agent):
    """Another agent in the same store."""
    other = make_agent("barbara", agent.memory_config.backend)
    assert store_alias(other) == store_alias(agent)
    return other


def listed(agent, user_id):
    return [memory.name for memory in memories.list_page(agent, user_id).memories]


def everything_of(agent, user_id, words="kumquat 支付 file_name QA"):
    """Return the names that all ways of reading show to `user_id`."""
    wanted = [SearchRequest(word, limit=100) for word in (*words.split(), words)]
    wanted.append(SearchRequest("kumq", limit=100, as_you_type=True))
    hits = [hit for request in wanted for hit in search(agent, user_id, request, now=NOW).hits]
    walked = [memory.name for memory in memories.walk(agent, user_id)]
    return {hit.memory.name for hit in hits} | {*listed(agent, user_id), *walked}


# --- users -----------------------------------------------------------------------------


def test_users_whose_names_are_alike_share_nothing(agent, remember):
    for user_id in ("u1", *LIKE_U1):
        remember(agent, user_id, f"kumquat 支付 file_name QA of {user_id!r}", name=repr(user_id))

    for user_id in ("u1", *LIKE_U1):
        assert everything_of(agent, user_id) == {repr(user_id)}


def test_users_whose_names_are_alike_see_nothing_of_u1(agent, remember):
    memory = remember(agent, "u1", "kumquat 支付 file_name QA")

    for user_id in LIKE_U1:
        assert everything_of(agent, user_id) == set(), user_id
        with pytest.raises(UnknownMemory):
            memories.get(agent, user_id, memory.pk)


def test_a_deletion_reaches_one_user_only(agent, remember):
    for user_id in ("u1", *LIKE_U1):
        remember(agent, user_id, "kumquat", name=repr(user_id))

    assert memories.trash_matching(agent, "u1", MemoryFilter(), actor=MING, now=NOW) == 1
    assert memories.trash_matching(agent, "u1", MemoryFilter(), actor=MING, now=NOW) == 0

    assert listed(agent, "u1") == []
    for user_id in LIKE_U1:
        assert listed(agent, user_id) == [repr(user_id)]


def test_odd_user_ids_work_everywhere_and_touch_that_user_only(agent, remember):
    saved = {user: remember(agent, user, "kumquat tea", name=repr(user)[:50]) for user in ODD_USERS}

    for user_id, memory in saved.items():
        assert memories.get(agent, user_id, memory.pk).name == repr(user_id)[:50]
        assert everything_of(agent, user_id, "kumquat tea") == {repr(user_id)[:50]}
        assert memories.touch(agent, user_id, [m.pk for m in saved.values()], now=NOW) == 1
        changes = {"content": f"durian of {user_id}"}
        memories.update(agent, user_id, memory.pk, changes, actor=MING, now=NOW)
        assert len(memories.history(agent, user_id, memory.pk)) == 1
    for user_id in ODD_USERS[::2]:
        assert memories.trash_matching(agent, user_id, MemoryFilter(), actor=MING, now=NOW) == 1
    for user_id in ODD_USERS[1::2]:
        memories.purge(agent, user_id, saved[user_id].pk)
        assert listed(agent, user_id) == []

    assert {memory.scope.user_id for memory in memories.walk(agent)} == set(ODD_USERS[::2])


@pytest.mark.parametrize("user_id", ["", "x" * 256, "ming\x00", "\ud800"])
def test_what_cannot_name_a_user_is_refused_or_finds_nothing(agent, remember, user_id):
    mings = remember(agent, "ming", "kumquat")

    def nothing(read):
        try:
            return not read()
        except HippoError:
            return True

    with pytest.raises(HippoError):
        remember(agent, user_id, "kumquat")
    assert nothing(lambda: memories.get(agent, user_id, mings.pk))
    assert nothing(lambda: memories.list_page(agent, user_id).memories)
    assert nothing(lambda: search(agent, user_id, SearchRequest("kumquat"), now=NOW).hits)
    assert nothing(lambda: memories.touch(agent, user_id, [mings.pk], now=NOW))
    assert nothing(lambda: memories.history(agent, user_id, mings.pk))
    everything = MemoryFilter()
    assert nothing(lambda: memories.trash_matching(agent, user_id, everything, actor=MING, now=NOW))
    assert listed(agent, "ming") == ["kumquat"]


# --- ids of others ---------------------------------------------------------------------


def attempts(agent, user_id, memory_id):
    """Return every call that takes an id, made by somebody whose it is not."""
    return {
        "get": lambda: memories.get(agent, user_id, memory_id),
        "update": lambda: memories.update(
            agent, user_id, memory_id, {"content": "mine now"}, actor=MING, now=NOW
        ),
        "reinforce": lambda: memories.reinforce(
            agent, user_id, memory_id, 0.1, actor=MING, now=NOW
        ),
        "trash": lambda: memories.trash(agent, user_id, memory_id, actor=MING, now=NOW),
        "restore": lambda: memories.restore(agent, user_id, memory_id, actor=MING, now=NOW),
        "purge": lambda: memories.purge(agent, user_id, memory_id),
        "history": lambda: memories.history(agent, user_id, memory_id),
    }


def assert_out_of_reach(agent, user_id, owner, memory):
    before = rows_of(owner, memory)
    for name, attempt in attempts(agent, user_id, memory.pk).items():
        with pytest.raises(UnknownMemory) as caught:
            attempt()
        assert "secret" not in str(caught.value), name
        assert rows_of(owner, memory) == before, name
    assert memories.touch(agent, user_id, [memory.pk], now=NOW) == 0
    assert rows_of(owner, memory) == before


@pytest.mark.parametrize("status", ["active", "trashed"])
def test_an_id_of_another_user_is_unknown(agent, remember, status):
    memory = remember(agent, "bob", "the secret harbour", name="secret", status=status)
    remember(agent, "ming", "Ming deploys on Fridays")

    assert_out_of_reach(agent, "ming", agent, memory)
    assert_out_of_reach(agent, "mallory", agent, memory)


def test_an_id_of_another_agent_in_the_same_store_is_unknown(agent, neighbour, remember):
    memory = remember(neighbour, "ming", "the secret harbour", name="secret")
    remember(agent, "ming", "Ming deploys on Fridays")

    assert_out_of_reach(agent, "ming", neighbour, memory)


def test_an_id_of_another_agent_in_another_store_is_unknown(ada, grace, remember):
    for owner, other in ((ada, grace), (grace, ada)):
        memory = remember(owner, "ming", "the secret harbour", name="secret")
        assert_out_of_reach(other, "ming", owner, memory)


@pytest.mark.parametrize("memory_id", [0, -1, 2**53, 2**63, 2**70])
def test_an_id_that_no_memory_can_have_is_unknown(agent, remember, memory_id):
    remember(agent, "ming", "Ming deploys on Fridays")

    for attempt in attempts(agent, "ming", memory_id).values():
        with pytest.raises(UnknownMemory):
            attempt()
    assert memories.touch(agent, "ming", [memory_id], now=NOW) == 0


def test_touching_ids_of_many_owners_touches_ones_own(agent, neighbour, remember):
    own = remember(agent, "ming", "kumquat")
    others = [remember(agent, "bob", "kumquat"), remember(neighbour, "ming", "kumquat")]

    touched = memories.touch(agent, "ming", [own.pk, *(m.pk for m in others)], now=NOW)

    assert touched == 1
    assert memories.get(agent, "ming", own.pk).access_count == 1
    assert memories.get(agent, "bob", others[0].pk).access_count == 0
    assert memories.get(neighbour, "ming", others[1].pk).access_count == 0


def test_a_cursor_of_one_user_shows_another_only_his_own(agent, remember):
    for number in range(4):
        remember(agent, "bob", f"secret {number}")
        remember(agent, "ming", f"tea {number}")
    cursor = memories.list_page(agent, "bob", limit=2).next

    page = memories.list_page(agent, "ming", cursor=cursor)

    assert all(memory.name.startswith("tea") for memory in page.memories)


# --- agents in one store ---------------------------------------------------------------


def test_two_agents_in_one_store_share_nothing(agent, neighbour, remember):
    remember(agent, "ming", "kumquat 支付 file_name QA", name="of the one")
    remember(neighbour, "ming", "kumquat 支付 file_name QA", name="of the other")
    remember(neighbour, "bob", "kumquat 支付 file_name QA", name="of bob")

    assert everything_of(agent, "ming") == {"of the one"}
    assert everything_of(neighbour, "ming") == {"of the other"}
    assert everything_of(agent, "bob") == set()
    assert [memory.name for memory in memories.walk(agent)] == ["of the one"]


def test_deleting_from_one_agent_leaves_the_other(agent, neighbour, remember):
    remember(agent, "ming", "kumquat")
    kept = remember(neighbour, "ming", "kumquat")
    before = rows_of(neighbour, kept)

    memories.trash_matching(agent, "ming", MemoryFilter(), actor=MING, now=NOW)
    agent.delete()

    assert rows_of(neighbour, kept) == before
    assert everything_of(neighbour, "ming") == {"kumquat"}


# --- terms and queries -----------------------------------------------------------------


def test_two_users_have_no_term_in_common(agent, neighbour, remember):
    owners = [(agent, "ming"), (agent, "bob"), (neighbour, "ming")]
    saved = [remember(*owner, "kumquat 支付 file_name QA") for owner in owners]

    rows = MemoryTerms.objects.using(store_alias(agent))
    ours, bobs, theirs = (set(rows.get(pk=memory.pk).terms.split()) for memory in saved)

    assert len(ours) == len(bobs) == len(theirs) >= 8
    assert not ours & bobs
    assert not ours & theirs
    assert not bobs & theirs


def test_terms_of_one_scope_match_nothing_of_another(agent, remember):
    remember(agent, "ming", "kumquat 支付")
    remember(agent, "bob", "kumquat 支付")
    ming, bob = (Scope.objects.of_user(agent, user_id).get() for user_id in ("ming", "bob"))
    terms = [encode_term(term, scope_key(ming.pk)) for term in document_terms("kumquat 支付")]

    for query in (
        TermQuery(tuple(terms)),
        TermQuery((), (scope_key(ming.pk),)),
        TermQuery(("kum",)),
    ):
        assert not Memory.objects.matching([bob], query).exists()
    assert Memory.objects.matching([ming], TermQuery(tuple(terms))).count() == 1


def test_scopes_whose_numbers_begin_alike_do_not_match(agent, remember):
    alias = store_alias(agent)
    Store.objects.using(alias).create(agent_id=agent.pk)
    for number, user_id in ((41, "ming"), (41 * 36 + 10, "bob"), (41 * 36**2, "mallory")):
        number += 10**9 * 36**2
        Scope.objects.using(alias).create(pk=number, agent_id=agent.pk, user_id=user_id)
        remember(agent, user_id, "kumquat and 0kumquat, aa, 10", name=user_id)

    for user_id in ("ming", "bob", "mallory"):
        assert everything_of(agent, user_id, "kumquat 0kumquat aa a 10 1 0") == {user_id}


@pytest.mark.parametrize("model", [Memory, MemoryTerms, MemoryRevision, Scope, Store])
def test_a_query_that_names_no_agent_raises(ada, remember, model):
    memory = remember(ada, "ming", "Ming deploys on Fridays")

    queries = [
        lambda: list(model.objects.all()),
        lambda: model.objects.filter(pk=memory.pk).first(),
        lambda: model.objects.filter(pk=memory.pk).exists(),
        lambda: model.objects.filter(pk=memory.pk).delete(),
        lambda: model.objects.count(),
        lambda: model.objects.get_or_create(pk=memory.pk),
    ]
    for query in queries:
        with pytest.raises(UnscopedQuery):
            query()
    assert listed(ada, "ming") == ["Ming deploys on Fridays"]
