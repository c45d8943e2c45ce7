"""Agents over HTTP."""

import pytest

from tests.conftest import make_agent
from tests.memory.api.client import Api


def pytest_collection_modifyitems(items):
    """Let tests of one SQLite agent roll back, which is much quicker than to empty the stores."""
    for item in items:
        if "local" in item.fixturenames:
            item.add_marker(pytest.mark.django_db(databases="__all__"))


@pytest.fixture
def local(db):
    """The HTTP client of ada, for what does not depend on the engine."""
    return Api(make_agent("ada", "sqlite"))


@pytest.fixture
def client_of():
    """Return an HTTP client with a new key: client_of(agent), client_of(agent, "ming")."""
    return Api


@pytest.fixture
def api(agent):
    """The HTTP client of an agent on either engine, with a key that is not bound."""
    return Api(agent)


@pytest.fixture
def neighbour(agent):
    """Another agent in the same store."""
    return make_agent("barbara", agent.memory_config.backend)


@pytest.fixture
def switch():
    """Change an agent's memory configuration in the database, as an operator does."""

    def change(agent, **values):
        type(agent.memory_config).objects.filter(agent=agent).update(**values)

    return change
