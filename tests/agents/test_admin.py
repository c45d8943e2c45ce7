"""The plain admin: an operator makes agents, keys and identities with it."""

import re

import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from agents.auth import find_key, issue_key
from agents.models import Agent, ApiKey, Identity, MemoryConfig, Team
from tests.conftest import NOW

pytestmark = pytest.mark.django_db

MODELS = ["agent", "apikey", "identity", "team"]


@pytest.fixture(autouse=True)
def static_files(settings, tmp_path):
    # WhiteNoise warns where nothing was collected
    settings.STATIC_ROOT = tmp_path


@pytest.fixture
def ada():
    return Agent.objects.create_agent("ada", backend="sqlite")


def address(model, page, *args):
    return reverse(f"admin:agents_{model}_{page}", args=args)


def agent_form(**fields):
    """Return the fields of the agent page as a browser sends them untouched."""
    return {
        "name": "ada",
        "display_name": "",
        "system_prompt": "",
        "language": "en",
        "is_active": "on",
        "memory_config-TOTAL_FORMS": "1",
        "memory_config-INITIAL_FORMS": "0",
        "memory_config-MIN_NUM_FORMS": "1",
        "memory_config-MAX_NUM_FORMS": "1",
        "memory_config-0-enabled": "on",
        "memory_config-0-backend": "sqlite",
        "memory_config-0-sqlite_path": "memory.db",
        "memory_config-0-prefetch_limit": "5",
        "memory_config-0-budget_tokens": "1000",
        **fields,
    }


def issue(client, agent, **fields):
    """Create a key in the admin; return the page that follows and the key it shows."""
    form = {"agent": agent.pk, "name": "laptop", "user_id": "", **fields}
    page = client.post(address("apikey", "add"), form, follow=True)
    keys = re.findall(r"hippo_[\w-]{40,}", page.content.decode())
    return page, keys


# --- pages -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_every_list_and_add_page_opens(admin_client, admin_user, ada, model):
    issue_key(ada, user_id="ming")
    Identity.objects.create(account=admin_user, user_id="ming", agent=ada)
    Team.objects.create(name="支付").members.add(admin_user)

    for page in ("changelist", "add"):
        assert admin_client.get(address(model, page)).status_code == 200
    for found in (Agent, ApiKey, Identity, Team):
        if found._meta.model_name == model:
            pk = found.objects.get().pk
            for page in ("change", "delete", "history"):
                assert admin_client.get(address(model, page, pk)).status_code == 200


@pytest.mark.parametrize("model", ["agent", "identity", "team"])
def test_a_list_can_be_searched(admin_client, ada, model):
    assert admin_client.get(address(model, "changelist"), {"q": "ada"}).status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_the_pages_are_for_staff_only(client, django_user_model, ada, model):
    mallory = django_user_model.objects.create_user("mallory", password="mallory")

    for login in (lambda: None, lambda: client.force_login(mallory)):
        login()
        for page in ("changelist", "add"):
            answer = client.get(address(model, page))
            assert answer.status_code == 302
            assert answer.url.startswith(reverse("admin:login"))


def test_a_list_of_keys_costs_the_same_for_many(admin_client, ada, django_assert_max_num_queries):
    for number in range(30):
        issue_key(ada, name=f"key {number}")

    with django_assert_max_num_queries(8):
        admin_client.get(address("apikey", "changelist"))


# --- agents ----------------------------------------------------------------------------


def test_an_agent_made_with_the_suggested_values_has_a_memory(admin_client):
    answer = admin_client.post(address("agent", "add"), agent_form())

    assert answer.status_code == 302
    config = Agent.objects.named("ada").memory_config
    assert (config.backend, config.sqlite_path, config.enabled) == ("sqlite", "memory.db", True)


def test_an_agent_made_with_other_values_has_them(admin_client):
    fields = {"memory_config-0-backend": "mysql", "memory_config-0-budget_tokens": "500"}

    admin_client.post(address("agent", "add"), agent_form(**fields))

    config = Agent.objects.named("ada").memory_config
    assert (config.backend, config.budget_tokens) == ("mysql", 500)


@pytest.mark.parametrize(
    "fields",
    [{"name": "a/b"}, {"name": ""}, {"name": "grace"}, {"language": "fr"},
     {"memory_config-0-sqlite_path": "../hippo.db"}, {"memory_config-0-budget_tokens": "1"}],
)  # fmt: skip
def test_a_malformed_agent_is_not_made(admin_client, fields):
    Agent.objects.create_agent("grace", backend="sqlite")

    answer = admin_client.post(address("agent", "add"), agent_form(**fields))

    assert answer.status_code == 200  # the form again, with its errors
    assert [agent.name for agent in Agent.objects.all()] == ["grace"]
    assert MemoryConfig.objects.count() == 1


