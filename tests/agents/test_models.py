"""Agents and what belongs to them: names, paths, users."""

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from agents.models import (
    Agent,
    ApiKey,
    Identity,
    MemoryConfig,
    Team,
    validate_agent_name,
    validate_sqlite_path,
    validate_user_id,
)

pytestmark = pytest.mark.django_db


def create(name, **fields):
    return Agent.objects.create_agent(name, backend="sqlite", **fields)


# --- names -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["ada", "Ada-2", "support_bot", "v1.2", "客服", "ассистент", "...", "7", "é", "ß" * 100]
)
def test_a_name_is_letters_digits_and_three_signs_of_any_script(name):
    validate_agent_name(name)

    assert create(name).name == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a b", "a/b", "a\\b", "a?b", "a#b", "a%2Fb", "ada\n", "ada\x00", "ada ", "@ada",
     "ada🙂", "a:b", "\u200b", "x" * 101],
)  # fmt: skip
def test_other_names_are_refused(name):
    with pytest.raises(ValidationError) as caught:
        create(name)

    assert set(caught.value.message_dict) == {"name"}
    assert not Agent.objects.exists()


def test_a_name_is_taken_once():
    create("ada")

    with pytest.raises(ValidationError) as caught:
        create("ada")

    assert set(caught.value.message_dict) == {"name"}
    assert MemoryConfig.objects.count() == 1


def test_names_that_differ_in_case_are_two():
    assert create("ada") != create("Ada")
    assert Agent.objects.named("Ada").name == "Ada"


def test_an_agent_comes_with_its_memory_configuration(django_assert_num_queries):
    create("ada", display_name="Ada", system_prompt="You are Ada.", language="en")

    with django_assert_num_queries(1):
        agent = Agent.objects.named("ada")
        config = agent.memory_config

    assert (str(agent), agent.system_prompt, agent.language) == ("Ada", "You are Ada.", "en")
    assert (config.enabled, config.backend, config.sqlite_path) == (True, "sqlite", "memory.db")
    assert (config.prefetch_limit, config.budget_tokens) == (5, 1_000)
    assert agent.is_active


def test_an_unknown_name_is_nobody():
    with pytest.raises(Agent.DoesNotExist):
        Agent.objects.named("mallory")


def test_an_agent_without_a_display_name_goes_by_its_name():
    assert str(create("ada")) == "ada"


@pytest.mark.parametrize("fields", [{"language": "fr"}, {"display_name": "A" * 201}])
def test_what_an_agent_cannot_have_is_refused(fields):
    with pytest.raises(ValidationError) as caught:
        create("ada", **fields)

    assert set(caught.value.message_dict) == set(fields)


# --- stores ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["memory.db", "team-7.db", "客服.db", "a.b.db", "_.db", "-.db"])
def test_a_store_is_a_plain_file_name(path):
    validate_sqlite_path(path)

    agent = create("ada", sqlite_path=path)

    assert agent.memory_config.sqlite_path == path


@pytest.mark.parametrize(
    "path",
    ["../hippo.db", "/tmp/a.db", "a/b.db", "a\\b.db", "..", ".db", "..db", "hippo.sqlite3",
     "memory", "memory.db ", "memory.db\n", "memory.db\x00", "a b.db", "file:a.db",
     "memory.db?mode=ro", "memory.db-wal", "~.db", "$HOME.db", "x" * 98 + ".db"],
)  # fmt: skip
def test_a_store_is_nowhere_else(path):
    with pytest.raises(ValidationError) as caught:
        create("ada", sqlite_path=path)

    assert "sqlite_path" in caught.value.message_dict
    assert not Agent.objects.exists()


def test_a_store_whose_name_no_file_can_have_is_refused():
    with pytest.raises(ValidationError):
        create("ada", sqlite_path="记" * 90 + ".db")  # 273 bytes


@pytest.mark.parametrize("backend", ["", "postgres", "SQLITE"])
def test_other_backends_are_refused(backend):
    with pytest.raises(ValidationError):
        Agent.objects.create_agent("ada", backend=backend)

    assert not Agent.objects.exists()


@pytest.mark.parametrize(
    ("field", "least", "most"), [("prefetch_limit", 1, 50), ("budget_tokens", 50, 100_000)]
)
def test_limits_of_a_prefetch_have_bounds(field, least, most):
    config = create("ada").memory_config

    for value in (least, most):
        setattr(config, field, value)
        config.full_clean()
    for value in (least - 1, most + 1):
        setattr(config, field, value)
        with pytest.raises(ValidationError) as caught:
            config.full_clean()
        assert set(caught.value.message_dict) == {field}


# --- users -----------------------------------------------------------------------------


@pytest.mark.parametrize("user_id", ["ming", " ", "u1 ", "ж-用户-🙂", "../u2", "\n", "🙂" * 255])
def test_a_user_id_is_any_text(user_id):
    validate_user_id(user_id)


@pytest.mark.parametrize("user_id", ["", "🙂" * 256, "ming\x00", "\ud800", "ming\udfff"])
def test_what_cannot_be_stored_is_no_user_id(user_id):
    with pytest.raises(ValidationError):
        validate_user_id(user_id)


def test_an_account_can_own_user_ids_that_differ_in_a_space(django_user_model):
    ming = django_user_model.objects.create_user("ming")
    agent = create("ada")

    for user_id in ("u1", "U1", "u1 ", "ú1"):
        Identity.objects.create(account=ming, user_id=user_id, agent=agent)

    assert Identity.objects.get(user_id="u1 ").user_id == "u1 "
    with pytest.raises(IntegrityError), transaction.atomic():
        Identity.objects.create(account=ming, user_id="u1 ", agent=agent)


def test_an_identity_of_all_agents_exists_once(django_user_model):
    ming = django_user_model.objects.create_user("ming")
    Identity.objects.create(account=ming, user_id="u1")

    with pytest.raises(ValidationError):
        Identity(account=ming, user_id="u1").full_clean()


@pytest.mark.django_db(databases="__all__")
def test_deleting_an_agent_takes_its_belongings(django_user_model):
    ada, grace = create("ada"), create("grace")
    ming = django_user_model.objects.create_user("ming")
    for agent in (ada, grace, None):
        Identity.objects.create(account=ming, user_id="u1", agent=agent)
    for agent in (ada, grace):
        ApiKey.objects.create(agent=agent, prefix=agent.name, hashed_key=agent.name)

    ada.delete()

    assert [key.prefix for key in ApiKey.objects.all()] == ["grace"]
    assert {identity.agent for identity in Identity.objects.all()} == {grace, None}
    assert MemoryConfig.objects.count() == 1


def test_a_team_has_members(django_user_model):
    ming, bob = (django_user_model.objects.create_user(name) for name in ("ming", "bob"))
    team = Team.objects.create(name="支付")

    team.members.add(ming, bob)

    assert set(team.members.all()) == {ming, bob}
    assert list(ming.teams.all()) == [team]
    with pytest.raises(IntegrityError), transaction.atomic():
        team.membership_set.create(account=ming)
