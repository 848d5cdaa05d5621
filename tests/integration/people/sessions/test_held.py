"""A value that the browser holds for a page is shown to its user only, soon, and once."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from flask import Flask, session
from flask.testing import FlaskClient

from portal.domain.people import User
from portal.http import context
from portal.web import held
from tests.conftest import Portal

NAME = "codes"
SECRET = "4711-0815"


class Browser:
    """A browser of a small application that holds a secret and shows it to `user`."""

    def __init__(self, portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
        self.user: User = portal.admin
        self.status = HTTPStatus.OK
        monkeypatch.setattr(context, "caller", lambda: (portal.services, self.user))
        app = Flask(__name__)
        app.secret_key = "a key for tests"
        app.add_url_rule("/hold", view_func=self._hold)
        app.add_url_rule("/show", view_func=self._show)
        self.client: FlaskClient = app.test_client()

    def _hold(self) -> str:
        held.hold(NAME, [SECRET])
        assert not held.hold(NAME, ["密" * 1000]), "longer than a cookie"
        return str(session[NAME])

    def _show(self) -> tuple[str, int]:
        found = held.read(NAME)
        held.forget_once_shown(NAME)
        return str(found), self.status

    def hold(self) -> str:
        return self.client.get("/hold").text

    def show(self) -> str:
        return self.client.get("/show").text


@pytest.fixture
def browser(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> Browser:
    return Browser(portal, monkeypatch)


def test_held_value_is_shown_once_and_cannot_be_read_in_the_cookie(browser: Browser) -> None:
    assert SECRET not in browser.hold()
    assert browser.show() == str([SECRET])
    assert browser.show() == "None"


def test_error_page_does_not_lose_the_held_value(browser: Browser) -> None:
    browser.hold()
    browser.status = HTTPStatus.SERVICE_UNAVAILABLE
    browser.show()
    browser.status = HTTPStatus.OK
    assert browser.show() == str([SECRET])


def test_another_user_of_the_browser_does_not_get_the_held_value(
    browser: Browser, portal: Portal
) -> None:
    browser.hold()
    browser.user = portal.user("ada")
    assert browser.show() == "None"


def test_held_value_that_was_never_shown_expires(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.hold()
    monkeypatch.setattr(held, "_MAX_AGE_S", -1)
    assert browser.show() == "None"
