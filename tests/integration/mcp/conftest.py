"""Both transports of `portal mcp`. Modules that need the extra are imported in the fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Portal

if TYPE_CHECKING:
    from tests.factories.servers.mcp import Door


@pytest.fixture
def environment(portal: Portal, database_url: str, tmp_path: Path) -> dict[str, str]:
    from tests.factories.servers.mcp import mcp_environment

    return mcp_environment(database_url, tmp_path, portal.services.secret_key)


@pytest.fixture
def http_url(environment: dict[str, str]) -> Iterator[str]:
    from tests.factories.servers.mcp import http_process

    with http_process(environment) as (url, _process):
        yield url


@pytest.fixture(params=["stdio", "http"])
def door(request: pytest.FixtureRequest, environment: dict[str, str]) -> Door:
    from tests.factories.servers.mcp import Door

    is_http = request.param == "http"
    return Door(environment, request.getfixturevalue("http_url")) if is_http else Door(environment)
