"""Fixtures of these tests."""

from __future__ import annotations

import pytest

from tests.conftest import Portal
from tests.integration.models.building.models import TEXTS


@pytest.fixture
def filled(portal: Portal) -> Portal:
    for name, words in TEXTS.items():
        portal.add(words, name=f"{name}.txt")
    return portal
