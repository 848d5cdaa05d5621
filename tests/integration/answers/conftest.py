"""A conversation over two documents."""

from __future__ import annotations

import pytest

from portal.services.answers import conversations
from tests.conftest import Portal
from tests.integration.answers.leave_policy import LEAVE, PRINTER


@pytest.fixture
def talk(portal: Portal) -> object:
    portal.add(LEAVE, title="Leave policy")
    portal.add(PRINTER, title="Printer manual")
    return conversations.create(portal.services, portal.admin).id
