"""Vectors from an endpoint: all that were asked for, in order, or a failure; never a mixture."""

import threading
import time

import numpy as np
import pytest

from memory.llm import breaker, endpoint_embeddings
from memory.llm.embeddings import EmbeddingFailed
from memory.llm.endpoint_embeddings import EndpointEmbeddings
from memory.llm.http import Endpoint
from tests.memory import model_server
from tests.memory.model_server import failing, stalling, vector_of

TEXTS = ["Ming deploys on Fridays", "支付模块周五上线", "Bob drinks green tea", "c++ or rust?"]


def model_at(server, **options):
    endpoint = Endpoint(server.url, "BAAI/bge-m3", server.key, allows_private=True)
    return EndpointEmbeddings(endpoint, **options)


def is_vector_of(row, text):
    return np.allclose(row, vector_of(text), atol=1e-6)


def batches(server):
    return [len(asked.body["input"]) for asked in server.asked]


def test_each_text_gets_its_vector_in_batches(server):
    server.key = "k"
    model = model_at(server, batch=3)

    vectors = model.embed(TEXTS)

    assert vectors.dtype == np.float32
    assert all(map(is_vector_of, vectors, TEXTS))
    assert batches(server) == [3, 1]
    assert server.asked[0].body["model"] == model.model == "BAAI/bge-m3"
    assert server.asked[0].headers["authorization"] == "Bearer k"


def test_vectors_are_of_length_1_and_go_by_their_index(server, monkeypatch):
    monkeypatch.setattr(model_server, "vector_of", lambda text, _: [3.0 * len(text), 4.0])
    server.fault = model_server.backwards

    vectors = model_at(server).embed(["a", "bb"])

    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.allclose(vectors[0], [0.6, 0.8])
    assert vectors[1][0] > vectors[0][0]


ONE_IS_BAD = [
    model_server.short_batch, model_server.not_numbers, model_server.words_for_numbers,
    model_server.all_zero,
]  # fmt: skip
# asked one by one such a server is right
AS_BATCH_BAD = [model_server.same_index, model_server.wrong_dimension]
NO_ANSWER = [model_server.html_page, failing(503), failing(401), model_server.hanging_up]


@pytest.mark.parametrize("fault", ONE_IS_BAD + NO_ANSWER)
def test_an_answer_that_is_wrong_throughout_is_a_failure(server, fault):
    server.fault = fault

    with pytest.raises(EmbeddingFailed, match=r"127\.0\.0\.1"):
        model_at(server).embed(TEXTS)


@pytest.mark.parametrize("fault", ONE_IS_BAD + AS_BATCH_BAD)
def test_an_answer_that_is_wrong_once_loses_nothing(server, fault):
    server.script.append(fault)

    vectors = model_at(server).embed(TEXTS)

    assert all(map(is_vector_of, vectors, TEXTS))


def test_another_length_in_the_second_batch_is_a_failure(server):
    def grow(reply):
        server.dimension = 9
        return reply

    server.script.append(grow)

    with pytest.raises(EmbeddingFailed, match="length"):
        model_at(server, batch=2).embed(TEXTS)


def test_a_text_that_is_refused_spoils_no_others(server):
    server.refuses = (TEXTS[2],)

    vectors = model_at(server).embed([*TEXTS, "Ming is from Chengdu"])

    assert not vectors[2].any()
    kept = [place for place in range(5) if place != 2]
    assert all(
        is_vector_of(vectors[place], [*TEXTS, "Ming is from Chengdu"][place]) for place in kept
    )


def test_a_server_that_fails_at_a_text_is_no_outage(server):
    server.refuses = (TEXTS[0],)
    server.refusal = 500

    vectors = model_at(server).embed(TEXTS)

    assert not vectors[0].any()
    assert all(map(is_vector_of, vectors[1:], TEXTS[1:]))


def test_texts_without_words_block_nobody(server):
    vectors = model_at(server).embed(["", "---", " \n\t", TEXTS[0]])

    assert server.texts == ["---", TEXTS[0]]
    assert [row.any() for row in vectors] == [False, True, False, True]
    assert model_at(server).embed([" "]).shape == (1, 0)
    assert model_at(server).embed([]).shape == (0, 0)


