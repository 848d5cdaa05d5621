"""Fixtures of these tests."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from flask import Flask
from flask.testing import FlaskClient

from portal.services.people.second_factors import totp
from tests.factories.browser import Browser


@pytest.fixture
def app(client: FlaskClient) -> Flask:
    return client.application


@pytest.fixture
def visitor(app: Flask) -> Browser:
    return Browser(app)


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, so that no code expires between being read off the app and being sent."""
    now = time.time()
    monkeypatch.setattr(totp, "time", SimpleNamespace(time=lambda: now))
