"""Which addresses may be called: a URL that somebody typed must not lead into the own network.

What is checked is what is connected to: the name is looked up once, here, so that an answer of
the DNS that changes in between (DNS rebinding) leads nowhere.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from contextvars import ContextVar
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import urlsplit

import httpcore
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from memory.llm.failures import Failure, ModelFailed

Address = IPv4Address | IPv6Address
deadline: ContextVar[float] = ContextVar("deadline")
"""When all of the present call must be over, by `time.monotonic`."""

_NAT64 = IPv6Network("64:ff9b::/96")
_LOOK_UP_SECONDS = 2.0


def check_url(url: str, *, allows_private: bool) -> None:
    """Raise ModelFailed unless `url` may be called, as far as can be known before.

    A name that the DNS does not know now may be known later, and is checked again then.
    """
    host, port = check_form(url)
    try:
        found = look_up(host, port, _LOOK_UP_SECONDS)
    except (httpcore.NetworkError, httpcore.TimeoutException):
        return
    check_addresses(host, found, allows_private=allows_private)


def check_form(url: str) -> tuple[str, int]:
    """Return host and port of a URL that can be called. Raises ModelFailed."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or {"https": 443}.get(parts.scheme, 80)
    except ValueError:
        parts, host, port = urlsplit(""), None, 0
    if parts.scheme not in {"http", "https"} or not host:
        raise _refused(_("An address begins with https:// or http:// and a host name."))
    if parts.username is not None or parts.password is not None:
        raise _refused(_("An address holds no user and no password; the key has its own field."))
    return host, port


def check_addresses(host: str, found: Iterable[str], *, allows_private: bool) -> None:
    """Raise ModelFailed if any of the addresses of `host` may not be called."""
    for text in found:
        address = _plain(ip_address(text.partition("%")[0]))
        if _is_nobodys(address):
            words = _("{host} leads to {address}, where no model can be; give its own address.")
            raise _refused(format_lazy(words, host=host, address=str(address)))
        if not allows_private and not address.is_global:
            words = _(
                "{host} leads to the private address {address}, which may not be called; if a "
                "model runs there, set MODEL_PRIVATE_ADDRESSES=true and start Hippo again."
            )
            raise _refused(format_lazy(words, host=host, address=str(address)))


def look_up(host: str, port: int, seconds: float) -> list[str]:
    """Return the addresses of a host in the order of the system, each once.

    Raises httpcore.ConnectError, and ConnectTimeout after `seconds`: the system's own
    patience with a DNS that is silent is many times that.
    """
    answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put(list(dict.fromkeys(str(row[4][0]) for row in rows)))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=ask, name="look-up", daemon=True).start()
    try:
        answer = answers.get(timeout=max(seconds, 0.001))
    except queue.Empty:
        raise httpcore.ConnectTimeout from None
    if isinstance(answer, Exception):
        raise httpcore.ConnectError(str(answer)) from answer
    return answer


class GuardedNetwork(httpcore.NetworkBackend):
    """Connects to addresses that were checked, and keeps the deadline of the whole call.

    TLS is httpcore's own and goes by the host's name, not by the address.
    """

    def __init__(self, *, allows_private: bool) -> None:
        self._allows_private = allows_private
        self._network = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of `host` that answers; none may be forbidden."""
        found = look_up(host, port, time_left(timeout, httpcore.ConnectTimeout))
        check_addresses(host, found, allows_private=self._allows_private)
        for number, address in enumerate(found, start=1):
            # one address that is silent must leave time for the others
            seconds = time_left(timeout, httpcore.ConnectTimeout) / (len(found) - number + 1)
            try:
                stream = self._network.connect_tcp(
                    address, port, seconds, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == len(found):
                    raise
            else:
                return _TimedStream(stream)
        raise httpcore.ConnectError(f"{host} has no address")


class _TimedStream(httpcore.NetworkStream):
    """A connection whose every step ends at the deadline: a server that drips gains nothing."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, time_left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, time_left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = time_left(timeout, httpcore.ConnectTimeout)
        return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def time_left(timeout: float | None, error: type[Exception]) -> float:
    """Return the seconds for the next step; raises `error` where there are none."""
    left = deadline.get() - time.monotonic()
    if left <= 0:
        raise error
    return left if timeout is None else min(left, timeout)


def _plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one stands for, else itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_nobodys(address: Address) -> bool:
    """Whether no server of a model has the address: the cloud's metadata are at such a one."""
    return (
        address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or (address.is_reserved and not address.is_loopback)
    )


def _refused(words: Any) -> ModelFailed:
    return ModelFailed(Failure.REFUSED, words)
