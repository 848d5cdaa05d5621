"""Fixtures for the tests of user administration."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser


@pytest.fixture
def admin(portal: Portal, client: FlaskClient) -> Browser:
    browser = Browser(client.application)
    browser.sign_in("admin", PASSWORD)
    return browser


def rows(portal: Portal, statement: str, **values: object) -> list[tuple[object, ...]]:
    with portal.services.database.begin() as session:
        return [tuple(row) for row in session.execute(text(statement), values)]
