"""The scripted server itself: what other tests lean on."""

from __future__ import annotations

import httpx
import pytest

from tests.memory.model_server import ModelServer, failing, says, short_batch, vector_of


def test_it_embeds_talks_and_errs_as_scripted():
    with ModelServer(max_batch=2, key="s3cret") as server, httpx.Client() as client:
        client.headers["Authorization"] = "Bearer s3cret"
        embeddings = f"{server.url}/v1/embeddings"
        server.script += [failing(503), short_batch]
        body = {"model": "m", "input": ["Ming deploys", "on Fridays"]}

        answers = [client.post(embeddings, json=body) for _ in range(3)]
        many = client.post(embeddings, json={"model": "m", "input": ["a", "b", "c"]})
        server.script.append(says("[2]"))
        talk = client.post(f"{server.url}/v1/messages", json={"model": "m", "messages": []})

        assert [answer.status_code for answer in answers] == [503, 200, 200]
        assert [len(answer.json()["data"]) for answer in answers[1:]] == [1, 2]
        assert answers[2].json()["data"][0]["embedding"] == vector_of("Ming deploys")
        assert many.status_code == 400
        assert talk.json()["content"][0]["text"] == "[2]"
        assert (
            client.post(embeddings, json=body, headers={"Authorization": "no"}).status_code == 401
        )


def test_it_goes_and_comes_back_on_its_port():
    with ModelServer() as server, httpx.Client() as client:
        client.post(f"{server.url}/v1/embeddings", json={"model": "m", "input": ["a"]})

        server.stop()
        with pytest.raises(httpx.TransportError):
            client.post(f"{server.url}/v1/embeddings", json={"model": "m", "input": ["a"]})

        server.start()

        answer = client.post(f"{server.url}/v1/embeddings", json={"model": "m", "input": ["a"]})
        assert answer.status_code == 200
