"""Accepted host names, and the public address that links begin with.

Clients choose the Host header. Unknown names are refused, so that no link or cached page contains a
name chosen by a client, and no web site can read a portal on a private network by pointing its own
name there (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
from functools import lru_cache
from typing import cast
from urllib.parse import urlsplit

from flask import current_app, request
from werkzeug.sansio.utils import host_is_trusted

from portal.errors import UntrustedHost
from portal.settings import Settings

_LOCAL_NAMES = ("localhost", ".localhost", "127.0.0.1", "::1")
# Load balancers use any address for it. Its responses do not depend on the name.
_ANY_HOST = "/health"
_MAX_SHOWN_CHARACTERS = 100


def check_host() -> None:
    """Raise UntrustedHost for a host that is not trusted. Requests without a Host header, as in
    HTTP/1.0, are allowed."""
    host = request.environ.get("HTTP_HOST")
    if host is None or request.path.startswith(_ANY_HOST):
        return
    name = _host_name(host)
    if name is None or not (
        _matches(name, _trusted_names(_settings())) or name == _local_address()
    ):
        raise UntrustedHost(host=host[:_MAX_SHOWN_CHARACTERS])


def public_url() -> str:
    """Return the portal's address, without a trailing slash, for links that are sent elsewhere.

    If PORTAL_PUBLIC_URL is not set, this is the address that the request came to.
    """
    settings = _settings()
    if settings.has_public_url:
        return settings.public_url
    return request.url_root.rstrip("/")


def external_url(path: str) -> str:
    """Return the absolute address of a path from `url_for`."""
    return public_url() + path.removeprefix(request.script_root)


def _settings() -> Settings:
    # Not from `context`, which imports this module.
    return cast("Settings", current_app.extensions["portal"].settings)


def _trusted_names(settings: Settings) -> tuple[str, ...]:
    public = urlsplit(settings.public_url).hostname or ""
    return (*_LOCAL_NAMES, public.lower(), *settings.trusted_hosts)


def _matches(name: str, trusted: tuple[str, ...]) -> bool:
    return any(
        name.endswith(host) if host.startswith(".") else name == host.removesuffix(".")
        for host in trusted
    )


@lru_cache(maxsize=256)
def _host_name(host: str) -> str | None:
    """Return the normalised name or address in a Host header; None if it is not valid."""
    host = host.lower()
    if not host_is_trusted(host):
        return None
    name = urlsplit(f"//{host}").hostname or ""
    return _spell_address(name) or name.removesuffix(".")


def _local_address() -> str | None:
    """Return the address of this machine that the connection came to; None for a Unix socket."""
    connection = request.environ.get("gunicorn.socket")
    try:
        address = cast("socket.socket", connection).getsockname()
    except (AttributeError, OSError):
        return None
    return _spell_address(address[0]) if isinstance(address, tuple) else None


def _spell_address(text: str) -> str | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)
