"""Keys are created, rotated, revoked and restored by one service, whichever door is used."""

import re
import uuid
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from agents import keys
from agents.auth import find_key, issue_key
from agents.keys import NewKey
from agents.models import Agent, ApiKey, AuditAction, AuditEntry
from tests.conftest import NOW
from tests.memory.api.client import Api, error_of, fields_of
from tests.memory.threads import at_once

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
KEYS = "/api/v1/agents/ada/keys/"


@pytest.fixture
def ada():
    return Agent.objects.create_agent("ada", backend="sqlite", display_name="Ada")


@pytest.fixture
def opal(django_user_model):
    return django_user_model.objects.create_user("opal", is_staff=True)


@pytest.fixture
def operator(opal):
    client = Client()
    client.force_login(opal)
    return client


@pytest.fixture(autouse=True)
def _english():
    with translation.override("en"):
        yield


def create(agent, actor, now=NOW, **wanted):
    return keys.create(agent, NewKey(**wanted), actor=actor, now=now)


def rotate(key, actor, overlap=HOUR, now=NOW):
    return keys.rotate(key, overlap=overlap, actor=actor, now=now)


def recorded():
    """What the audit says, oldest first: action, actor, agent, user."""
    entries = AuditEntry.objects.order_by("pk")
    return [(each.action, each.actor_name, each.agent_name, each.user_id) for each in entries]


# --- an end ----------------------------------------------------------------------------


def test_a_key_opens_until_it_ends_and_not_from_then_on(ada, opal):
    _, key = create(ada, opal, expires_at=NOW + HOUR)

    moments = [timedelta(0), HOUR - timedelta(microseconds=1), HOUR, 2 * HOUR]
    found = [bool(find_key(key, now=NOW + each)) for each in moments]

    assert found == [True, True, False, False]


def test_an_end_costs_no_query_more(ada, opal, django_assert_num_queries):
    _, key = create(ada, opal, expires_at=NOW + HOUR)
    find_key(key, now=NOW)

    with django_assert_num_queries(1):
        assert find_key(key, now=NOW).agent.memory_config.enabled


def test_an_ended_key_is_a_401_that_says_so(ada, opal):
    row, key = create(ada, opal, expires_at=timezone.now() - HOUR)

    client = Client(headers={"authorization": f"Bearer {key}"})
    answer = client.get("/api/v1/agents/ada/memories/?user_id=ming")

    assert "expired" in error_of(answer, 401, "invalid_key")["message"]
    assert ApiKey.objects.get(pk=row.pk).last_used_at is None


def test_keys_are_told_apart_by_their_state(ada):
    rows = {name: issue_key(ada, name=name)[0] for name in
            ("live", "ending", "expired", "revoked", "unused", "idle", "old")}  # fmt: skip
    used = {"live": NOW - 2 * HOUR, "ending": NOW, "expired": NOW, "revoked": NOW,
            "idle": NOW - timedelta(days=91)}  # fmt: skip
    for name, moment in used.items():
        ApiKey.objects.filter(name=name).update(last_used_at=moment)
    ApiKey.objects.update(created_at=NOW - HOUR)
    ApiKey.objects.filter(name="old").update(created_at=NOW - timedelta(days=91))
    ApiKey.objects.filter(name="ending").update(expires_at=NOW + HOUR)
    ApiKey.objects.filter(name="expired").update(expires_at=NOW)
    ApiKey.objects.filter(name="revoked").update(revoked_at=NOW, expires_at=NOW - HOUR)

    def names(state):
        return {key.name for key in ApiKey.objects.in_state(state, NOW)}

    assert names("live") == {"live", "ending", "unused", "idle", "old"}
    assert names("unused") == {"unused", "old"}
    assert names("idle") == {"idle", "old"}
    for state in ("ending", "expired", "revoked"):
        assert names(state) == {state}
        assert ApiKey.objects.get(name=state).state(NOW) == state
    assert names("") == names("nonsense") == set(rows)


# --- one ticket, one key ---------------------------------------------------------------


def test_a_ticket_makes_one_key(ada, opal):
    ticket = uuid.uuid4()
    row, _ = create(ada, opal, name="laptop", ticket=ticket)

    with pytest.raises(keys.AlreadyIssued) as refused:
        create(ada, opal, name="laptop", ticket=ticket)

    assert refused.value.key == row
    assert ApiKey.objects.count() == AuditEntry.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_with_one_ticket_at_once_one_gets_the_key(ada, opal):
    ticket = uuid.uuid4()

    def attempt():
        try:
            return create(ada, opal, ticket=ticket)[1]
        except keys.AlreadyIssued:
            return None
        finally:
            connections.close_all()

    made = [key for key in at_once([attempt] * 6) if key]

    assert len(made) == ApiKey.objects.count() == AuditEntry.objects.count() == 1
    assert find_key(made[0], now=NOW)


