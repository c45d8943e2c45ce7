"""Operators set models and try them; no key is shown again, or sent where it was not meant for."""

import pytest

from agents.models import AuditEntry
from memory import endpoints
from memory.models import ModelEndpoint
from memory.services.health import model_health
from tests.memory.model_server import ModelServer, failing, html_page, says
from tests.memory.views.operators import htmx, make_operator

PAGE = "/settings/"
EMBEDDINGS, CHAT = f"{PAGE}embeddings/", f"{PAGE}chat/"
KEY = "sk-very-secret"


@pytest.fixture
def web(client, db, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.EMBEDDINGS = ""
    settings.MODEL_PRIVATE_ADDRESSES = True
    client.force_login(make_operator())
    client.cookies["django_language"] = "en"
    return client


@pytest.fixture
def server():
    with ModelServer(key=KEY) as server:
        server.chat_says = '{"picked": [2]}'
        yield server


def typed(server, provider="endpoint", **fields):
    return {"provider": provider, "url": server.url, "model": "m", "key": KEY, **fields}


def words(answer):
    return answer.content.decode()


def test_the_page_says_what_there_is_before_anything_was_set(web):
    page = words(web.get(PAGE))

    assert 'value="embedded" checked' in page
    assert page.count('value="none" checked') == 1


@pytest.mark.parametrize(("address", "provider"), [(EMBEDDINGS, "endpoint"), (CHAT, "anthropic")])
def test_a_model_is_saved_sealed_and_on_record_without_its_key(web, server, address, provider):
    answer = web.post(address, typed(server, provider), follow=True)

    row = ModelEndpoint.objects.get()
    assert (row.provider, row.url, row.model) == (provider, server.url, "m")
    assert KEY not in row.sealed_key
    assert endpoints.choice_of(row.purpose).endpoint.key == KEY
    assert KEY not in words(answer)
    assert "One is kept, encrypted" in words(answer)
    entry = AuditEntry.objects.get(action="setting_changed")
    assert (entry.actor_name, entry.agent) == ("opal", None)
    assert entry.detail == f"{row.purpose}: - → {provider} {server.url} m; key: changed"
    assert not server.asked


def test_a_key_that_is_not_typed_is_kept_for_the_same_server_only(web, server):
    web.post(EMBEDDINGS, typed(server))
    web.post(EMBEDDINGS, typed(server, key="", model="n", url=f"{server.url}/v1"))
    assert endpoints.of_embeddings().endpoint.key == KEY

    with ModelServer() as other:
        tried = htmx(web, f"{EMBEDDINGS}test/", typed(other, key=""))
        answer = web.post(EMBEDDINGS, typed(other, key=""), follow=True)

        assert "works" in words(tried)
        assert all("authorization" not in asked.headers for asked in other.asked)
    assert "is deleted; enter one" in words(answer)
    assert endpoints.of_embeddings().endpoint.key == ""


def test_a_key_is_deleted_where_that_is_ticked(web, server):
    web.post(EMBEDDINGS, typed(server))

    web.post(EMBEDDINGS, typed(server, key="", forgets_key="on"))

    assert ModelEndpoint.objects.get().sealed_key == ""
    assert AuditEntry.objects.latest("pk").detail.endswith("key: deleted")


WRONG = [
    (EMBEDDINGS, {"provider": "openai"}, "provider"),
    (EMBEDDINGS, {"url": ""}, "url"),
    (EMBEDDINGS, {"url": "ftp://h/x"}, "url"),
    (EMBEDDINGS, {"url": "http://public.example@10.0.0.5/v1"}, "url"),
    (EMBEDDINGS, {"url": "http://169.254.169.254/v1"}, "url"),
    (EMBEDDINGS, {"model": "m" * 201}, "model"),
    (EMBEDDINGS, {"key": "two words"}, "key"),
    (EMBEDDINGS, {"key": "ключ"}, "key"),
    (CHAT, {"provider": "openai", "model": ""}, "model"),
    (CHAT, {"provider": "openai", "url": ""}, "url"),
]


@pytest.mark.parametrize(("address", "fields", "name"), WRONG)
def test_what_cannot_be_is_said_at_its_field_and_not_kept(web, server, address, fields, name):
    answer = web.post(address, typed(server) | fields)
    tried = htmx(web, f"{address}test/", typed(server) | fields)

    assert answer.status_code == tried.status_code == 422
    form = next(part["form"] for part in answer.context["parts"] if part["form"].is_bound)
    assert list(form.errors) == [name]
    assert not ModelEndpoint.objects.exists()
    assert not server.asked


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "10.0.0.5", "[::1]", "100.64.0.1"])
def test_private_addresses_are_refused_when_saved(web, settings, host):
    """Field case C047."""
    settings.MODEL_PRIVATE_ADDRESSES = False

    answer = web.post(EMBEDDINGS, {"provider": "endpoint", "url": f"http://{host}/v1"})

    assert answer.status_code == 422
    assert "MODEL_PRIVATE_ADDRESSES=true" in words(answer)


