"""Allowed addresses of web sources, and connections to those only.

An address is checked where the connection is made: the name is resolved once, each of its addresses
is checked, and the connection goes to one of them. So a name that resolves differently a moment
later cannot lead elsewhere.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

import httpcore
import httpx

from portal.domain.addresses import DEFAULT_PORTS, Address, plain_address
from portal.errors import N_, InvalidInput, PageUnavailable
from portal.settings import Settings
from portal.settings.smaller_sections import Network, SourceSettings

Resolver = Callable[[str, int], Sequence[Address]]

MAX_URL_CHARACTERS = 1000
_PATTERN = re.compile(r"(?P<host>\[[^\]]+\]|[^:]+)(?::(?P<port>\d+))?")
# Not public, although some versions of Python say so.
_SPECIAL: tuple[Network, ...] = (
    IPv4Network("192.0.0.0/24"),
    IPv6Network("64:ff9b:1::/48"),
    IPv6Network("fec0::/10"),
)
# One reason for both cases: otherwise users could list the names of a private network.
_NO_HOST = N_("its host was not found, or its address is not public")


def check_url(settings: SourceSettings, text: str, base: httpx.URL | None = None) -> httpx.URL:
    """Return an address that may be requested, without its fragment. Raises PageUnavailable for
    another scheme than http and https, for a name or password in it, and for a host or port that
    the operator does not allow."""
    if not text.strip():  # The result would be `base`.
        raise PageUnavailable("it is not a web address")
    try:
        url = base.join(text.strip()) if base else httpx.URL(text.strip())
        url = url.copy_with(fragment=None)
        host = url.host
    except (httpx.InvalidURL, UnicodeError, ValueError, TypeError) as error:
        raise PageUnavailable("it is not a web address") from error
    if url.scheme not in DEFAULT_PORTS or not host:
        raise PageUnavailable("a web address begins with http:// or https://")
    if url.userinfo:
        raise PageUnavailable("its address contains a name or password")
    if len(str(url)) > MAX_URL_CHARACTERS:
        raise PageUnavailable(
            "its address has more than %(max)s characters", max=MAX_URL_CHARACTERS
        )
    port = url.port or DEFAULT_PORTS[url.scheme]
    if not any(_matches(pattern, host.rstrip("."), port) for pattern in settings.hosts):
        raise PageUnavailable(
            "the operator of this server does not allow the host %(host)s", host=url.netloc.decode()
        )
    literal = _literal(host)
    if literal is not None and not is_allowed(literal, settings.private_networks):
        raise PageUnavailable(_NO_HOST)
    return url


def check_source(settings: SourceSettings, text: str) -> httpx.URL:
    """Return the address of a source. Raises InvalidInput for one that may not be requested."""
    try:
        return check_url(settings, text)
    except PageUnavailable as error:
        # A list has many addresses: say which one is refused.
        reason = N_("%(address)s: %(reason)s", address=text.strip(), reason=error.reason)
        raise InvalidInput(reason) from error


def allowed_hosts(settings: Settings) -> str:
    return ", ".join(settings.sources.hosts)


def is_allowed(address: Address, networks: Iterable[Network]) -> bool:
    """Return whether an address is public, or in a network that the operator allows. IPv4 addresses
    inside IPv6 ones are checked as IPv4. Link-local addresses, where clouds serve the credentials
    of a machine, and multicast and unspecified ones are never allowed."""
    plain = plain_address(address)
    if plain.is_link_local or plain.is_multicast or plain.is_unspecified:
        return False
    if any(plain in network for network in networks):
        return True
    if any(plain in network for network in _SPECIAL):
        return False
    if isinstance(plain, IPv6Address) and (plain.sixtofour or plain.teredo):
        return False
    return plain.is_global and not plain.is_reserved


class CheckedNetwork(httpcore.NetworkBackend):
    """Connects only to allowed addresses, until the deadline that `allow` sets."""

    def __init__(self, networks: Sequence[Network], resolve: Resolver | None = None) -> None:
        self._networks = networks
        self._resolve = resolve or resolve_host
        self._sockets = httpcore.SyncBackend()
        self._ends_at = 0.0

    def allow(self, seconds: float) -> None:
        """Set the deadline of all further steps to `seconds` from now."""
        self._ends_at = time.monotonic() + seconds

    def remaining_s(self, timeout_s: float | None = None) -> float:
        """Return how long one step may take. Raises httpcore.TimeoutException."""
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left if timeout_s is None else min(left, timeout_s)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to a host. Raises PageUnavailable if any of its addresses is not allowed."""
        try:
            addresses = self._resolve(host, port)
        except (OSError, UnicodeError, ValueError) as error:
            raise PageUnavailable(_NO_HOST) from error
        if not addresses or not all(is_allowed(one, self._networks) for one in addresses):
            raise PageUnavailable(_NO_HOST)
        failure: Exception = httpcore.ConnectError()
        for address in addresses:
            try:
                stream = self._sockets.connect_tcp(
                    str(address), port, self.remaining_s(timeout), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _TimedStream(stream, self)
        raise failure


class _TimedStream(httpcore.NetworkStream):
    """A connection with one deadline for all steps: with a timeout for each, a server could go on
    forever, a byte at a time."""

    def __init__(self, stream: httpcore.NetworkStream, network: CheckedNetwork) -> None:
        self._stream, self._network = stream, network

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._network.remaining_s(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._network.remaining_s(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left_s = self._network.remaining_s(timeout)
        inner = self._stream.start_tls(ssl_context, server_hostname, left_s)
        return _TimedStream(inner, self._network)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def resolve_host(host: str, port: int) -> Sequence[Address]:
    """Return the addresses of a host. Raises OSError, UnicodeError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(str(where[0])) for *_, where in found]


def _matches(pattern: str, host: str, port: int) -> bool:
    parts = _PATTERN.fullmatch(pattern)
    if parts is None:
        return False
    name = parts["host"].strip("[]").lower()
    ports = {int(parts["port"])} if parts["port"] else set(DEFAULT_PORTS.values())
    is_named = name in ("*", host) or (name.startswith("*.") and host.endswith(name[1:]))
    return is_named and port in ports


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
