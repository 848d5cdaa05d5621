"""A portal with ada, eve and an administrator."""

from __future__ import annotations

import pytest

from tests.conftest import Portal
from tests.contracts.access.world import World


@pytest.fixture
def world(portal: Portal) -> World:
    app = portal.app()
    world = World(portal, app, portal.user("ada"), portal.user("eve"))
    portal.user("zoe")  # Signs in with a password alone.
    for user in (world.ada, world.eve):
        world.passkey(user.id)
    return world