def test_a_backend_stays_as_it_was_created(admin_client, ada):
    fields = {
        "display_name": "Ada",
        "memory_config-INITIAL_FORMS": "1",
        "memory_config-0-id": ada.memory_config.pk,
        "memory_config-0-agent": ada.pk,
        "memory_config-0-backend": "mysql",
        "memory_config-0-sqlite_path": "other.db",
        "memory_config-0-budget_tokens": "500",
    }

    page = admin_client.get(address("agent", "change", ada.pk)).content.decode()
    answer = admin_client.post(address("agent", "change", ada.pk), agent_form(**fields))

    assert answer.status_code == 302
    assert 'name="memory_config-0-backend"' not in page
    assert 'name="memory_config-0-sqlite_path"' not in page
    agent = Agent.objects.named("ada")
    config = agent.memory_config
    assert (config.backend, config.sqlite_path) == ("sqlite", "memory.db")
    assert (agent.display_name, config.budget_tokens) == ("Ada", 500)


def test_deleting_agents_in_the_list_deletes_their_keys(admin_client, ada):
    _, key = issue_key(ada)

    form = {"action": "delete_selected", "_selected_action": [ada.pk], "post": "yes"}
    admin_client.post(address("agent", "changelist"), form)

    assert not Agent.objects.exists()
    assert find_key(key, now=NOW) is None


@pytest.mark.parametrize("page", ["delete", "changelist"])
def test_an_agent_whose_store_fails_stays_and_says_why(admin_client, ada, monkeypatch, page):
    grace = Agent.objects.create_agent("grace", backend="mysql")
    monkeypatch.delitem(settings.DATABASES, "mysql")

    if page == "delete":
        said = admin_client.post(address("agent", page, grace.pk), {"post": "yes"}, follow=True)
    else:
        form = {"action": "delete_selected", "_selected_action": [grace.pk], "post": "yes"}
        said = admin_client.post(address("agent", page), form, follow=True)

    assert Agent.objects.filter(pk=grace.pk).exists()
    assert "MYSQL_URL" in said.content.decode()


# --- keys ------------------------------------------------------------------------------


def test_a_key_is_shown_once_and_only_its_hash_is_kept(admin_client, ada):
    page, keys = issue(admin_client, ada)

    (key,) = keys
    assert page.status_code == 200
    assert find_key(key, now=NOW).agent == ada
    stored = ApiKey.objects.values().get()
    assert key not in map(str, stored.values())
    assert stored["name"] == "laptop"
    for entry in LogEntry.objects.values():
        assert key not in str(entry)
    for again in (
        address("apikey", "changelist"),
        address("apikey", "change", stored["id"]),
        address("apikey", "history", stored["id"]),
        reverse("admin:index"),
    ):
        answer = admin_client.get(again)
        assert key not in answer.content.decode()
        assert key not in str(answer.cookies)


def test_a_key_is_bound_to_the_user_exactly_as_typed(admin_client, ada):
    _, (key,) = issue(admin_client, ada, user_id="u1 ")

    assert find_key(key, now=NOW).user_id == "u1 "


@pytest.mark.parametrize("user_id", ["x" * 256, "ming\x00"])
def test_a_key_for_what_is_no_user_is_not_made(admin_client, ada, user_id):
    page, keys = issue(admin_client, ada, user_id=user_id)

    assert page.status_code == 200
    assert keys == []
    assert not ApiKey.objects.exists()


def test_a_key_stays_with_its_agent_and_user(admin_client, ada):
    row, key = issue_key(ada, user_id="ming")
    grace = Agent.objects.create_agent("grace", backend="sqlite")

    form = {"agent": grace.pk, "name": "desktop", "user_id": "bob", "prefix": "hippo_"}
    admin_client.post(address("apikey", "change", row.pk), form)

    found = find_key(key, now=NOW)
    assert (found.agent, found.user_id, found.name, found.prefix) == (
        ada,
        "ming",
        "desktop",
        row.prefix,
    )


def test_keys_can_be_revoked_and_stay_revoked(admin_client, ada):
    rows = [issue_key(ada)[0] for _ in range(3)]
    ApiKey.objects.filter(pk=rows[0].pk).update(revoked_at=NOW)

    form = {"action": "revoke", "_selected_action": [row.pk for row in rows[:2]]}
    admin_client.post(address("apikey", "changelist"), form)

    revoked_at = [ApiKey.objects.get(pk=row.pk).revoked_at for row in rows]
    assert revoked_at[0] == NOW
    assert revoked_at[1] > NOW or revoked_at[1] is not None
    assert revoked_at[2] is None


# --- identities ------------------------------------------------------------------------


def test_an_identity_is_the_user_exactly_as_typed(admin_client, admin_user, ada):
    form = {"account": admin_user.pk, "user_id": " u1 ", "agent": ada.pk}

    admin_client.post(address("identity", "add"), form)

    assert Identity.objects.get().user_id == " u1 "


def test_the_same_identity_twice_is_refused(admin_client, admin_user, ada):
    form = {"account": admin_user.pk, "user_id": "u1", "agent": ada.pk}

    answers = [admin_client.post(address("identity", "add"), form) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [302, 200]
    assert Identity.objects.count() == 1
