"""Fixtures for the tests of conversation pages."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from uuid import UUID

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import create_app
from portal.domain.conversations import Message
from portal.domain.documents import DocumentSummary
from portal.domain.people import User
from portal.services.answers import conversations
from tests.conftest import Portal
from tests.factories.answers import SaysWhatIsWritten


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


OFFICE = "The office closes at six. Visitors must sign in at the front desk."
QUESTION = "When does the office close?"
EVENTS = {"Accept": "text/event-stream", "HX-Request": "true"}
FRAGMENT = {"HX-Request": "true"}
PANE = {**FRAGMENT, "HX-Target": "chat-side"}


def text_of(answer: TestResponse | str) -> str:
    """Return the visible text on one line."""
    page = answer if isinstance(answer, str) else answer.get_data(as_text=True)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def events_of(answer: TestResponse) -> list[tuple[str, dict[str, str]]]:
    blocks = answer.get_data(as_text=True).split("\n\n")
    found = [re.fullmatch(r"event: (\w+)\ndata: (.*)", block) for block in blocks]
    return [(match[1], json.loads(match[2])) for match in found if match]


class Chat:
    """A user's browser, without JavaScript unless a test says otherwise."""

    def __init__(self, app: Flask, portal: Portal, user: User) -> None:
        self.client: FlaskClient = app.test_client()
        self.portal, self.user = portal, user
        self.headers = portal.headers(user) | {"Accept-Language": "en"}

    def get(self, path: str, **headers: str) -> TestResponse:
        return self.client.get(path, headers=self.headers | headers)

    def post(self, path: str, headers: dict[str, str] | None = None, **form: str) -> TestResponse:
        return self.client.post(path, data=form, headers=self.headers | (headers or {}))

    def begin(self) -> str:
        """Create an empty conversation; return its address."""
        answer = self.post("/chat")
        assert answer.status_code == 303
        return str(answer.headers["Location"])

    def ask(self, address: str, question: str = QUESTION) -> TestResponse:
        return self.post(f"{address}/messages", content=question)

    def messages(self, address: str) -> tuple[Message, ...]:
        conversation_id = UUID(address.rsplit("/", 1)[1])
        return conversations.messages(self.portal.services, self.user, conversation_id)
