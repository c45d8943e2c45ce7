"""Pages ask the databases as often of many agents and memories as of few."""

from contextlib import ExitStack

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.test.utils import CaptureQueriesContext

from agents.models import Identity
from memory.databases import store_alias
from tests.conftest import make_agent

PATHS = [
    "/memories/",
    "/memories/?type=user&importance=0.4&tag=work",
    "/memories/?sort=important",
    "/memories/?q=deploys",
    "/memories/?q=dep&type=user",
    "/memories/counts/",
    "/memories/trash/",
    "/search/?q=deploys",
]


@pytest.fixture
def ming(client, db, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    account = get_user_model().objects.create_user("ming", password="correct horse")
    Identity.objects.create(account=account, user_id="ming")
    client.force_login(account)
    return client


def queries_by_path(ming, agent):
    return {path: queries_of(ming, agent, path) for path in PATHS}


def queries_of(ming, agent, path):
    with ExitStack() as stack:
        aliases = ("default", store_alias(agent))
        captured = [stack.enter_context(CaptureQueriesContext(connections[a])) for a in aliases]
        assert ming.get(path).status_code == 200
    return sum(map(len, captured))


def test_thirty_agents_in_one_store_cost_no_more_queries_than_one(agent, ming, remember):
    remember(agent, "ming", "Ming deploys on Fridays", tags=["work"])
    of_one = queries_by_path(ming, agent)

    for number in range(2, 31):
        other = make_agent(f"agent-{number}", agent.memory_config.backend)
        remember(other, "ming", "Ming deploys on Fridays", tags=["work"])
    of_thirty = queries_by_path(ming, agent)

    assert of_thirty == of_one
    assert max(of_one.values()) < 15


def test_two_hundred_memories_cost_no_more_queries_than_ten(agent, ming, remember):
    for number in range(10):
        remember(agent, "ming", f"Ming deploys service {number} on Fridays", tags=["work"])
    of_ten = queries_by_path(ming, agent)

    for number in range(10, 200):
        remember(agent, "ming", f"Ming deploys service {number} on Fridays", tags=["work"])
    of_two_hundred = queries_by_path(ming, agent)

    assert of_two_hundred == of_ten
