"""Serve the tools over standard input and output, or over HTTP."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
import uvicorn
from anyio.lowlevel import EventLoopToken, current_token
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from portal.domain.people import Scope
from portal.errors import NotSignedIn, PortalError
from portal.integrations.mcp.tools import VERIFIED_AT_ONCE, create_server, reader
from portal.services import Services
from portal.services.people import tokens

PATH = "/mcp"

_STOPPED_BY = (signal.SIGINT, signal.SIGTERM)
_DRAIN_TIMEOUT_S = 10
# The longest query takes a tenth of it.
_MAX_REQUEST_BYTES = 256 * 1024
_OUR_NAMES = ("127.0.0.1", "localhost", "[::1]")


def serve_stdio(services: Services, token: str) -> None:
    """Serve one program over standard input and output, as the token's user, until it closes them
    or a signal arrives. Before that, raises what `reader` raises."""
    reader(services, token)
    _quieten()
    anyio.run(_serve_stdio, create_server(services, lambda: token))


def serve_http(services: Services, listener: socket.socket, allowed_hosts: Iterable[str]) -> None:
    """Serve requests with tokens on a bound socket until a signal arrives. `allowed_hosts` are Host
    names to accept beside this machine's and the portal's."""
    _quieten()
    security = _security([_public_name(services), *_bound_names(listener), *allowed_hosts])
    anyio.run(_serve_http, web_app(services, security), listener)


def _quieten() -> None:
    # At level debug these loggers repeat messages that they could not parse, and at info they log
    # every request.
    for name in ("mcp", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)


# --- standard input and output --------------------------------------------------------------------


async def _serve_stdio(server: Server[Any]) -> None:
    with anyio.open_signal_receiver(*_STOPPED_BY) as signals:
        async with anyio.create_task_group() as tasks:

            async def stop_at_signal() -> None:
                async for _number in signals:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(stop_at_signal)
            # Any iterator of lines works, though the signature asks for more.
            async with stdio_server(stdin=cast("Any", _input_lines())) as (messages, answers):
                await server.run(messages, answers, server.create_initialization_options())
            tasks.cancel_scope.cancel()


async def _input_lines() -> AsyncIterator[str]:
    """Yield lines of standard input, read by a daemon thread: a signal would not interrupt it."""
    sending, receiving = anyio.create_memory_object_stream[str]()
    arguments = (sending, current_token())
    threading.Thread(target=_forward_input, args=arguments, daemon=True).start()
    async with receiving:
        async for line in receiving:
            yield line


def _forward_input(sending: MemoryObjectSendStream[str], loop: EventLoopToken) -> None:
    # Use a file of our own: at exit Python would wait for the lock of sys.stdin.
    with (
        suppress(anyio.BrokenResourceError, RuntimeError),
        os.fdopen(os.dup(0), encoding="utf-8", errors="replace") as lines,
    ):
        for line in lines:
            anyio.from_thread.run(sending.send, line, token=loop)
        anyio.from_thread.run_sync(sending.close, token=loop)


# --- HTTP -----------------------------------------------------------------------------------------


class _Tokens:
    """Verifies tokens as the rest of the portal does."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._at_once = anyio.CapacityLimiter(VERIFIED_AT_ONCE)

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            found = await anyio.to_thread.run_sync(
                tokens.authenticate, self._services, token, limiter=self._at_once
            )
        except NotSignedIn:
            return None
        if found.must_enrol:
            return None
        scopes = [scope.value for scope in found.scopes]
        return AccessToken(token=token, client_id=str(found.token_id), scopes=scopes)


def _token_of_request() -> str:
    found = get_access_token()
    return found.token if found else ""


def web_app(services: Services, security: TransportSecuritySettings) -> Starlette:
    """Return the app that serves the tools at `PATH`; 401 and 403 without a token that may read."""
    server = create_server(services, _token_of_request)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        # There is no state between requests: each has its token, and any process can respond.
        stateless_http=True,
        max_request_body_size=_MAX_REQUEST_BYTES,
        transport_security=security,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(services.settings.public_url),
            resource_server_url=None,
            required_scopes=[Scope.READ.value],
        ),
        token_verifier=_Tokens(services),
    )
    for route in app.routes:
        # There is nothing to listen to with GET, and no session to end with DELETE.
        if isinstance(route, Route) and route.path == PATH:
            route.methods = {"POST"}
    app.add_exception_handler(Exception, _answer_error)
    return app


def _answer_error(_request: Request, error: Exception) -> JSONResponse:
    """Respond if a token could not be checked, for example because the database is down."""
    known = error if isinstance(error, PortalError) else PortalError()
    body = {"error": {"code": known.code, "message": str(known)}}
    wait_s = known.retry_after_s
    headers = {} if wait_s is None else {"Retry-After": str(wait_s)}
    return JSONResponse(body, status_code=known.status, headers=headers)


def _security(names: Iterable[str]) -> TransportSecuritySettings:
    """Accept only requests to our own host names: with DNS rebinding, a foreign page sends its
    own."""
    known = list(dict.fromkeys([*_OUR_NAMES, *names]))
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in known]
    return TransportSecuritySettings(
        allowed_hosts=[*known, *(f"{name}:*" for name in known)],
        allowed_origins=[*origins, *(f"{origin}:*" for origin in origins)],
    )


def _public_name(services: Services) -> str:
    return _as_host(urlsplit(services.settings.public_url).hostname or "")


def _bound_names(listener: socket.socket) -> list[str]:
    """Return the address that we listen on, unless that is all of them."""
    address = listener.getsockname()[0]
    return [] if ipaddress.ip_address(address).is_unspecified else [_as_host(address)]


def _as_host(name: str) -> str:
    return f"[{name}]" if ":" in name else name


async def _serve_http(app: Starlette, listener: socket.socket) -> None:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # Any client may send them; `tools.py` reads those of our proxies.
        timeout_graceful_shutdown=_DRAIN_TIMEOUT_S,
    )
    # uvicorn raises the signal again to end the process; we ignore it, since the process ends
    # anyway.
    with anyio.open_signal_receiver(*_STOPPED_BY):
        await uvicorn.Server(config).serve(sockets=[listener])
