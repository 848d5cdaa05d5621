"""Fixtures of these tests."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser


@pytest.fixture
def admin(portal: Portal, client: FlaskClient) -> Browser:
    browser = Browser(client.application)
    browser.sign_in("admin", PASSWORD)
    return browser
