"""A model's server is called with patience that ends, and never where it must not be."""

import logging
import time

import pytest

from memory.llm import addresses, http
from memory.llm.failures import Failure, ModelFailed
from memory.llm.http import Endpoint
from tests.memory.model_server import (
    ModelServer,
    busy,
    dripping,
    failing,
    hanging_up,
    html_page,
    huge,
    redirecting,
    stalling,
)

BODY = {"model": "m", "input": ["Ming deploys on Fridays"]}
KEY = "sk-very-secret"


def ask(server, *, seconds=5.0, retries=2, key="", allows_private=True):
    endpoint = Endpoint(server if isinstance(server, str) else server.url, "m", key, allows_private)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return http.post(
        endpoint, "embeddings", BODY, headers=headers, seconds=seconds, retries=retries
    )


def failure(*args, **options):
    with pytest.raises(ModelFailed) as caught:
        ask(*args, **options)
    return caught.value


def test_an_answer_comes_back_as_json(server):
    assert len(ask(server)["data"]) == 1
    assert server.asked[0].path == "/v1/embeddings"


@pytest.mark.parametrize("fault", [failing(500), failing(503), failing(529), busy(0), hanging_up])
def test_what_may_be_over_in_a_moment_is_tried_again(server, fault):
    server.script += [fault, fault]

    assert len(ask(server)["data"]) == 1
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_will_not_change_is_not(server, status):
    server.fault = failing(status)

    error = failure(server)

    assert (error.kind, error.status, len(server.asked)) == (Failure.STATUS, status, 1)


def test_retry_after_is_kept_and_too_long_a_one_is_not_waited_for(server):
    server.script.append(busy("0.2"))
    began = time.monotonic()
    ask(server)
    assert time.monotonic() - began > 0.2

    server.fault = busy(3600)
    began = time.monotonic()
    assert failure(server).status == 429
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("fault", [stalling(), dripping(0.02)])
def test_no_call_takes_longer_than_it_may(server, fault):
    server.fault = fault
    began = time.monotonic()

    error = failure(server, seconds=0.8)

    assert error.kind == Failure.TIMEOUT
    assert time.monotonic() - began < 1.6  # three tries, if each had as long, took 2.4
    assert "0.8 s" in str(error)


def test_a_redirect_is_not_followed(server):
    with ModelServer() as other:
        server.fault = redirecting(f"{other.url}/v1/embeddings")

        error = failure(server)

        assert error.status == 307
        assert "redirects" in str(error)
        assert not other.asked


def test_a_body_without_end_is_not_read_to_it(server, monkeypatch):
    monkeypatch.setattr(http, "MAX_BYTES", 1_000_000)
    server.fault = huge

    assert failure(server).kind == Failure.UNREADABLE


def test_a_page_is_no_answer(server):
    server.fault = html_page

    error = failure(server)

    assert error.kind == Failure.UNREADABLE
    assert "not of an API" in str(error)


def test_a_server_that_is_gone_and_back_is_found_again(server):
    ask(server)
    server.stop()
    assert failure(server).kind == Failure.UNREACHABLE

    server.start()

    assert ask(server)


def test_no_key_is_in_an_error_or_a_log(server, caplog):
    caplog.set_level(logging.DEBUG)
    server.key = "another"
    refused = failure(server, key=KEY)
    server.stop()
    unreachable = failure(server, key=KEY)

    told = [*map(str, (refused, unreachable)), refused.said, repr(refused), caplog.text]
    told.append(repr(Endpoint(server.url, "m", KEY)))
    assert "bad key Bearer …" in refused.said
    assert not any(KEY in text for text in told)
    assert "Ming" not in caplog.text


@pytest.mark.parametrize(
    ("base", "address"),
    [
        ("https://h", "https://h/v1/embeddings"),
        ("https://h/", "https://h/v1/embeddings"),
        ("https://h/v1", "https://h/v1/embeddings"),
        ("https://h/v1/embeddings", "https://h/v1/embeddings"),
        ("https://h/api/paas/v4/", "https://h/api/paas/v4/embeddings"),
        ("https://h/v1beta/openai", "https://h/v1beta/openai/embeddings"),
        ("https://h/models", "https://h/models/v1/embeddings"),
    ],
)
def test_the_base_may_name_a_version_or_not(base, address):
    assert Endpoint(base, "m").address("embeddings") == address


