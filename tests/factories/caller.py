"""A user who calls the API."""

from __future__ import annotations

from typing import Any

from flask.testing import FlaskClient

from portal.domain.people import User
from tests.conftest import Portal


class Caller:
    """Calls the API as one user."""

    def __init__(self, portal: Portal, client: FlaskClient, user: User) -> None:
        self.portal, self.client, self.user = portal, client, user

    def call(self, method: str, path: str, **given: Any) -> Any:
        headers = self.portal.headers(self.user)
        return self.client.open(path, method=method, headers=headers, **given)