# --- rotation --------------------------------------------------------------------------


def test_both_keys_work_until_the_overlap_is_over(ada, opal):
    old, old_key = create(ada, opal, name="laptop", user_id="ming ")

    new, new_key = rotate(old, opal, overlap=HOUR)

    old.refresh_from_db()
    assert (new.name, new.user_id, new.agent, new.expires_at) == ("laptop", "ming ", ada, None)
    assert (old.replaced_by, old.expires_at) == (new, NOW + HOUR)
    for moment, works in ((NOW, True), (NOW + HOUR, False)):
        assert bool(find_key(old_key, now=moment)) == works
        assert find_key(new_key, now=moment)


def test_without_an_overlap_the_old_key_ends_at_once(ada, opal):
    old, key = create(ada, opal)

    rotate(old, opal, overlap=timedelta(0))

    assert find_key(key, now=NOW) is None


def test_the_new_key_lives_as_long_as_the_old_was_given_which_ends_no_later(ada, opal):
    old, _ = create(ada, opal, expires_at=NOW + 10 * HOUR)
    ApiKey.objects.update(created_at=NOW)

    new, _ = rotate(old, opal, overlap=24 * HOUR, now=NOW + 4 * HOUR)

    old.refresh_from_db()
    assert old.expires_at == NOW + 10 * HOUR
    assert new.expires_at == NOW + 14 * HOUR


def refused(key, actor, now=NOW):
    before = ApiKey.objects.count()
    with pytest.raises(keys.NotRotatable) as refusal:
        rotate(key, actor, now=now)
    assert ApiKey.objects.count() == before
    return str(refusal.value)


def test_what_cannot_be_rotated_says_why_and_what_to_do(ada, opal):
    twice, gone, ended = (create(ada, opal)[0] for _ in range(3))
    new, _ = rotate(twice, opal)
    keys.revoke(gone, actor=opal, now=NOW)
    ApiKey.objects.filter(pk=ended.pk).update(expires_at=NOW)

    assert refused(twice, opal) == (
        f"The key {twice} was replaced by {new} already; rotate that one instead."
    )
    assert refused(gone, opal) == (
        f"The key {gone} is revoked and cannot be rotated; create a new key."
    )
    assert refused(ended, opal) == (
        f"The key {ended} has expired and cannot be rotated; create a new key."
    )
    keys.revoke(new, actor=opal, now=NOW)
    assert refused(twice, opal).endswith("which does not work any more; create a new key.")


@pytest.mark.django_db(transaction=True)
def test_of_many_rotations_at_once_one_is_made(ada, opal):
    old, _ = create(ada, opal)

    def attempt():
        try:
            return rotate(old, opal)
        except keys.NotRotatable:
            return None
        finally:
            connections.close_all()

    made = [each for each in at_once([attempt] * 6) if each]

    assert len(made) == 1
    assert ApiKey.objects.count() == 2


# --- revoking, and taking it back ------------------------------------------------------


def test_a_revocation_can_be_taken_back_for_a_minute_only(ada, opal):
    row, key = create(ada, opal)
    assert keys.revoke(row, actor=opal, now=NOW)
    assert not keys.revoke(row, actor=opal, now=NOW + HOUR)  # and does not count anew
    assert find_key(key, now=NOW) is None

    late = keys.restore(row, actor=opal, now=NOW + timedelta(seconds=61))
    was_dead = find_key(key, now=NOW) is None
    in_time = keys.restore(row, actor=opal, now=NOW + timedelta(seconds=60))

    assert (late, was_dead, in_time) == (False, True, True)
    assert find_key(key, now=NOW)
    assert not keys.restore(row, actor=opal, now=NOW)


# --- on record, by every door ----------------------------------------------------------


def test_all_that_is_done_is_on_record_and_no_key_is(ada, opal):
    row, key = create(ada, opal, name="laptop", user_id="ming")
    new, new_key = rotate(row, opal)
    keys.revoke(row, actor=opal, now=NOW)
    keys.restore(row, actor=opal, now=NOW)

    actions = [AuditAction.KEY_CREATED, AuditAction.KEY_ROTATED, AuditAction.KEY_REVOKED,
               AuditAction.KEY_RESTORED]  # fmt: skip
    assert recorded() == [(action, "opal", "Ada", "ming") for action in actions]
    details = list(AuditEntry.objects.order_by("pk").values_list("detail", flat=True))
    assert details[0] == f"{row} laptop"
    assert details[1] == f"{row} → {new} laptop; {row} ends 2026-11-30 10:00 UTC"
    for secret in (key, new_key):
        assert secret not in repr(list(AuditEntry.objects.values()))