# --- where nothing is sent (field case C047) --------------------------------------------

INTERNAL = [
    "http://127.0.0.1:{port}", "http://localhost:{port}/v1", "http://2130706433:{port}",
    "http://0x7f000001:{port}", "http://[::ffff:127.0.0.1]:{port}", "http://0.0.0.0:{port}/v1",
    "http://169.254.169.254/v1", "http://2852039166/v1", "http://0xA9FEA9FE/v1",
    "http://[::ffff:169.254.169.254]/v1", "http://100.64.0.1/v1", "http://10.0.0.5/v1",
    "http://[64:ff9b::a00:5]/v1", "http://[2002:a00:5::]/v1", "http://[fd00::1]/v1",
    "http://[fe80::1]/v1", "http://[::]/v1", "http://224.0.0.1/v1", "http://192.168.1.1/v1",
    "https://public.example@10.0.0.5/v1", "http://u:p@h/v1", "file:///x", "ftp://h/x",
    "javascript:1", "h/v1", "http://", "http://h:99999/v1", "http://a b/v1",
]  # fmt: skip


@pytest.mark.parametrize("url", INTERNAL)
def test_no_address_of_the_own_network_is_called(server, url):
    url = url.format(port=server.url.rpartition(":")[2])

    error = failure(url, allows_private=False, seconds=1, retries=0)

    assert error.kind in {Failure.REFUSED, Failure.UNREACHABLE}
    if error.kind == Failure.UNREACHABLE:
        assert url == "http://a b/v1"
    else:
        with pytest.raises(ModelFailed):
            addresses.check_url(url, allows_private=False)
    assert not server.asked


@pytest.mark.parametrize("address", ["169.254.169.254", "0.0.0.0", "::", "fe80::1", "240.0.0.1"])
def test_where_no_model_can_be_is_refused_even_if_private_ones_are_allowed(address):
    with pytest.raises(ModelFailed, match="no model can be"):
        addresses.check_addresses("h", [address], allows_private=True)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07::1", "64:ff9b::808:808"])
def test_public_addresses_are_called(address):
    addresses.check_addresses("h", [address], allows_private=False)


def test_one_private_address_among_public_ones_is_enough():
    with pytest.raises(ModelFailed, match="MODEL_PRIVATE_ADDRESSES"):
        addresses.check_addresses("h", ["93.184.215.14", "10.0.0.1"], allows_private=False)


def test_a_name_that_changes_its_address_after_the_check_leads_nowhere(server, monkeypatch):
    """The DNS that rebinds: public when it is looked at, this machine when it is connected to."""
    port = int(server.url.rpartition(":")[2])
    answers = iter(["93.184.215.14", "127.0.0.1", "127.0.0.1"])
    monkeypatch.setattr(
        addresses.socket,
        "getaddrinfo",
        lambda host, port, **_: [(2, 1, 6, "", (next(answers), port))],
    )
    url = f"http://model.example:{port}"
    addresses.check_url(url, allows_private=False)

    error = failure(url, allows_private=False)

    assert error.kind == Failure.REFUSED
    assert "127.0.0.1" in str(error)
    assert not server.asked


def test_a_dns_that_is_silent_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(addresses.socket, "getaddrinfo", lambda *_, **__: time.sleep(2) or [])
    began = time.monotonic()

    assert failure("http://model.example", seconds=0.2).kind == Failure.TIMEOUT
    assert time.monotonic() - began < 1.5


def test_the_first_address_that_answers_is_taken(server, monkeypatch):
    port = int(server.url.rpartition(":")[2])
    rows = [(2, 1, 6, "", (address, port)) for address in ("127.0.0.2", "127.0.0.1")]
    monkeypatch.setattr(addresses.socket, "getaddrinfo", lambda *_, **__: rows)

    assert ask(f"http://model.example:{port}")
    assert server.asked[0].headers["host"] == f"model.example:{port}"


def test_half_a_surrogate_pair_breaks_nothing(server):
    endpoint = Endpoint(server.url, "m", "", True)

    http.post(
        endpoint, "embeddings", {"model": "m", "input": ["a\ud800 明"]}, headers={}, seconds=5
    )

    assert server.texts == ["a? 明"]
