"""Calls by an MCP client that has a token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mcp import Client

from portal.domain.people import Scope, User
from portal.errors import NotFound
from portal.services.people import sessions
from tests.conftest import Portal
from tests.factories.servers.mcp import Door
from tests.factories.uploads import run_apart

Visit = Callable[[Client], Awaitable[None]]
NOT_FOUND = str(NotFound())
HANDBOOK = "Refunds are paid within fourteen days of the return."
CHINESE = "退款将在退货后十四天内支付到原来的账户。"


def go(door: Door, token: str, visit: Visit, *, mode: str = "auto") -> None:
    """Run `visit` with a client connected over the given transport."""

    async def enter() -> None:
        async with door.enter(token, mode=mode) as client:
            await visit(client)

    run_apart(lambda: asyncio.run(enter()))


def reading_token(portal: Portal, user: User | None = None) -> str:
    _, secret = sessions.create_personal_token(
        portal.services, user or portal.admin, name="assistant", ttl_s=3600, scopes=[Scope.READ]
    )
    return secret
