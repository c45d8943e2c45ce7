"""A write under a ticket happens once; what it came to is kept with it, or neither is."""

import pytest

from memory.databases import store_alias
from memory.drafts import parse_draft
from memory.errors import IdempotencyConflict, StoreNotOpen, UnknownMemory
from memory.models import IdempotencyRecord, Scope
from memory.services import memories
from memory.services.idempotency import Done, Ticket, fingerprint, once
from tests.conftest import NOW
from tests.memory.rows import assert_consistent, row_counts
from tests.memory.threads import at_once

TICKET = Ticket("key", fingerprint(b"request"))


@pytest.fixture
def saving(agent):
    """Return a function that saves a memory under a ticket, and counts how often it writes."""

    def save(user_id="ming", ticket=TICKET, *, fails=False):
        def write():
            save.writes += 1
            draft = parse_draft({"type": "user", "content": "Ming deploys on Fridays"})
            saved = memories.save(agent, user_id, draft, now=NOW)
            if fails:
                raise RuntimeError("killed half-way")
            return Done([saved], "created")

        return once(agent, user_id, ticket, write, now=NOW, create=True)

    save.writes = 0
    return save


def records(agent):
    return IdempotencyRecord.objects.using(store_alias(agent))


def test_a_ticket_is_carried_out_once(agent, saving):
    first, second = saving(), saving()

    assert saving.writes == 1
    assert (first.is_repeated, second.is_repeated) == (False, True)
    assert (first.action, second.action) == ("created", "created")
    assert [m.pk for m in first.memories] == [m.pk for m in second.memories]


def test_without_a_ticket_every_write_is_carried_out(agent, saving):
    saving(ticket=None)
    saving(ticket=None)

    assert saving.writes == row_counts(agent)["Memory"] == 2
    assert records(agent).count() == 0


def test_a_ticket_with_another_fingerprint_is_refused(agent, saving):
    saving()

    with pytest.raises(IdempotencyConflict, match="new key"):
        saving(ticket=Ticket("key", fingerprint(b"another")))
    assert saving.writes == 1


def test_a_ticket_belongs_to_one_user(agent, saving):
    for user_id in ("ming", "MING", "ming ", "bob"):
        assert not saving(user_id).is_repeated

    assert saving.writes == records(agent).count() == 4


def test_a_write_that_fails_leaves_neither_memory_nor_record(agent, saving):
    with pytest.raises(RuntimeError):
        saving(fails=True)

    assert row_counts(agent)["Memory"] == records(agent).count() == 0
    assert not saving().is_repeated
    assert_consistent(agent)


def test_a_frozen_store_takes_no_ticket(agent, saving):
    saving()
    Scope.objects.for_agent(agent).update(state="frozen")

    for ticket in (TICKET, Ticket("new", TICKET.fingerprint)):
        with pytest.raises(StoreNotOpen):
            saving(ticket=ticket)
    assert saving.writes == 1


def test_a_repetition_of_what_was_erased_is_unknown(agent, saving):
    saved = saving().memories[0]
    memories.purge(agent, "ming", saved.pk)

    with pytest.raises(UnknownMemory, match=str(saved.pk)):
        saving()
    assert saving.writes == 1


def test_a_fingerprint_tells_requests_apart_and_says_nothing_of_them(settings):
    prints = {
        fingerprint(b"a", b"bc"),
        fingerprint(b"ab", b"c"),
        fingerprint(b"abc"),
        fingerprint(b"abc", b""),
        fingerprint(b"", b"abc"),
    }
    settings.SECRET_KEY = "another"

    assert len(prints) == 5
    assert all(len(each) == 64 for each in prints)
    assert fingerprint(b"abc") not in prints


def test_a_ticket_that_many_bring_at_once_is_carried_out_once(agent, saving):
    done = at_once([saving] * 6)

    assert sum(not each.is_repeated for each in done) == 1
    assert len({each.memories[0].pk for each in done}) == 1
    assert row_counts(agent)["Memory"] == records(agent).count() == 1
    assert_consistent(agent)
