"""Accounts with an authenticator app or a passkey, set up as their owners do."""

from __future__ import annotations

import re
from typing import Any

import pyotp

from portal.domain.people import User
from portal.services.people.second_factors import totp
from tests.conftest import Portal
from tests.factories.browser import Browser
from tests.factories.passkeys import Authenticator

PAGE = "/account/second-factors"
_CODE = re.compile(r"<li><code>([a-z2-7-]{19})</code></li>")


class App:
    """A phone's authenticator app."""

    def __init__(self, secret: str) -> None:
        self.totp = pyotp.TOTP(secret)

    def code(self, steps: int = 0) -> str:
        """Return the code of `steps` time steps from now."""
        return str(self.totp.at(int(totp.time.time()), counter_offset=steps))


def set_up_totp(portal: Portal, user: User) -> tuple[App, tuple[str, ...]]:
    """Set up TOTP; return the app and the recovery codes. The previous step's code is used up."""
    app = App(totp.begin(portal.services, user).secret)
    return app, totp.confirm(portal.services, user, app.code(-1))


def recovery_codes(html: str) -> list[str]:
    """Return the codes that a page shows."""
    return _CODE.findall(html)


def options(browser: Browser, path: str, *, page: str) -> dict[str, Any]:
    """Fetch the options of a passkey form, as its script does."""
    answer = browser.post(path, page=page)
    assert answer.status_code == 200, answer.text
    return dict(answer.json or {})


def add_passkey(browser: Browser, authenticator: Authenticator, name: str = "Laptop") -> str:
    """Register a passkey in a signed-in browser and return the page that follows."""
    given = options(browser, f"{PAGE}/passkeys/options", page=PAGE)
    form = {"name": name, "credential": authenticator.create(given)}
    answer = browser.post(f"{PAGE}/passkeys", form, page=PAGE)
    assert answer.status_code in {200, 303}, answer.text
    return (browser.follow(answer) if answer.status_code == 303 else answer).text
