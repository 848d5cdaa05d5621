"""Describe the two tools in the protocol's terms, and call them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import anyio
import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel, ValidationError

from portal.domain.people import Scope, User
from portal.domain.people.audit import Origin, Source
from portal.errors import (
    InsufficientScope,
    InvalidInput,
    PortalError,
    SecondFactorEnrolmentRequired,
    verbatim,
)
from portal.integrations.mcp.documents import (
    FetchArguments,
    FetchedDocument,
    SearchArguments,
    SearchResults,
    fetch,
    search,
)
from portal.limits.calls import CallLimits
from portal.services import Services, audit
from portal.services.people import tokens

log = structlog.get_logger(__name__)

_INSTRUCTIONS = (
    "A knowledge portal with an organisation's own documents. Search for documents first, then "
    "fetch the ones that matter to read them whole, and cite their url."
)
# Tokens of requests are verified in parallel to the calls, on connections reserved for that.
VERIFIED_AT_ONCE = 2
# Neither tool changes anything, and both access nothing but the portal's documents.
_HINTS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


@dataclass(frozen=True, slots=True)
class _ToolSpec:
    """A tool: its description, its function, and the field of RateLimitSettings that limits it."""

    title: str
    description: str
    arguments: type[BaseModel]
    result: type[BaseModel]
    run: Callable[[Services, User, Any], BaseModel]
    limit: str


_TOOLS = {
    "search": _ToolSpec(
        title="Search the portal",
        description="Find documents in the knowledge portal, by meaning and by words, in Chinese "
        "and English. Answers id, title and url of each, best first; read one with fetch.",
        arguments=SearchArguments,
        result=SearchResults,
        run=search,
        limit="search_hybrid",
    ),
    "fetch": _ToolSpec(
        title="Read a document",
        description="Read a document that search found: its text, its url for citing, and what is "
        "known of it. Of a very long one, the part around what was found.",
        arguments=FetchArguments,
        result=FetchedDocument,
        run=fetch,
        limit="get_chunk",
    ),
}


def create_server(services: Services, read_token: Callable[[], str]) -> Server[Any]:
    """Return a server of both tools, for the user of the current token.

    `read_token` is called for each call of a tool, so that a revoked token stops working.
    """
    # One per database connection: more calls would only wait for one.
    connections = services.settings.database_pool_size - VERIFIED_AT_ONCE
    at_once = anyio.CapacityLimiter(max(1, connections))
    limits = CallLimits(services)

    async def list_tools(
        _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_describe(name, tool) for name, tool in _TOOLS.items()])

    async def call_tool(
        context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        tool = _TOOLS.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, "There is no such tool. There are: search, fetch.")
        arguments = params.arguments or {}
        called = partial(_call, services, limits, params.name, tool)
        hops = services.settings.trusted_proxies
        origin = _origin_of(context.request, trusted_proxies=hops)
        call = partial(called, origin=origin, token=read_token(), arguments=arguments)
        return await anyio.to_thread.run_sync(call, limiter=at_once)

    return Server(
        "knowledge-portal",
        title="Knowledge portal",
        version=version("knowledge-portal"),
        instructions=_INSTRUCTIONS,
        website_url=services.settings.public_url,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _describe(name: str, tool: _ToolSpec) -> Tool:
    return Tool(
        name=name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.arguments.model_json_schema(),
        output_schema=tool.result.model_json_schema(),
        annotations=_HINTS,
    )


def _origin_of(request: Any, *, trusted_proxies: int) -> Origin | None:
    """Return where a call comes from for the audit log: an HTTP request, or None for the program
    that started this one."""
    if request is None:
        return None
    address = request.client.host if request.client else None
    # Entries further to the left were sent by the client itself.
    forwarded = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
    if 0 < trusted_proxies <= len(forwarded):
        address = forwarded[-trusted_proxies].strip() or address
    return Origin(Source.WEB, address, request.headers.get("user-agent"))


def _call(
    services: Services,
    limits: CallLimits,
    name: str,
    tool: _ToolSpec,
    *,
    origin: Origin | None,
    token: str,
    arguments: dict[str, Any],
) -> CallToolResult:
    """Call a tool. Errors become text, which clients show to their model."""
    audit.set_origin(origin)
    started = time.perf_counter()
    outcome = "ok"
    try:
        user = reader(services, token)
        limits.count(user, f"mcp {name}", limit=tool.limit)
        answer = _answer(tool.run(services, user, _check(tool, arguments)))
    except PortalError as error:
        outcome, answer = error.code, _refuse(error)
    except Exception as error:  # A client must not see internal errors.
        log.error("mcp_call_failed", tool=name, exc_info=error)
        outcome, answer = PortalError.code, _refuse(PortalError())
    duration_ms = round((time.perf_counter() - started) * 1000, 1)
    log.info("mcp_call", tool=name, outcome=outcome, duration_ms=duration_ms)
    return answer


def reader(services: Services, token: str) -> User:
    """Return the user of a token that may read. Raises InvalidToken, InsufficientScope,
    SecondFactorEnrolmentRequired, IssuerUnavailable."""
    signed_in = tokens.authenticate(services, token)
    if signed_in.must_enrol:
        raise SecondFactorEnrolmentRequired
    if Scope.READ not in signed_in.scopes:
        raise InsufficientScope(scope=Scope.READ.value)
    return signed_in.user


def _check(tool: _ToolSpec, arguments: dict[str, Any]) -> BaseModel:
    try:
        return tool.arguments.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(verbatim(f"{field}: {first['msg']}")) from None


def _answer(found: BaseModel) -> CallToolResult:
    """Return the answer as text, which connectors read, and as structured content."""
    return CallToolResult(
        content=[TextContent(type="text", text=found.model_dump_json())],
        structured_content=found.model_dump(mode="json"),
    )


def _refuse(error: PortalError) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