def test_the_api_creates_rotates_and_revokes_on_record(ada, operator):
    end = (timezone.now() + HOUR).isoformat()
    body = {"name": "laptop", "user_id": "ming", "expires_at": end}
    created = operator.post(KEYS, body, "application/json").json()
    path = f"{KEYS}{created['id']}/"

    rotated = operator.post(f"{path}rotate/", {"overlap_seconds": 60}, "application/json")
    again = operator.post(f"{path}rotate/", {}, "application/json")
    operator.delete(path)

    assert rotated.status_code == 201
    assert "no-store" in rotated.headers["Cache-Control"]
    new = rotated.json()
    assert (new["name"], new["user_id"]) == ("laptop", "ming")
    assert find_key(new["key"], now=timezone.now())
    assert "rotate that one instead" in error_of(again, 409, "key_not_live")["message"]
    listed = {each["id"]: each for each in operator.get(KEYS).json()["results"]}
    assert listed[created["id"]]["replaced_by"] == new["id"]
    assert listed[created["id"]]["expires_at"] < end
    assert [(action, actor) for action, actor, *_ in recorded()] == [
        ("key_created", "opal"), ("key_rotated", "opal"), ("key_revoked", "opal"),
    ]  # fmt: skip


@pytest.mark.parametrize("seconds", [-1, 90 * 24 * 3600 + 1, "x", None, 1.5])
def test_an_overlap_that_is_none_is_refused(ada, operator, seconds):
    row, _ = issue_key(ada)

    body = {"overlap_seconds": seconds}
    answer = operator.post(f"{KEYS}{row.pk}/rotate/", body, "application/json")

    assert fields_of(answer) == {"overlap_seconds"}
    assert ApiKey.objects.count() == 1


@pytest.mark.parametrize("end", ["2020-01-01T00:00:00Z", "tomorrow", 7])
def test_an_end_that_is_over_or_none_is_refused(ada, operator, end):
    answer = operator.post(KEYS, {"expires_at": end}, "application/json")

    assert fields_of(answer) == {"expires_at"}
    assert not ApiKey.objects.exists()


def test_a_key_of_another_agent_is_not_rotated(ada, operator):
    row, _ = issue_key(ada)
    Agent.objects.create_agent("bo", backend="sqlite")

    for path in (f"bo/keys/{row.pk}", "ada/keys/99"):
        answer = operator.post(f"/api/v1/agents/{path}/rotate/", {}, "application/json")
        error_of(answer, 404, "not_found")
    assert ApiKey.objects.count() == 1


def test_an_agents_key_rotates_nothing(ada):
    api = Api(ada)

    answer = api.client.post(f"{KEYS}{api.row.pk}/rotate/", {}, "application/json")

    error_of(answer, 403, "forbidden")
    assert ApiKey.objects.count() == 1


def test_the_plain_admin_creates_and_revokes_on_record(ada, admin_client, settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    form = {"agent": ada.pk, "name": "laptop", "user_id": "",
            "expires_at_0": "2036-01-01", "expires_at_1": "00:00:00"}  # fmt: skip
    page = admin_client.post(reverse("admin:agents_apikey_add"), form, follow=True)
    (key,) = re.findall(r"hippo_[\w-]{40,}", page.content.decode())
    row = ApiKey.objects.get()
    assert row.expires_at.year == 2036
    assert find_key(key, now=NOW)

    form = {"action": "revoke", "_selected_action": [row.pk]}
    for _ in range(2):
        admin_client.post(reverse("admin:agents_apikey_changelist"), form)

    assert find_key(key, now=NOW) is None
    assert [(action, actor) for action, actor, *_ in recorded()] == [
        ("key_created", "admin"), ("key_revoked", "admin"),
    ]  # fmt: skip


def test_an_end_is_not_changed_in_the_plain_admin(ada, admin_client, settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    row, _ = issue_key(ada, expires_at=NOW)

    form = {"name": "desktop", "expires_at_0": "2036-01-01", "expires_at_1": "00:00:00"}
    admin_client.post(reverse("admin:agents_apikey_change", args=[row.pk]), form)

    row.refresh_from_db()
    assert (row.name, row.expires_at) == ("desktop", NOW)


@pytest.mark.django_db(databases="__all__")
def test_the_command_creates_on_record():
    call_command("create_agent", "grace", user="ming", verbosity=0)

    assert recorded() == [
        ("agent_created", "-", "grace", ""), ("key_created", "-", "grace", "ming"),
    ]  # fmt: skip
    assert not get_user_model().objects.exists()
