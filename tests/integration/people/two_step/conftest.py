"""Fixtures for the tests of second factors."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.services.people.second_factors import totp
from tests.conftest import Portal
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


STEP = "/login/second-step"
TOKEN = "/api/auth/token"
DOCUMENTS = "/api/knowledge/documents"


def step(browser: Browser, code: str):
    return browser.post(STEP, {"code": code}, page=STEP)


def is_signed_in(browser: Browser) -> bool:
    return browser.get("/documents").status_code == 200


def audited(portal: Portal, event: str) -> list[dict[str, object]]:
    with portal.services.database.begin() as session:
        rows = session.execute(
            text("SELECT details FROM audit_log WHERE event = :event ORDER BY created_at"),
            {"event": event},
        )
        return list(rows.scalars())