@pytest.mark.parametrize(
    ("address", "provider", "shown"),
    [
        (EMBEDDINGS, "endpoint", "vectors of 64 numbers"),
        (EMBEDDINGS, "none", "nothing to test"),
        (CHAT, "openai", "works,"),
        (CHAT, "anthropic", "works,"),
    ],
)
def test_a_model_is_tried_as_it_is_typed(web, server, address, provider, shown):
    fragment = htmx(web, f"{address}test/", typed(server, provider))
    page = web.post(f"{address}test/", typed(server, provider))

    assert shown in words(fragment)
    assert shown in words(page)
    assert "<html" not in words(fragment)
    assert not ModelEndpoint.objects.exists()
    assert KEY not in words(page)


@pytest.mark.parametrize(
    ("fault", "mend"),
    [
        (failing(404), "usually ends in /v1"),
        (html_page, "not of an API"),
        (says("the second"), "try a larger one"),
    ],
)
def test_a_trial_that_fails_says_why_and_what_to_do(web, server, fault, mend):
    server.fault = fault

    assert mend in words(htmx(web, f"{CHAT}test/", typed(server, "openai")))


def test_what_the_server_says_is_shown_without_the_key(web, server):
    shown = words(htmx(web, f"{EMBEDDINGS}test/", typed(server, key="sk-wrong")))

    assert "enter it again" in shown
    assert "bad key Bearer …" in shown
    assert "sk-wrong" not in shown


def test_what_the_environment_says_is_shown_tried_and_not_changed(web, server, settings):
    settings.EMBEDDING_URL, settings.EMBEDDING_KEY = server.url, KEY
    settings.CHAT_PROVIDER = "none"

    page = words(web.get(PAGE))
    tried = htmx(web, f"{EMBEDDINGS}test/")

    for name in ("EMBEDDING_URL", "EMBEDDING_MODEL", "EMBEDDING_KEY", "CHAT_PROVIDER"):
        assert name in page
    assert KEY not in page
    assert "vectors of 64 numbers" in words(tried)
    assert web.post(EMBEDDINGS, typed(server)).status_code == 404
    assert web.post(f"{PAGE}other/", typed(server)).status_code == 404
    assert web.post(f"{PAGE}other/test/", typed(server)).status_code == 404


def test_a_key_under_another_secret_is_said(web, server, settings):
    web.post(EMBEDDINGS, typed(server))
    settings.SECRET_KEY = "another" * 10
    web.force_login(make_operator("olga"))

    assert "saved under another SECRET_KEY" in words(web.get(PAGE))


def test_an_agents_switch_waits_for_a_chat_model(ada, web, server):
    address = "/agents/ada/settings/"
    before = words(web.get(address))
    refused = htmx(web, address, {"field": "reranks", "reranks": "true"})

    web.post(CHAT, typed(server, "openai"))
    saved = htmx(web, address, {"field": "reranks", "reranks": "true"})

    ada.memory_config.refresh_from_db()
    assert "No chat model is set" in before
    assert refused.status_code == 422
    assert 'class="saved"' in words(saved)
    assert ada.memory_config.reranks
    assert AuditEntry.objects.latest("pk").detail == "reranks: False → True"
    assert "No chat model is set" not in words(web.get(address))


def test_the_system_page_says_how_a_model_does_without_calling_it_each_time(ada, web, server):
    model_health._known.clear()
    web.post(EMBEDDINGS, typed(server))

    for _ in range(3):
        well = web.get("/system/").context["report"].models
    assert [(each.finding.state.name, each.host) for each in well] == [
        ("OK", server.url.removeprefix("http://")), ("OK", ""),
    ]  # fmt: skip
    assert len(server.asked) == 1

    server.fault = failing(401)
    web.post(EMBEDDINGS, typed(server, model="n"))
    page = words(web.get("/system/"))

    assert "enter it again" in page
    assert "Search goes on by words" in page
