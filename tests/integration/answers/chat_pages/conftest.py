"""Fixtures of these tests."""

from __future__ import annotations

from dataclasses import replace

import pytest
from flask import Flask

from portal import create_app
from portal.domain.documents import DocumentSummary
from tests.conftest import Portal
from tests.factories.answers import SaysWhatIsWritten
from tests.integration.answers.chat_pages.chat import OFFICE, Chat


@pytest.fixture
def script() -> SaysWhatIsWritten:
    return SaysWhatIsWritten([["It closes ", "at six [1]."]])


@pytest.fixture
def app(portal: Portal, script: SaysWhatIsWritten) -> Flask:
    app = create_app(replace(portal.services, chat=script))
    app.config["PROPAGATE_EXCEPTIONS"] = False
    return app


@pytest.fixture
def office(portal: Portal) -> DocumentSummary:
    return portal.add(OFFICE, name="handbook.md")


@pytest.fixture
def chat(app: Flask, portal: Portal, office: DocumentSummary) -> Chat:
    return Chat(app, portal, portal.user("ada"))
