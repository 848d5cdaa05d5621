"""Fixtures of these tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from portal.services import Services
from tests.conftest import Portal


@pytest.fixture
def small(make_services: Callable[..., Services]) -> Portal:
    """Return a portal that accepts files of up to a megabyte."""
    return Portal.of(make_services(max_upload_mb=1))