def tokens(text):
    """As the tokenizer of bge-m3 counts, on the dear side: an ideograph 1, 3 letters 1."""
    return sum(1.0 if ord(character) > 127 else 1 / 3 for character in text)


def test_the_limits_of_a_provider_are_kept(server):
    """Field case C068: 10 texts at most, 512 tokens each, none empty."""
    server.max_batch = 10
    texts = [f"Ming's note {number}" for number in range(22)]
    texts += ["deploy " * 8_600, "支付模块周五上线" * 500, "---"]

    vectors = model_at(server, batch=10, max_tokens=512).embed(texts)

    assert max(batches(server)) == 10
    assert len(server.asked) == 3
    assert max(map(tokens, server.texts)) <= 512
    assert all(text.strip() for text in server.texts)
    assert vectors.any(axis=1).all()


def test_a_batch_that_is_too_large_is_learnt(server):
    server.max_batch = 10
    model = model_at(server, batch=32)
    texts = [f"note {number}" for number in range(32)]

    first = model.embed(texts)
    server.asked.clear()
    second = model.embed(texts)

    assert all(map(is_vector_of, first, texts))
    assert np.array_equal(first, second)
    assert max(batches(server)) <= 16
    model.embed(texts)
    server.asked.clear()
    model.embed(texts)
    assert max(batches(server)) <= 10


def test_a_text_longer_than_estimated_is_sent_shorter(server):
    server.max_chars = 100

    vectors = model_at(server).embed(["x" * 300, TEXTS[0]])

    assert is_vector_of(vectors[0], "x" * 75)
    assert is_vector_of(vectors[1], TEXTS[0])


def test_an_outage_asks_for_no_halves(server):
    server.fault = failing(401)

    with pytest.raises(EmbeddingFailed):
        model_at(server).embed([f"note {number}" for number in range(32)])

    assert len(server.asked) == 1


# --- somebody waits ---------------------------------------------------------------------


def test_a_question_waits_no_longer_than_it_may_and_the_next_not_at_all(server):
    server.fault = stalling()
    model = model_at(server)

    began = time.monotonic()
    for _ in range(20):
        with pytest.raises(EmbeddingFailed):
            model.embed(["deploys?"], seconds=0.3)
    assert time.monotonic() - began < 3
    assert len(server.asked) == 1


def test_after_a_while_one_question_looks_whether_it_is_well_again(server, monkeypatch):
    monkeypatch.setattr(breaker, "_FIRST_SECONDS", 0.2)
    server.fault = failing(401)
    model = model_at(server)
    with pytest.raises(EmbeddingFailed):
        model.embed(["deploys?"], seconds=1)
    time.sleep(0.25)
    server.fault = stalling(0.3)
    outcomes = []

    def ask():
        try:
            outcomes.append(model.embed(["deploys?"], seconds=5).shape)
        except EmbeddingFailed:
            outcomes.append(None)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes, key=str) == [(1, 64), None, None, None, None]
    server.fault = None
    assert model.embed(["deploys?"], seconds=1).any()


def test_what_a_worker_gets_opens_the_way_for_questions(server):
    model = model_at(server)
    server.fault = failing(401)
    with pytest.raises(EmbeddingFailed):
        model.embed(["deploys?"], seconds=1)
    server.fault = None

    model.embed(TEXTS)

    assert model.embed(["deploys?"], seconds=1).any()


def test_many_threads_share_one_client(server):
    model = model_at(server, batch=2)
    results = [None] * 8

    def run(place):
        results[place] = model.embed(TEXTS)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(np.array_equal(result, results[0]) for result in results)


def test_a_probe_tells_a_text_from_the_model(server):
    server.refuses = (endpoint_embeddings._PROBE, TEXTS[0])

    with pytest.raises(EmbeddingFailed, match="400"):
        model_at(server).embed(TEXTS)
