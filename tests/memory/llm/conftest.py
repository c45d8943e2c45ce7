"""A server that speaks the models' protocols; nobody waits long before a call is repeated."""

import pytest
from django.utils import translation

from memory.llm import http
from tests.memory.model_server import ModelServer


@pytest.fixture(autouse=True)
def _failures_are_told_in_english():
    with translation.override("en"):
        yield


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(http, "_FIRST_PAUSE_SECONDS", 0.01)


@pytest.fixture
def server():
    with ModelServer() as server:
        yield server
