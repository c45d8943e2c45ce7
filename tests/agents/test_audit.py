"""The record of who read what of whom: complete, kept, and not to be changed."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.urls import reverse

from agents import audit
from agents.models import Agent, AuditEntry, Identity
from tests.conftest import NOW

REASON = "Ming asked why it forgot Fridays"


@pytest.fixture
def ada(db):
    return Agent.objects.create_agent("ada", backend="sqlite", display_name="Ada")


@pytest.fixture
def opal(django_user_model):
    return django_user_model.objects.create_user("opal", is_staff=True)


@pytest.fixture
def ming(django_user_model):
    account = django_user_model.objects.create_user("ming")
    Identity.objects.create(account=account, user_id="u1")
    return account


def note(actor, agent, user_id="u1", *, reason=REASON, now=NOW):
    return audit.note_content_read(actor, agent, user_id, reason=reason, now=now)


def test_an_entry_says_who_read_what_of_whom_and_why(ada, opal, ming):
    entry = note(opal, ada)

    entry.refresh_from_db()
    assert (entry.actor, entry.actor_name, entry.subject, entry.subject_name) == (
        opal, "opal", ming, "ming",
    )  # fmt: skip
    assert (entry.agent, entry.agent_name, entry.user_id) == (ada, "Ada", "u1")
    assert (entry.reason, entry.count, entry.created_at) == (REASON, 0, NOW)


def test_what_was_shown_adds_up(ada, opal):
    entry = note(opal, ada)

    for count in (30, 30, 7):
        audit.note_shown(entry, count)

    assert AuditEntry.objects.get().count == 67


@pytest.mark.parametrize("reason", ["", "x" * 501])
def test_there_is_no_entry_without_a_reason_of_at_most_500_characters(ada, opal, reason):
    with pytest.raises(ValidationError):
        note(opal, ada, reason=reason)

    assert not AuditEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_entry_cannot_be_taken_back_by_a_transaction_round_it(ada, opal):
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        note(opal, ada)


def test_accounts_and_agents_go_and_the_entry_stays_with_their_names(ada, opal, ming):
    note(opal, ada)
    for gone in (opal, ming, ada):
        gone.delete()

    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.subject, entry.agent) == (None, None, None)
    names = (entry.actor_name, entry.subject_name, entry.agent_name, entry.user_id)
    assert names == ("opal", "ming", "Ada", "u1")


def test_one_sees_the_newest_first_and_so_many(ada, opal, ming):
    for minutes in range(5):
        note(opal, ada, now=NOW + timedelta(minutes=minutes))

    found = audit.reads_about(ming, limit=3)

    assert [entry.created_at.minute for entry in found] == [4, 3, 2]


def test_one_sees_what_was_read_of_ones_identities_and_of_no_others(
    ada, opal, ming, django_user_model
):
    grace = Agent.objects.create_agent("grace", backend="sqlite")
    mallory = django_user_model.objects.create_user("mallory")
    Identity.objects.create(account=ming, user_id="u2", agent=ada)
    Identity.objects.create(account=mallory, user_id="U1")
    mings = [note(opal, ada, "u1"), note(opal, grace, "u1"), note(opal, ada, "u2")]
    for agent, user_id in ((grace, "u2"), (ada, "u1 "), (ada, "u3")):
        note(opal, agent, user_id)

    assert set(audit.reads_about(ming)) == set(mings)
    assert audit.reads_about(mallory) == []


def test_one_sees_what_was_read_before_one_was_linked_and_after_one_no_longer_is(ada, opal, ming):
    before = note(opal, ada, "u9")
    Identity.objects.create(account=ming, user_id="u9")
    linked = audit.reads_about(ming)
    during = note(opal, ada, "u9")
    Identity.objects.all().delete()

    assert before.subject is None
    assert linked == [before]
    assert audit.reads_about(ming) == [during]


def test_a_reading_is_open_for_a_quarter_of_an_hour(ada, opal):
    entry = note(opal, ada)

    assert audit.is_open(entry, now=NOW + timedelta(minutes=14, seconds=59))
    assert not audit.is_open(entry, now=NOW + timedelta(minutes=15))


def test_the_readings_of_an_account_are_found_by_an_index(ada, opal, ming):
    about = AuditEntry.objects.filter(subject=ming)
    of_user = AuditEntry.objects.filter(user_id="u1")

    for entries, index in ((about, "audit_by_subject"), (of_user, "audit_by_user")):
        assert index in entries.explain()
    assert connection.alias == "default"


def test_the_admin_shows_entries_and_lets_nobody_touch_them(admin_client, ada, opal, ming, settings,
                                                            tmp_path):  # fmt: skip
    settings.STATIC_ROOT = tmp_path  # WhiteNoise warns where nothing was collected
    entry = note(opal, ada)

    def address(page, *args):
        return reverse(f"admin:agents_auditentry_{page}", args=args)

    shown = admin_client.get(address("changelist"), {"q": "opal"})
    looked = admin_client.get(address("change", entry.pk))
    refused = [
        admin_client.get(address("add")),
        admin_client.post(address("change", entry.pk), {"reason": "none"}),
        admin_client.post(address("delete", entry.pk), {"post": "yes"}),
    ]
    form = {"action": "delete_selected", "_selected_action": [entry.pk], "post": "yes"}
    admin_client.post(address("changelist"), form)

    assert [shown.status_code, looked.status_code] == [200, 200]
    assert REASON in looked.content.decode()
    assert [answer.status_code for answer in refused] == [403, 403, 403]
    assert AuditEntry.objects.get().reason == REASON


def test_a_superuser_who_deletes_an_account_in_the_admin_leaves_its_entries(
    admin_client, ada, opal, ming, settings, tmp_path
):
    settings.STATIC_ROOT = tmp_path
    note(opal, ada)

    for account in (opal, ming):
        admin_client.post(reverse("admin:auth_user_delete", args=[account.pk]), {"post": "yes"})

    entry = AuditEntry.objects.get(action="content_read")
    assert (entry.actor, entry.subject, entry.actor_name) == (None, None, "opal")
