"""OpenAI-compatible endpoints: known servers, their models, their addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx

from portal.domain.addresses import plain_address
from portal.domain.openai_protocol import DEFAULT_API_BASE, authorization
from portal.errors import ChatUnavailable, EndpointUnreachable, InvalidInput
from portal.event_loop import EventLoop
from portal.settings.base import http_address

_TIMEOUT_S = 5.0
_MAX_BYTES = 1024 * 1024
_MAX_MODELS = 500
_MAX_NAME_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Server:
    """A program that serves models, and its default address."""

    id: str
    name: str
    api_base: str


SERVERS = (
    Server("ollama", "Ollama", "http://localhost:11434/v1"),
    Server("vllm", "vLLM", "http://localhost:8000/v1"),
    Server("llama.cpp", "llama.cpp", "http://localhost:8080/v1"),
    Server("openai", "OpenAI", DEFAULT_API_BASE),
)


def check_address(value: str) -> str:
    """Return the address of an endpoint. Raises InvalidInput if it is invalid, link-local or
    multicast: clouds serve a machine's credentials at a link-local address."""
    try:
        address = http_address(value.strip()).rstrip("/")
        host, port = urlsplit(address).hostname, urlsplit(address).port or 80
    except ValueError as error:
        raise InvalidInput(
            "the address must begin with http:// or https://, and hold no user name or password"
        ) from error
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        # It may be reachable later; listing its models will show.
        return address
    for *_, (number, *_port) in found:
        ip = plain_address(ipaddress.ip_address(str(number).partition("%")[0]))
        if ip.is_link_local or ip.is_multicast or ip.is_unspecified:
            raise InvalidInput("the address leads to a link-local or multicast host")
    return address


def list_models(api_base: str, api_key: str | None) -> tuple[str, ...]:
    """Return the names of the models that an endpoint serves. Raises EndpointUnreachable and
    ChatUnavailable, whose message contains neither the key nor the endpoint's response."""
    headers = authorization(api_key or "")
    try:
        # In a loop of its own: the caller's thread may run one already.
        with closing(EventLoop("models", partial(httpx.AsyncClient, headers=headers))) as requests:
            loop, client = requests.running()
            download = _download(client, f"{api_base}/models")
            return _names(json.loads(asyncio.run_coroutine_threadsafe(download, loop).result()))
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        raise EndpointUnreachable(address=api_base) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ChatUnavailable("its endpoint sends no list of models") from error


async def _download(client: httpx.AsyncClient, address: str) -> bytes:
    body = bytearray()
    # httpx limits each read, which a slow server could repeat for ever.
    async with (
        asyncio.timeout(_TIMEOUT_S),
        client.stream("GET", address, timeout=_TIMEOUT_S) as response,
    ):
        if response.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise ChatUnavailable(
                "its endpoint refused the API key (%(status)s)", status=response.status_code
            )
        if not response.is_success:
            raise ChatUnavailable("its endpoint answered %(status)s", status=response.status_code)
        async for part in response.aiter_bytes():
            body += part
            if len(body) > _MAX_BYTES:
                raise ValueError("too long")
    return bytes(body)


def _names(listed: Any) -> tuple[str, ...]:
    names = (str(model["id"]) for model in listed["data"])
    usable = (one for one in names if one.isprintable() and 0 < len(one) <= _MAX_NAME_CHARACTERS)
    return tuple(sorted(dict.fromkeys(usable)))[:_MAX_MODELS]
