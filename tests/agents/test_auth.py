"""From a key to its agent, and to nobody else's."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError

from agents.auth import KEY_PREFIX, find_key, issue_key
from agents.models import Agent, ApiKey
from tests.conftest import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return Agent.objects.create_agent("ada", backend="sqlite")


def test_a_key_finds_its_agent(ada):
    row, key = issue_key(ada, name="laptop")
    issue_key(Agent.objects.create_agent("grace", backend="sqlite"))

    found = find_key(key, now=NOW)

    assert (found.pk, found.agent, found.name, found.user_id) == (row.pk, ada, "laptop", "")


def test_a_key_is_found_in_one_query_with_its_configuration(ada, django_assert_num_queries):
    _, key = issue_key(ada)
    find_key(key, now=NOW)

    with django_assert_num_queries(1):
        assert find_key(key, now=NOW).agent.memory_config.enabled


def test_the_key_itself_is_kept_nowhere(ada):
    row, key = issue_key(ada)

    stored = ApiKey.objects.values().get()

    assert key.startswith(KEY_PREFIX)
    assert len(key) >= 40
    assert key not in map(str, stored.values())
    assert key.startswith(stored["prefix"])
    assert len(stored["prefix"]) < 16
    assert key not in str(row)
    assert key not in repr(row)


def test_keys_are_never_the_same(ada):
    assert len({issue_key(ada)[1] for _ in range(20)}) == 20


def test_a_key_that_was_never_issued_finds_nobody(ada):
    row, key = issue_key(ada)

    for wrong in ("", KEY_PREFIX, key[:-1], f"{key}a", key.upper(), f"{key} ", f"\n{key}", "支付",
                  row.prefix, row.hashed_key, "' OR 1=1 --", "x" * 10_000, "\x00"):  # fmt: skip
        assert find_key(wrong, now=NOW) is None


def test_a_revoked_key_finds_nobody(ada):
    row, key = issue_key(ada)
    ApiKey.objects.filter(pk=row.pk).update(revoked_at=NOW)

    assert find_key(key, now=NOW) is None


def test_a_key_of_an_inactive_agent_finds_nobody(ada):
    _, key = issue_key(ada)
    Agent.objects.filter(pk=ada.pk).update(is_active=False)

    assert find_key(key, now=NOW) is None


def test_a_key_of_a_deleted_agent_finds_nobody(ada):
    _, key = issue_key(ada)
    ada.api_keys.all().delete()

    assert find_key(key, now=NOW) is None


@pytest.mark.parametrize("user_id", ["ming", "u1 ", "ж-用户-🙂"])
def test_a_key_can_be_bound_to_a_user(ada, user_id):
    _, key = issue_key(ada, user_id=user_id)

    assert find_key(key, now=NOW).user_id == user_id


@pytest.mark.parametrize("user_id", ["x" * 256, "ming\x00", "\ud800"])
def test_a_key_cannot_be_bound_to_what_is_no_user(ada, user_id):
    with pytest.raises(ValidationError):
        issue_key(ada, user_id=user_id)

    assert not ApiKey.objects.exists()


def test_the_last_use_is_noted_once_a_minute(ada, django_assert_num_queries):
    _, key = issue_key(ada)

    noted = [
        find_key(key, now=NOW + timedelta(seconds=seconds)).last_used_at
        for seconds in (0, 30, 60, 61, 120)
    ]

    later = NOW + timedelta(seconds=61)
    assert noted == [NOW, NOW, NOW, later, later]
    assert ApiKey.objects.get().last_used_at == later
    with django_assert_num_queries(1):
        find_key(key, now=later)
