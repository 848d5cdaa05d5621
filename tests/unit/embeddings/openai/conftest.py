"""Fixtures of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.factories.servers.endpoint import FakeEndpoint, fake_endpoint


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with fake_endpoint() as running:
        yield running
