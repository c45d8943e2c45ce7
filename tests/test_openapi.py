"""The OpenAPI schema is valid, complete and true, and its pages need no other server."""

import re
from collections import Counter

import pytest
import schemathesis
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.urls import get_resolver
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from config.wsgi import application
from memory.tools import NAMES
from tests.memory.api.client import Api

SCHEMA = SchemaGenerator().get_schema(public=True)
METHODS = {"get", "post", "put", "patch", "delete"}
OPERATIONS = {
    operation["operationId"]: (path, method, operation)
    for path, methods in SCHEMA["paths"].items()
    for method, operation in methods.items()
    if method in METHODS
}
CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance,
    response_schema_conformance,
]  # fmt: skip


def test_the_schema_is_valid_and_gives_no_warning(tmp_path):
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema"))


def test_every_address_is_in_the_schema():
    there_are = {
        f"/api/v1/{prefix}{pattern.pattern}"
        for urls, prefix in (("agents.urls", ""), ("memory.urls", "agents/<str:agent>/"))
        for pattern in get_resolver(urls).url_patterns
    }

    described = {path for path in SCHEMA["paths"] if path.startswith("/api/")}
    assert described == {re.sub(r"<\w+:(\w+)>", r"{\1}", path) for path in there_are}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_documents_its_errors_and_credential(name):
    path, _, operation = OPERATIONS[name]
    if not path.startswith("/api/"):
        assert "security" not in operation
        return

    answers = operation["responses"]
    expected = {"400", "401", "404", "406", "429", "503"}
    if "requestBody" in operation:
        expected |= {"413", "415"}
    is_operators = operation["tags"] == ["operators"]
    if is_operators:
        expected |= {"403"}
    assert expected <= set(answers)
    for status, answer in answers.items():
        if status >= "400":
            schema = answer["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ErrorAnswer"}
    scheme = "cookieAuth" if is_operators else "agentKey"
    assert operation["security"] == [{scheme: []}]
    assert operation["description"]


def test_a_key_is_how_agents_prove_who_they_are():
    scheme = SCHEMA["components"]["securitySchemes"]["agentKey"]

    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


def test_the_schema_is_served(client):
    response = client.get("/api/schema/", headers={"accept": "application/json"})

    assert response.status_code == 200
    assert response.json()["paths"].keys() == SCHEMA["paths"].keys()


def test_the_docs_load_everything_from_this_server(client):
    page = client.get("/api/docs/")

    assert page.status_code == 200
    html = page.content.decode()
    assets = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert len(assets) >= 4
    assert all(each.startswith("/") and not each.startswith("//") for each in assets)
    assert not re.search(r"https?://", html)
    files = [each for each in assets if each.startswith("/static/")]
    assert len(files) >= 3
    for each in files:
        assert finders.find(each.removeprefix("/static/")), each
    [script] = [each for each in assets if each not in files]
    body = client.get(script.replace("&amp;", "&"))
    assert body.status_code == 200
    text = body.content.decode()
    assert "/api/schema/" in text
    assert not re.search(r"""["'](?:https?:)?//""", text)


@pytest.fixture
def hippo(ada):
    """The API with some memories in it, committed: WSGI handlers close their connections."""
    api = Api(ada)
    saved = [api.save("ming", f"kumquat tea {number}") for number in range(3)]
    api.delete(f"memories/{saved[0]['id']}/", user_id="ming")
    return api, [memory["id"] for memory in saved]


@pytest.fixture
def credentials(hippo, client, django_user_model):
    """A key and an operator's session with its CSRF token, as a request's arguments."""
    client.force_login(django_user_model.objects.create_user("opal", is_staff=True))
    token = "a" * 32
    return {
        "headers": {"Authorization": f"Bearer {hippo[0].key}", "X-CSRFToken": token},
        "cookies": {"sessionid": client.cookies["sessionid"].value, "csrftoken": token},
    }


@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_the_schema_allows_is_answered_as_it_says(name, hippo, credentials):
    api, ids = hippo
    path, method, _ = OPERATIONS[name]
    described = schemathesis.openapi.from_dict(SCHEMA, config=SchemathesisConfig(seed=1))
    described.app = application
    seen = Counter()
    calls = iter(range(10**6))

    @settings(
        max_examples=20, derandomize=True, deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=described[path][method.upper()].as_strategy())
    def check(case):
        number = next(calls)
        if "agent" in case.path_parameters and number % 4:
            case.path_parameters["agent"] = "ada"
        if "memory_id" in case.path_parameters and number % 3:
            case.path_parameters["memory_id"] = ids[number % len(ids)]
        if "key_id" in case.path_parameters and number % 3:
            case.path_parameters["key_id"] = api.row.pk
        if "tool" in case.path_parameters and number % 3:
            case.path_parameters["tool"] = NAMES[number % len(NAMES)]
        if number % 5 and isinstance(case.query, dict) and "user_id" in case.query:
            case.query["user_id"] = "ming"
        response = case.call_and_validate(checks=CHECKS, **credentials)
        seen[response.status_code] += 1

    check()
    assert min(seen) < 300, seen
