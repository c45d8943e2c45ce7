"""Ming logged in, with Django's own client: what a page answers, without a browser."""

import pytest
from django.contrib.auth import get_user_model

from agents.models import Identity
from memory.services.health import pulses


@pytest.fixture
def ming(db):
    account = get_user_model().objects.create_user("ming", password="correct horse")
    Identity.objects.create(account=account, user_id="ming")
    return account


@pytest.fixture
def web(client, ming, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    client.force_login(ming)
    return client


@pytest.fixture
def fragment(web):
    """Ask as htmx does: fragment("get", "/memories/", target="list")."""

    def ask(method, path, data=None, *, target="list"):
        headers = {"HX-Request": "true", "HX-Target": target}
        return getattr(web, method)(path, data or {}, headers=headers)

    return ask


@pytest.fixture
def olga(client, ming, settings):
    """Ming as an operator, with everything alive and safe."""
    ming.is_staff = True
    ming.save()
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.SECRET_KEY = "k" * 50
    client.force_login(ming)
    client.cookies["django_language"] = "en"
    for name in (pulses.BEAT, pulses.WORKER, pulses.ROUND):
        pulses.note(name)
    return client
