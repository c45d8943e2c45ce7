"""A model's server on loopback that speaks the real protocols, well or badly, as a test scripts it.

    with ModelServer() as server:
        server.fault = failing(503)        # every answer, until it is None again
        server.script += [busy(1), says("[2, 1]")]  # one answer each, before `fault` counts
        ...
        server.asked[-1].body["input"]

It embeds at /v1/embeddings and talks at /v1/chat/completions (OpenAI) and /v1/messages (Anthropic).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

DIMENSION = 64
HUGE = 64 * 1024 * 1024


@dataclass
class Asked:
    """A request that came in; header names are in small letters."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """What the chat was asked, system's part first."""
        parts = [self.body.get("system") or ""]
        parts += [message["content"] for message in self.body.get("messages", [])]
        return "\n".join(part for part in parts if part)


@dataclass
class Reply:
    """What goes out: headers at once, the body after `wait_seconds`, byte by byte if it drips."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait_seconds: float = 0.0
    drip_seconds: float = 0.0
    repeat: int = 1
    hangs_up: bool = False


Fault = Callable[[Reply], Reply]
"""Makes of the right reply the one that is sent."""


def json_reply(body: object, status: int = 200) -> Reply:
    return Reply(json.dumps(body).encode(), status, {"Content-Type": "application/json"})


def failing(status: int = 500) -> Fault:
    """An error of the server, with a body as OpenAI's."""
    return lambda _: json_reply({"error": {"message": f"scripted {status}"}}, status)


def busy(retry_after: object = 1) -> Fault:
    """429 with Retry-After, in seconds or as a date."""
    return lambda reply: dataclasses.replace(
        failing(429)(reply), headers={"Retry-After": str(retry_after)}
    )


def stalling(seconds: float = 60) -> Fault:
    """The answer waits; closing the server ends it."""
    return lambda reply: dataclasses.replace(reply, wait_seconds=seconds)


def dripping(seconds: float = 0.05) -> Fault:
    """A byte at a time, so that no single read is late."""
    return lambda reply: dataclasses.replace(reply, drip_seconds=seconds)


def redirecting(url: str) -> Fault:
    return lambda _: Reply(status=307, headers={"Location": url})


def html_page(_: Reply) -> Reply:
    """What a wrong address or a captive portal says, with 200."""
    return Reply(b"<!doctype html><title>Welcome</title>", 200, {"Content-Type": "text/html"})


