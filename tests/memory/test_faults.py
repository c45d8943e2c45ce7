"""What people see when something goes wrong; programs get JSON."""

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import path

from agents.models import Agent
from memory.models import Scope


def fail(request):
    raise ValueError("a fault")


@pytest.fixture
def ming(db, django_user_model):
    return django_user_model.objects.create_user("ming", password="correct horse")


@pytest.fixture
def failing(settings):
    """The product's addresses, and one that fails."""
    from config import urls

    settings.ROOT_URLCONF = type(
        "urls",
        (),
        {
            "urlpatterns": [path("fail/", fail), path("api/fail/", fail), *urls.urlpatterns],
            **{name: getattr(urls, name) for name in dir(urls) if name.startswith("handler")},
        },
    )
    return Client(raise_request_exception=False)


def is_page(answer):
    return b"h-entrance-card" in answer.content and b"<html" in answer.content


@pytest.mark.parametrize("language", ["zh-hans", "en"])
def test_an_unknown_address_is_told_in_our_look(client, ming, language):
    client.cookies["django_language"] = language

    answer = client.get("/nothing/")

    assert answer.status_code == 404
    assert is_page(answer)
    assert f'lang="{language}"' in answer.content.decode()


def test_a_fragment_gets_words_and_no_page(client, ming):
    client.force_login(ming)

    answer = client.get("/memories/7/", headers={"hx-request": "true"})

    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert b"<" not in answer.content


def test_a_fault_needs_no_database_to_be_told():
    # without the mark `django_db`, every query fails
    client = Client(raise_request_exception=False)
    client.cookies["theme"] = "dark"

    page = client.get("/memories/")
    fragment = client.get("/memories/", headers={"hx-request": "true"})

    assert page.status_code == fragment.status_code == 500
    assert is_page(page)
    assert 'data-theme="dark"' in page.content.decode()
    assert b"<" not in fragment.content


def test_programs_get_json(failing, ming):
    assert is_page(failing.get("/fail/"))
    assert failing.get("/api/fail/").json()["error"]["code"] == "internal"
    assert failing.get("/api/nothing/").json()["error"]["code"] == "not_found"


def test_a_host_that_is_not_ours_is_refused_in_our_look(ming, settings):
    settings.ALLOWED_HOSTS = ["hippo.example"]

    answer = Client().get("/memories/", headers={"host": "evil.example"})

    assert answer.status_code == 400
    assert is_page(answer)
    assert b"ALLOWED_HOSTS" in answer.content


def test_a_form_without_its_token_says_what_to_do(ming):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ming)

    page = client.post("/memories/new/", {"content": "x"})
    fragment = client.post("/memories/7/edit/", headers={"hx-request": "true"})

    assert page.status_code == fragment.status_code == 403
    assert is_page(page)
    assert fragment.headers["Content-Type"].startswith("text/plain")
    assert not Agent.objects.exists()


def test_what_an_account_may_not_do_is_told_in_our_look(client, ming):
    client.force_login(ming)

    answer = client.get("/admin/", follow=True)

    assert answer.status_code == 403
    assert is_page(answer)


@pytest.mark.parametrize("state", ["frozen", "silent"])
def test_a_store_that_is_shut_or_silent_is_told_and_nothing_is_changed(
    agent, client, ming, remember, monkeypatch, state
):
    from agents.models import Identity

    Identity.objects.create(account=ming, user_id="ming")
    memory = remember(agent, "ming", "kumquat")
    client.force_login(ming)
    if state == "frozen":
        Scope.objects.for_agent(agent).update(state="frozen")
    else:
        monkeypatch.setattr("memory.services.memories.locked_scope", _silent)

    page = client.post(f"/memories/{memory.pk}/delete/")
    fragment = client.post(f"/memories/{memory.pk}/delete/", headers={"hx-request": "true"})

    assert page.status_code == fragment.status_code == 503
    assert is_page(page)
    assert b"<" not in fragment.content
    assert client.get(f"/memories/{memory.pk}/").context["memory"].version == 1


def _silent(*args, **options):
    raise OperationalError(2006, "MySQL server has gone away")
