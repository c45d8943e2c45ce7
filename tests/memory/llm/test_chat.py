"""A chat model is asked in its protocol and fails in words."""

import time

import pytest

from memory.llm.chat import Chat, Protocol
from memory.llm.failures import Failure, ModelFailed
from memory.llm.http import Endpoint
from memory.llm.prompts import PICKED, Prompt
from tests.memory.model_server import ModelServer, failing, html_page, json_reply, says, stalling

PROMPT = Prompt("You pick.", "When does Ming deploy?", max_tokens=50)
BOTH = pytest.mark.parametrize("protocol", list(Protocol))


@pytest.fixture
def server():
    with ModelServer(key="k") as server:
        yield server


def chat_at(server, protocol):
    return Chat(Endpoint(server.url, "m", server.key, allows_private=True), protocol)


@BOTH
def test_each_protocol_is_spoken(server, protocol):
    server.chat_says = "On Fridays."

    assert chat_at(server, protocol).ask(PROMPT, seconds=5) == "On Fridays."
    [asked] = server.asked
    assert asked.prompt == "You pick.\nWhen does Ming deploy?"
    assert (asked.body["model"], asked.body["max_tokens"]) == ("m", 50)
    if protocol == Protocol.ANTHROPIC:
        assert asked.path == "/v1/messages"
        assert asked.headers["anthropic-version"] == "2023-06-01"
        assert asked.headers["x-api-key"] == "k"
        assert "authorization" not in asked.headers
    else:
        assert asked.path == "/v1/chat/completions"
        assert asked.headers["authorization"] == "Bearer k"


@BOTH
def test_json_is_taken_out_of_what_it_says(server, protocol):
    server.script.append(says('Here:\n```json\n{"picked": [2, 1],}\n```'))

    assert chat_at(server, protocol).ask_json(PROMPT, PICKED, seconds=5) == {"picked": [2, 1]}


@BOTH
@pytest.mark.parametrize("fault", [says("I like them all."), says(""), html_page])
def test_what_is_no_answer_is_a_failure(server, protocol, fault):
    server.fault = fault

    with pytest.raises(ModelFailed) as caught:
        chat_at(server, protocol).ask_json(PROMPT, PICKED, seconds=5)

    assert caught.value.kind == Failure.UNREADABLE


@BOTH
def test_a_model_that_takes_no_sampling_is_asked_without(server, protocol):
    def strict(reply):
        refused = {"error": {"message": "temperature is not supported"}}
        return json_reply(refused, 400) if "temperature" in server.asked[-1].body else reply

    server.fault = strict
    chat = chat_at(server, protocol)

    assert chat.ask(PROMPT, seconds=5)
    assert chat.ask(PROMPT, seconds=5)
    assert len(server.asked) == 3
    assert ("max_tokens" in server.asked[-1].body) == (protocol == Protocol.ANTHROPIC)


def test_a_request_that_is_wrong_otherwise_is_said_so(server):
    server.fault = failing(400)
    chat = chat_at(server, Protocol.OPENAI)

    with pytest.raises(ModelFailed) as caught:
        chat.ask(PROMPT, seconds=5)

    assert caught.value.status == 400
    assert caught.value.said == "scripted 400"


def test_while_it_is_down_nobody_waits_for_it_again(server):
    server.fault = stalling()
    chat = chat_at(server, Protocol.OPENAI)
    began = time.monotonic()

    for _ in range(5):
        with pytest.raises(ModelFailed):
            chat.ask(PROMPT, seconds=0.5)

    assert time.monotonic() - began < 2
    assert len(server.asked) == 1


def test_thoughts_of_another_type_are_left_out(server):
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Fridays"}]
    server.fault = lambda _: json_reply({"content": parts})

    assert chat_at(server, Protocol.ANTHROPIC).ask(PROMPT, seconds=5) == "Fridays"