def huge(_: Reply) -> Reply:
    return Reply(b" " * 65_536, 200, {"Content-Type": "application/json"}, repeat=HUGE // 65_536)


def hanging_up(reply: Reply) -> Reply:
    """The connection ends before an answer."""
    return dataclasses.replace(reply, hangs_up=True)


def _vectors(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Fault:
    def changed(reply: Reply) -> Reply:
        body = json.loads(reply.body)
        return json_reply({**body, "data": change(body["data"])})

    return changed


short_batch = _vectors(lambda data: data[:-1])
backwards = _vectors(lambda data: data[::-1])
"""In another order, told by `index`: not a fault."""
same_index = _vectors(lambda data: [{**row, "index": 0} for row in data])
wrong_dimension = _vectors(
    lambda data: [*data[:-1], {**data[-1], "embedding": data[-1]["embedding"][:-1]}]
)
not_numbers = _vectors(
    lambda data: [*data[:-1], {**data[-1], "embedding": [math.nan] * len(data[-1]["embedding"])}]
)
words_for_numbers = _vectors(lambda data: [{**row, "embedding": ["one", None]} for row in data])
all_zero = _vectors(
    lambda data: [*data[:-1], {**data[-1], "embedding": [0.0] * len(data[-1]["embedding"])}]
)


def says(text: str) -> Fault:
    """The chat model says `text`."""

    def changed(reply: Reply) -> Reply:
        body = json.loads(reply.body)
        if "choices" in body:
            body["choices"][0]["message"]["content"] = text
        else:
            body["content"] = [{"type": "text", "text": text}]
        return json_reply(body)

    return changed


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """Return a bag of letter pairs: texts that share words are near."""
    vector = [0.0] * dimension
    folded = f" {text.lower()} "
    for first, second in pairwise(folded):
        digest = hashlib.blake2b((first + second).encode(), digest_size=4).digest()
        vector[int.from_bytes(digest, "big") % dimension] += 1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


class ModelServer:
    """The server; a context manager. `stop` and `start` keep its port: an outage and its end.

    `max_batch`, `max_chars` and `key` are its limits: more, or another key, is an error 400 or 401.
    `refuses` are texts for which it refuses their whole batch, with the status `refusal`.
    """

    def __init__(
        self,
        *,
        dimension: int = DIMENSION,
        max_batch: int | None = None,
        max_chars: int | None = None,
        key: str = "",
        refuses: tuple[str, ...] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.dimension = dimension
        self.max_batch = max_batch
        self.max_chars = max_chars
        self.key = key
        self.refuses = refuses
        self.refusal = 400
        self.tls = tls
        self.asked: list[Asked] = []
        self.script: deque[Fault] = deque()
        self.fault: Fault | None = None
        self.chat_says = "[1]"
        self._closing = threading.Event()
        self._port = 0
        self._server: _Listener | None = None
        self.start()

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The base, without /v1."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def texts(self) -> list[str]:
        """Every text it was asked to embed, in order."""
        return [
            text
            for asked in self.asked
            if asked.path == "/v1/embeddings"
            for text in asked.body["input"]
        ]

    def start(self) -> None:
        """Listen, on the port of before if there was one."""
        self._closing.clear()
        self._server = _Listener(("127.0.0.1", self._port), partial(_Handler, self))
        self._port = self._server.server_address[1]
        if self.tls:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and end those that stall."""
        self._closing.set()
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server.cut_connections()
            self._server = None

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        reply = self._right_answer(asked)
        if reply.status != 200:
            return reply
        fault = self.script.popleft() if self.script else self.fault
        return fault(reply) if fault else reply

    def wait(self, seconds: float) -> bool:
        """Wait; whether the server was stopped meanwhile."""
        return self._closing.wait(seconds)

    def _right_answer(self, asked: Asked) -> Reply:
        sent = asked.headers.get("x-api-key") or asked.headers.get("authorization", "")
        if self.key and sent.removeprefix("Bearer ") != self.key:
            return json_reply({"error": {"message": f"bad key {sent}"}}, 401)
        if asked.path == "/v1/embeddings":
            return self._embeddings(asked.body)
        if asked.path == "/v1/chat/completions":
            message = {"role": "assistant", "content": self.chat_says}
            return json_reply(
                {
                    "object": "chat.completion",
                    "model": asked.body["model"],
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
                }
            )
        if asked.path == "/v1/messages":
            return json_reply(
                {
                    "type": "message",
                    "role": "assistant",
                    "model": asked.body["model"],
                    "content": [{"type": "text", "text": self.chat_says}],
                    "stop_reason": "end_turn",
                    "usage": {"input_tokens": 7, "output_tokens": 3},
                }
            )
        return json_reply({"error": {"message": f"no {asked.path}"}}, 404)

    def _embeddings(self, body: dict[str, Any]) -> Reply:
        texts = body["input"]
        if self.max_batch and len(texts) > self.max_batch:
            return json_reply({"error": {"message": f"at most {self.max_batch} inputs"}}, 400)
        if any(not text.strip() for text in texts):
            return json_reply({"error": {"message": "input cannot be an empty string"}}, 400)
        if self.max_chars and any(len(text) > self.max_chars for text in texts):
            return json_reply({"error": {"message": "input is too long"}}, 400)
        if any(text in self.refuses for text in texts):
            return json_reply({"error": {"message": "input is refused"}}, self.refusal)
        data = [
            {"object": "embedding", "index": index, "embedding": vector_of(text, self.dimension)}
            for index, text in enumerate(texts)
        ]
        return json_reply({"object": "list", "model": body["model"], "data": data})


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, *args: Any) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def cut_connections(self) -> None:
        """End what is kept alive: else an outage would not be one for clients with a pool."""
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, as those with a time-out do, is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # headers and body are two writes: else the second waits 40 ms for the first to be confirmed
    disable_nagle_algorithm = True

    def __init__(self, server: ModelServer, *args: Any) -> None:
        self.model_server = server
        super().__init__(*args)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.model_server.answer(Asked(self.path, headers, json.loads(body)))
        if reply.hangs_up or (reply.wait_seconds and self.model_server.wait(reply.wait_seconds)):
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body) * reply.repeat))
        self.end_headers()
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        if reply.drip_seconds:
            for position in range(len(reply.body)):
                self.wfile.write(reply.body[position : position + 1])
                if self.model_server.wait(reply.drip_seconds):
                    return
            return
        for _ in range(reply.repeat):
            self.wfile.write(reply.body)

    def log_message(self, *_: object) -> None:
        """Tests read `asked`."""
