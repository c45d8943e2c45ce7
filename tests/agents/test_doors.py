"""What operators do through the API, the plain admin and the commands is in the audit, too."""

import io

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.urls import reverse

from agents import audit
from agents.models import Agent, AgentNotErased, AuditEntry, Identity
from memory.errors import BackendUnavailable
from tests.agents.test_admin import address, agent_form


@pytest.fixture(autouse=True)
def _settings(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path  # WhiteNoise warns where nothing was collected
    settings.ALLOWED_HOSTS = ["testserver"]


def noted():
    return [
        (entry.action, entry.actor_name, entry.agent_name, entry.subject_name, entry.user_id)
        for entry in AuditEntry.objects.order_by("pk")
    ]


def test_the_api_notes_agents(admin_client, ada):
    web, json = admin_client, {"content_type": "application/json"}
    web.post("/api/v1/agents/", {"name": "lin"}, **json)
    web.patch("/api/v1/agents/ada/", {"language": "zh-hans"}, **json)
    web.patch("/api/v1/agents/ada/", {"language": "no"}, **json)
    web.delete("/api/v1/agents/ada/")

    assert noted() == [
        ("agent_created", "admin", "lin", "", ""),
        ("setting_changed", "admin", "ada", "", ""),
        ("agent_deleted", "admin", "ada", "", ""),
    ]
    assert AuditEntry.objects.get(action="setting_changed").detail == "fields: language"


def test_an_agent_that_could_not_be_deleted_was_not(admin_client, ada, monkeypatch):
    def fail(agent):
        raise BackendUnavailable("silent")

    monkeypatch.setattr("memory.services.erasure.erase_agent", fail)
    with pytest.raises(AgentNotErased):
        ada.delete()
    admin_client.delete("/api/v1/agents/ada/")
    admin_client.post(address("agent", "delete", ada.pk), {"post": "yes"})
    form = {"action": "delete_selected", "_selected_action": [ada.pk], "post": "yes"}
    admin_client.post(address("agent", "changelist"), form)

    assert Agent.objects.filter(name="ada").exists()
    assert noted() == []


def test_the_plain_admin_notes_agents_and_identities(admin_client, admin_user, ada):
    admin_client.post(address("agent", "add"), agent_form(name="lin"))
    admin_client.post(address("agent", "delete", ada.pk), {"post": "yes"})
    form = {"account": admin_user.pk, "user_id": "u1", "agent": ""}
    admin_client.post(address("identity", "add"), form)
    identity = Identity.objects.get()
    admin_client.post(address("identity", "change", identity.pk), {**form, "user_id": "u2"})
    form = {"action": "delete_selected", "_selected_action": [identity.pk], "post": "yes"}
    admin_client.post(address("identity", "changelist"), form)

    assert noted() == [
        ("agent_created", "admin", "lin", "", ""),
        ("agent_deleted", "admin", "ada", "", ""),
        ("identity_linked", "admin", "", "admin", "u1"),
        ("identity_unlinked", "admin", "", "admin", "u1"),
    ]


def test_the_plain_admin_notes_accounts_and_whose_password_is_known(admin_client, db):
    password = "three small kumquats"
    form = {"username": "ming", "usable_password": "true", "password1": password,
            "password2": password}  # fmt: skip
    admin_client.post(reverse("admin:auth_user_add"), form)
    ming = get_user_model().objects.get(username="ming")
    address = reverse("admin:auth_user_password_change", args=[ming.pk])
    admin_client.post(address, {**form, "set-password": "1"})
    giver = audit.password_giver(ming)
    admin_client.post(reverse("admin:auth_user_delete", args=[ming.pk]), {"post": "yes"})

    entries = AuditEntry.objects.order_by("pk")
    assert [(each.action, each.subject_name, each.detail) for each in entries] == [
        ("account_created", "ming", "password: given"),
        ("account_changed", "ming", "password: reset"),
        ("account_changed", "ming", "account: deleted"),
    ]
    assert giver.actor_name == "admin"


def test_nobody_demotes_or_deletes_himself_in_the_plain_admin(admin_client, admin_user):
    change = reverse("admin:auth_user_change", args=[admin_user.pk])
    form = {"date_joined_0": "2026-11-30", "date_joined_1": "09:00:00"}

    admin_client.post(change, form)  # without the boxes that were ticked
    answer = admin_client.post(reverse("admin:auth_user_delete", args=[admin_user.pk]), {"post": 1})
    selected = {"action": "delete_selected", "_selected_action": [admin_user.pk], "post": "yes"}
    admin_client.post(reverse("admin:auth_user_changelist"), selected)

    assert answer.status_code == 403
    admin_user.refresh_from_db()
    assert (admin_user.is_active, admin_user.is_staff, admin_user.is_superuser) == (True,) * 3


def test_the_commands_note_what_they_do(ada, remember, tmp_path):
    remember(ada, "u1", "Ming deploys on Fridays")
    file = tmp_path / "all.jsonl"

    call_command("create_agent", "lin", stdout=io.StringIO())
    call_command("export_memories", str(file), agent="ada", user="u1", stdout=io.StringIO())
    call_command("export_memories", str(file), agent="ada", stdout=io.StringIO())
    call_command("import_memories", str(file), agent="lin", user="u2", stdout=io.StringIO())

    assert noted() == [
        ("agent_created", "-", "lin", "", ""),
        ("key_created", "-", "lin", "", ""),
        ("exported", "-", "ada", "", "u1"),
        ("exported", "-", "ada", "", ""),
        ("imported", "-", "lin", "", "u2"),
    ]
    assert AuditEntry.objects.get(action="imported").count == 1


def test_one_sees_exports_of_all_by_agents_that_know_one(ada, django_user_model):
    ming = django_user_model.objects.create_user("ming")
    Identity.objects.create(account=ming, user_id="u1")
    lin = Agent.objects.create_agent("lin", backend="sqlite")
    for agent in (ada, lin):
        call_command("export_memories", agent=agent.name, stdout=io.StringIO())

    assert [entry.agent for entry in audit.reads_about(ming, [ada])] == [ada]
