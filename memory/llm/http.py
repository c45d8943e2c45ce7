"""JSON to a model's server and back: guarded, bounded in time and size, tried again."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memory.llm import addresses, failures
from memory.llm.failures import Failure, ModelFailed, Words

MAX_BYTES = 32 * 1024 * 1024
"""The largest answer that is read: 256 vectors of 4,096 numbers are about 23 MB of JSON."""
_RETRIED = {408, 425, 429, 500, 502, 503, 504, 529}
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 20.0
_SAID_CHARS = 200
_making = threading.Lock()
_VERSION = re.compile(r"v\d\w*")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model at an address. `obstacle` says why it may not be called, where it may not."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    allows_private: bool = False
    obstacle: Words = field(default="", compare=False)

    @property
    def host(self) -> str:
        """Return where it is, for people."""
        return urlsplit(self.url).netloc.rpartition("@")[2] or self.url

    def address(self, path: str) -> str:
        """Return the URL of one of its methods, whether or not the base names a version."""
        base = self.url.rstrip("/")
        if base.endswith(f"/{path}"):
            return base
        has_version = any(map(_VERSION.fullmatch, urlsplit(base).path.split("/")))
        return f"{base}/{path}" if has_version else f"{base}/v1/{path}"


def post(
    endpoint: Endpoint,
    path: str,
    body: Mapping[str, Any],
    *,
    headers: Mapping[str, str],
    seconds: float,
    retries: int = 2,
) -> Any:
    """Return the JSON that a method of `endpoint` answers to `body`, all within `seconds`.

    Tried again, with growing pauses, after a lost connection, 429 and 5xx, not after silence.
    Raises ModelFailed.
    """
    if endpoint.obstacle:
        raise ModelFailed(Failure.REFUSED, endpoint.obstacle)
    url = endpoint.address(path)
    addresses.check_form(url)
    until = time.monotonic() + seconds
    token = addresses.deadline.set(until)
    try:
        for tried in range(retries + 1):
            try:
                return _post_once(endpoint, url, body, headers, seconds)
            except _Again as again:
                pause = again.pause_seconds or _pause(tried)
                if tried == retries or time.monotonic() + pause >= until:
                    raise again.failure from again.__cause__
            time.sleep(pause)
    finally:
        addresses.deadline.reset(token)
    raise AssertionError("the last try returns or raises")


class _Again(Exception):
    """A failure that may be over in a moment."""

    def __init__(self, failure: ModelFailed, pause_seconds: float = 0.0) -> None:
        self.failure, self.pause_seconds = failure, pause_seconds
        super().__init__(failure)


def _post_once(
    endpoint: Endpoint,
    url: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    seconds: float,
) -> Any:
    sent = {"Content-Type": "application/json", "Accept-Encoding": "identity", **headers}
    # half a surrogate pair, which UTF-8 cannot hold, must not end a whole batch
    content = json.dumps(body, ensure_ascii=False).encode(errors="replace")
    try:
        with _client(endpoint.allows_private).stream(
            "POST", url, content=content, headers=sent, timeout=seconds
        ) as response:
            status, pause = response.status_code, _retry_after(response)
            text = _read(response, endpoint.host)
    except httpx.TimeoutException as error:
        raise failures.too_slow(endpoint.host, seconds) from error
    except httpx.InvalidURL as error:
        words = _("The address cannot be read; look for spaces and odd signs in it.")
        raise ModelFailed(Failure.REFUSED, words) from error
    except httpx.RequestError as error:
        raise _Again(failures.unreachable(endpoint.host)) from error
    if status in _RETRIED:
        failure = failures.of_status(status, endpoint.host, said=_said(text, endpoint.key))
        raise _Again(failure, pause)
    if status != 200:
        raise failures.of_status(status, endpoint.host, said=_said(text, endpoint.key))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        words = _("it is not JSON, so the address is perhaps that of a page, not of an API.")
        raise failures.unreadable(endpoint.host, words) from error


def _read(response: httpx.Response, host: str) -> bytes:
    chunks, size = [], 0
    for chunk in response.iter_bytes():
        size += len(chunk)
        if size > MAX_BYTES:
            raise failures.unreadable(host, _("it is larger than any answer of a model."))
        chunks.append(chunk)
    return b"".join(chunks)


def _said(text: bytes, key: str) -> str:
    """Return the message in an error's body, as OpenAI, Anthropic and their likes put it."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    for name in ("error", "message", "detail"):
        body = body.get(name, body) if isinstance(body, dict) else body
    said = " ".join(str(body).split())
    return (said.replace(key, "…") if key else said)[:_SAID_CHARS]


def _retry_after(response: httpx.Response) -> float:
    """Return the pause that the server asks for, in seconds; 0 where it asks for none."""
    asked = response.headers.get("Retry-After", "")
    try:
        seconds = float(asked)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(asked) - timezone.now()).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    return min(max(seconds, 0.0), _LONGEST_PAUSE_SECONDS) if seconds == seconds else 0.0


def _pause(tried: int) -> float:
    # spread, so that all who were refused at once do not come back at once
    return _FIRST_PAUSE_SECONDS * 2**tried * random.uniform(0.5, 1.5)  # noqa: S311


def _client(allows_private: bool) -> httpx.Client:
    """Return this process's client: connections are kept, redirects and proxies not followed."""
    # two threads at once would make two, one of which nobody closed
    with _making:
        return _make_client(allows_private)


@cache
def _make_client(allows_private: bool) -> httpx.Client:
    return httpx.Client(
        transport=_GuardedTransport(allows_private=allows_private),
        follow_redirects=False,
        trust_env=False,
        headers={"User-Agent": "hippo"},
    )


class _GuardedTransport(httpx.HTTPTransport):
    """httpx's own, over our network: it takes none by its signature, httpcore does."""

    def __init__(self, *, allows_private: bool) -> None:
        super().__init__()
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=64,
            max_keepalive_connections=8,
            keepalive_expiry=30,
            network_backend=addresses.GuardedNetwork(allows_private=allows_private),
        )
