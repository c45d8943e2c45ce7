"""Which model is called: the environment as a whole, else the operators' row; keys stay secret."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import endpoints
from memory.endpoints import DEFAULT_EMBEDDING_MODEL, LOST_KEY
from memory.llm.embeddings import EMBEDDED_MODEL, EmbeddingFailed
from memory.llm.sealing import SealBroken, seal, unseal
from memory.models import ModelEndpoint
from memory.retrieval import chatter, embedder
from tests.conftest import NOW
from tests.memory.model_server import ModelServer

KEY = "sk-very-secret"


@pytest.fixture
def free(settings):
    """Nothing is fixed by the environment."""
    settings.EMBEDDINGS = ""
    return settings


def set_row(purpose="embeddings", provider="endpoint", url="https://h/v1", model="", key=KEY, **f):
    sealed = seal(key, f.pop("secret", None) or "unused")
    row = ModelEndpoint(
        purpose=purpose, provider=provider, url=url, model=model, sealed_key=sealed, changed_at=NOW
    )
    row.save()
    endpoints.forget()
    return row


@pytest.mark.django_db
def test_without_a_word_from_anybody_the_embedded_model_embeds_and_nothing_talks(free):
    assert endpoints.of_embeddings().provider == "embedded"
    assert embedder.current().model == EMBEDDED_MODEL
    assert chatter.current() is None


@pytest.mark.django_db
def test_the_row_of_an_operator_counts(free):
    set_row(secret=free.SECRET_KEY)

    found = endpoints.of_embeddings()

    assert (found.endpoint.url, found.endpoint.key) == ("https://h/v1", KEY)
    assert found.endpoint.model == embedder.current().model == DEFAULT_EMBEDDING_MODEL
    assert not found.variables


@pytest.mark.django_db
def test_the_environment_counts_as_a_whole_and_sends_no_key_of_the_row(free):
    set_row(secret=free.SECRET_KEY, model="m")
    free.EMBEDDING_URL = "https://env.example"

    found = endpoints.of_embeddings()

    assert (found.provider, found.endpoint.url) == ("endpoint", "https://env.example")
    assert (found.endpoint.key, found.endpoint.model) == ("", DEFAULT_EMBEDDING_MODEL)
    assert found.variables["key"] == "EMBEDDING_KEY"
    free.EMBEDDINGS = "none"
    assert embedder.current() is None


@pytest.mark.django_db
def test_searches_do_not_ask_the_database_which_model_it_is(free):
    set_row(secret=free.SECRET_KEY)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        models = [embedder.current() for _ in range(50)]

    assert len(queries) == 1
    assert all(model is models[0] for model in models)


@pytest.mark.django_db
def test_a_change_makes_another_client(free):
    set_row(secret=free.SECRET_KEY)
    before = embedder.current()
    set_row(secret=free.SECRET_KEY, key="another")

    assert embedder.current() is not before


@pytest.mark.django_db
def test_another_secret_key_is_said_and_breaks_nothing(free):
    set_row(secret="the one before")
    set_row(purpose="chat", provider="openai", model="m", secret="the one before")

    assert str(endpoints.of_chat().endpoint.obstacle) == str(LOST_KEY)
    with pytest.raises(EmbeddingFailed, match="SECRET_KEY"):
        embedder.current().embed(["Ming deploys"])


@pytest.mark.django_db
def test_private_addresses_are_called_only_where_that_is_allowed(free):
    with ModelServer() as server:
        set_row(url=server.url, key="", secret=free.SECRET_KEY)
        with pytest.raises(EmbeddingFailed, match="MODEL_PRIVATE_ADDRESSES"):
            embedder.current().embed(["Ming deploys"])
        assert not server.asked

        free.MODEL_PRIVATE_ADDRESSES = True
        assert embedder.current().embed(["Ming deploys"]).any()


def test_a_sealed_key_is_opened_by_the_same_secret_only():
    sealed = seal(KEY, "secret")

    assert KEY not in sealed
    assert unseal(sealed, "secret") == KEY
    assert unseal(seal("", "secret"), "secret") == ""
    assert seal(KEY, "secret") != sealed
    for text, secret in ((sealed, "other"), (sealed[:-4], "secret"), ("x", "secret")):
        with pytest.raises(SealBroken):
            unseal(text, secret)
