"""Fixtures of these tests."""

from __future__ import annotations

import pytest

from tests.conftest import Portal
from tests.integration.search.plans.enabled_sets.shelf import Shelf

TEXTS = ("The violin stands in the hall.", "The copper pot hangs in the hall.")


@pytest.fixture
def shelf(portal: Portal) -> Shelf:
    ann, ben = portal.user("ann"), portal.user("ben")
    first, second = (portal.add(content, owner=ann).id for content in TEXTS)
    conversations = [
        portal.scalar(
            "INSERT INTO conversations (user_id) VALUES (:user) RETURNING id", user=user.id
        )
        for user in (ann, ben)
    ]
    return Shelf(portal, ann, ben, first, second, *conversations)
