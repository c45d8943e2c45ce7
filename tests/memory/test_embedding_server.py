"""Vectors from a real server on loopback that fails in every way: nothing is lost by it.

The field cases C065 and C068 are here.
"""

import time
from contextlib import suppress

import numpy as np
import pytest

from memory.databases import store_alias
from memory.drafts import parse_draft
from memory.indexing import embedding_text
from memory.llm import http
from memory.llm.embeddings import EmbeddingFailed
from memory.llm.endpoint_embeddings import EndpointEmbeddings
from memory.models import MemoryVector, Scope
from memory.retrieval import embedder
from memory.retrieval.lexical import SearchRequest
from memory.retrieval.search import search
from memory.services import backlog, erasure, job_kinds, jobs, maintenance, memories
from memory.services.health import meaning
from tests.conftest import NOW
from tests.memory import model_server
from tests.memory.model_server import ModelServer, failing, stalling, vector_of

MODEL = "BAAI/bge-m3"


@pytest.fixture
def server(settings, monkeypatch):
    """The server that embeds; its client waits for less than a second."""
    monkeypatch.setattr(http, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setitem(EndpointEmbeddings._ask.__kwdefaults__, "seconds", 0.3)
    monkeypatch.setattr(backlog, "_tried", {})
    monkeypatch.setattr(backlog, "_is_called", True)  # jobs are left by the test
    with ModelServer() as server:
        settings.EMBEDDINGS = "endpoint"
        settings.EMBEDDING_URL = server.url
        settings.MODEL_PRIVATE_ADDRESSES = True
        yield server


def embed():
    """Do a job, as if what was refused had waited long enough; return it."""
    backlog._tried.clear()
    job = jobs.enqueue("embed", now=NOW)
    with suppress(EmbeddingFailed):
        job_kinds.perform(job.pk)
    job.refresh_from_db()
    return job


def rows_of(agent):
    scopes = list(Scope.objects.for_agent(agent).values_list("pk", flat=True))
    rows = MemoryVector.objects.using(store_alias(agent)).filter(scope_id__in=scopes)
    return list(rows.select_related("memory").order_by("pk"))


def is_right(row):
    """Return whether a row holds the vector of its text as it is now."""
    vector = np.frombuffer(row.vector, "<f2")
    wanted = vector_of(embedding_text(row.memory))
    return row.model == MODEL and row.dimension == 64 and np.allclose(vector, wanted, atol=1e-3)


def save_some(agent, count=40):
    values = [{"name": f"note {n}", "content": f"note {n}: 支付模块周五上线"} for n in range(count)]
    drafts = [parse_draft({"type": "user", **each}) for each in values]
    return memories.save_batch(agent, "ming", drafts, now=NOW)


FAULTS = {
    "503": failing(503),
    "401": failing(401),
    "429": failing(429),
    "a stall": stalling(),
    "a page": model_server.html_page,
    "a hang-up": model_server.hanging_up,
    "a short batch": model_server.short_batch,
    "wrong dimensions": model_server.wrong_dimension,
    "NaN": model_server.not_numbers,
    "words": model_server.words_for_numbers,
    "zeros": model_server.all_zero,
    "one index for all": model_server.same_index,
}


def test_whatever_the_server_does_all_vectors_are_there_once_it_is_well(agent, server, subtests):
    for name, fault in FAULTS.items():
        with subtests.test(name):
            saved = save_some(agent)
            server.fault = fault
            embed()
            during = rows_of(agent)
            server.fault = None

            # the next text shows that what was made of those before has another length
            memories.save(agent, "bob", parse_draft({"type": "user", "content": "tea"}), now=NOW)
            embed()
            job = embed()

            assert [row.pk for row in during] == [memory.pk for memory in saved]
            assert job.state == "done"
            rows = rows_of(agent)
            assert len(rows) == len(saved) + 1
            assert all(map(is_right, rows))
            assert {row.attempts for row in rows} == {0}
            assert list(maintenance.check(agent)) == []
        for scope in Scope.objects.for_agent(agent):
            erasure.erase_scope(scope)


def test_faults_now_and_then_lose_nothing(agent, server):
    save_some(agent, 100)
    for number, fault in enumerate([*FAULTS.values()] * 2):
        server.script.extend([lambda reply: reply] * (number % 3) + [fault])

    for _ in range(40):
        if embed().result.get("refused") == 0:
            break

    assert all(map(is_right, rows_of(agent)))


def look(agent, **options):
    """Search for what only words tell, and for what only a model could."""
    request = SearchRequest("支付模块", limit=3, **options)
    return search(agent, "ming", request, now=NOW)


def test_a_search_answers_from_words_whatever_the_server_does_and_says_so(
    agent, server, settings, subtests
):
    settings.EMBEDDING_QUERY_SECONDS = 0.3
    save_some(agent)
    embed()
    assert (look(agent).mode, look(agent).degraded) == ("hybrid", ())

    # a query is one text, whose index is right then
    faults = {name: fault for name, fault in FAULTS.items() if name != "one index for all"}
    for name, fault in faults.items():
        with subtests.test(name):
            endpoints_client_is_new()
            server.fault = fault
            began = time.monotonic()

            found = look(agent)

            assert time.monotonic() - began < 2
            assert (found.mode, len(found.hits)) == ("lexical", 3)
            assert found.degraded in {("embedding_failed",), ("no_vectors",)}
            server.fault = None
            endpoints_client_is_new()
            assert (look(agent).mode, look(agent).degraded) == ("hybrid", ())


def endpoints_client_is_new():
    """Forget that the server failed a moment ago: the breaker would not ask it."""
    embedder._client.cache_clear()


def test_a_server_that_changes_its_dimension_ends_no_search(agent, server):
    save_some(agent)
    embed()
    server.dimension = 128

    changed = look(agent)

    assert (changed.mode, changed.degraded, len(changed.hits)) == ("lexical", ("no_vectors",), 3)
    memories.save(agent, "ming", parse_draft({"type": "user", "content": "tea"}), now=NOW)
    for _ in range(2):
        embed()
    assert (look(agent).mode, look(agent).degraded) == ("hybrid", ())
    assert {row.dimension for row in rows_of(agent)} == {128}


def test_while_the_server_is_known_to_be_down_a_search_does_not_wait(agent, server, settings):
    settings.EMBEDDING_QUERY_SECONDS = 1.5
    save_some(agent)
    embed()
    server.fault = stalling()
    look(agent)
    began = time.monotonic()

    found = look(agent)

    assert time.monotonic() - began < 1.2
    assert found.degraded == ("embedding_failed",)


OUTAGES = {"refuses": None, "hangs": stalling(), "a page": model_server.html_page}


@pytest.mark.parametrize("outage", OUTAGES)
def test_c065_an_outage_keeps_nobody_from_saving_and_finding(agent, server, names_found, outage):
    if OUTAGES[outage]:
        server.fault = OUTAGES[outage]
    else:
        server.stop()
    began = time.monotonic()
    draft = parse_draft({"type": "user", "name": "tabs", "content": "Prefers tabs over spaces"})

    memory = memories.save(agent, "ming", draft, now=NOW)

    assert time.monotonic() - began < 5
    assert names_found(agent, "ming", "tabs") == ["tabs"]
    job = embed()
    assert (job.state, bool(backlog.failure())) == ("pending", True)
    assert meaning.coverage(agent) == (0, 1)
    assert names_found(agent, "ming", "tabs") == ["tabs"]
    if OUTAGES[outage]:
        server.fault = None
    else:
        server.start()
    embed()
    assert all(map(is_right, rows_of(agent)))
    assert meaning.coverage(agent) == (1, 1)
    after = memories.get(agent, "ming", memory.pk)
    assert (after.created_at, after.version) == (memory.created_at, 1)
    assert names_found(agent, "ming", "tabs") == ["tabs"]


def test_c068_a_providers_limits_are_kept_and_all_is_stored_in_full(agent, server, settings):
    settings.EMBEDDING_BATCH, settings.EMBEDDING_MAX_TOKENS = 10, 512
    server.max_batch = 10
    contents = [f"Ming's note {number}" for number in range(22)]
    contents += ["deploy " * 8_600, "支付模块周五" * 666, "---"]
    drafts = [parse_draft({"type": "user", "content": content}) for content in contents]
    saved = memories.save_batch(agent, "ming", drafts, now=NOW)

    job = embed()

    assert job.result == {"embedded": 25, "refused": 0}
    stored = [memories.get(agent, "ming", memory.pk).content for memory in saved]
    assert stored == [draft.content for draft in drafts]
    assert max(len(asked.body["input"]) for asked in server.asked) == 10
    assert all(text.strip() for text in server.texts)
    # as bge-m3 counts, on the dear side: an ideograph 1, three letters 1
    tokens = [sum(1 if ord(each) > 127 else 1 / 3 for each in text) for text in server.texts]
    assert max(tokens) <= 512
    assert {row.model for row in rows_of(agent)} == {MODEL}


def test_a_text_that_the_server_refuses_keeps_no_other_waiting(agent, server):
    saved = save_some(agent)
    server.refuses = (embedding_text(saved[7]),)

    job = embed()

    assert job.result == {"embedded": 39, "refused": 1}
    assert [row.pk for row in rows_of(agent) if not is_right(row)] == [saved[7].pk]
    server.refuses = ()
    assert embed().result == {"embedded": 1, "refused": 0}
