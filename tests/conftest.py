"""The cast: ada keeps memories in SQLite, grace in MySQL; ming and bob are their users,
mallory has access to nothing."""

from datetime import UTC, datetime

import pytest
from django.test import TransactionTestCase
from django.utils import translation
from hypothesis import HealthCheck, settings

from agents.models import Agent
from memory import databases, endpoints
from memory.drafts import parse_draft
from memory.models import ActorKind
from memory.retrieval import postings, vectors
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services import memories
from memory.services.figures import recall_counts
from memory.services.writing import Actor
from tests.emptying import empty_written
from tests.memory.installation import Installation, fresh_mysql
from tests.shifts import Shifts, longest_first

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
MING = Actor(ActorKind.USER, "ming")

STORES = {"agent", "ada", "grace"}

# a fixture is shared by all examples of one test, which each then use a user of their own
settings.register_profile(
    "hippo", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("hippo")

TransactionTestCase._fixture_teardown = empty_written


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Shifts(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items):
    """Let tests with an agent use every store, and commit: InnoDB indexes nothing before."""
    for item in items:
        if STORES & set(item.fixturenames):
            item.add_marker(pytest.mark.django_db(transaction=True, databases="__all__"))
    items.sort(key=longest_first)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """Open ada's file once: Django's tests allow only databases known before they begin."""
    with django_db_blocker.unblock():
        databases.migrate_store(databases.sqlite_alias("memory.db"))


def make_agent(name, backend):
    return Agent.objects.create_agent(name, backend=backend, language="en")


@pytest.fixture(params=["sqlite", "mysql"])
def agent(request, db):
    """An agent on either engine; what it is given to do must come out the same."""
    return make_agent({"sqlite": "ada", "mysql": "grace"}[request.param], request.param)


@pytest.fixture(autouse=True)
def _no_language_is_left_by_another_test():
    """Begin in the language of the settings: a request leaves its own active in the thread."""
    translation.deactivate()


@pytest.fixture(autouse=True)
def _recalls_are_counted_on_request(monkeypatch):
    """Let no thread write counts of recalls after the test that made them."""
    monkeypatch.setattr(recall_counts, "WAIT_SECONDS", 3600)
    yield
    recall_counts._pending.clear()


@pytest.fixture(autouse=True)
def _models_are_looked_up_anew():
    """What a process knows of endpoints outlives the rows of a test."""
    endpoints.forget()


@pytest.fixture(autouse=True)
def _no_search_is_kept_from_another_test():
    """Forget scopes: those of the next test may have the same numbers."""
    yield
    postings.cache.clear()
    postings._asked.clear()
    vectors.cache.clear()


@pytest.fixture
def ada(db):
    return make_agent("ada", "sqlite")


@pytest.fixture
def grace(db):
    return make_agent("grace", "mysql")


@pytest.fixture
def now():
    return NOW


@pytest.fixture
def remember():
    """Save a memory in few words: remember(agent, "ming", "Ming deploys on Fridays")."""

    def save(agent, user_id, content, *, now=NOW, **fields):
        draft = parse_draft({"type": "user", "content": content, **fields})
        return memories.save(agent, user_id, draft, now=now)

    return save


@pytest.fixture
def names_found():
    """Search and return the names of the hits, best first."""

    def find(agent, user_id, query, *, now=NOW, **request):
        result = search(agent, user_id, SearchRequest(query, **request), now=now)
        return [hit.memory.name for hit in result.hits]

    return find


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    """Hippo in processes of its own, where ada uses SQLite and grace MySQL."""
    with fresh_mysql() as mysql_url:
        installed = Installation(tmp_path_factory.mktemp("data"), MYSQL_URL=mysql_url)
        installed.run("prepare", agents={"ada": ["sqlite", ""], "grace": ["mysql", ""]})
        yield installed
