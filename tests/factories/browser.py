"""A browser without JavaScript that keeps cookies and sends the page's form token."""

from __future__ import annotations

import re

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

_TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')


class Browser:
    """A test client. `scheme` is `http` or `https`; `agent` is the User-Agent."""

    def __init__(
        self,
        app: Flask,
        *,
        scheme: str = "http",
        agent: str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        address: str = "192.0.2.1",
    ) -> None:
        self.client: FlaskClient = app.test_client()
        self._request = {
            "base_url": f"{scheme}://localhost",
            "headers": {"User-Agent": agent, "Referer": f"{scheme}://localhost/"},
            "environ_base": {"REMOTE_ADDR": address},
        }

    def get(self, path: str) -> TestResponse:
        return self.client.get(path, **self._request)

    def csrf_token(self, path: str = "/login") -> str:
        found = _TOKEN.search(self.client.get(path, follow_redirects=True, **self._request).text)
        assert found is not None, f"{path} has no form"
        return found[1]

    def post(
        self, path: str, data: dict[str, object] | None = None, *, page: str = "/account"
    ) -> TestResponse:
        """Post a form with the token of `page`."""
        form = {"csrf_token": self.csrf_token(page), **(data or {})}
        return self.client.post(path, data=form, **self._request)

    def follow(self, answer: TestResponse) -> TestResponse:
        """Return the page that an answer redirects to."""
        return self.get(answer.headers["Location"])

    def sign_in(self, name: str, password: str) -> TestResponse:
        return self.post("/login", {"name": name, "password": password}, page="/login")

    def call(self, method: str, path: str, **json: object) -> TestResponse:
        """Call a JSON API as a script of a page does, with the cookie and the page's token."""
        headers = {**self._request["headers"], "X-CSRFToken": self.csrf_token("/account")}
        request = self._request | {"headers": headers}
        return self.client.open(path, method=method, json=json or None, **request)

    def cookie(self, name: str) -> str | None:
        found = self.client.get_cookie(name, path="/")
        return found.value if found else None
