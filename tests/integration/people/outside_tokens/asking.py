"""Requests with tokens of an outside issuer."""

from __future__ import annotations

from collections.abc import Callable

from flask.testing import FlaskClient

from portal.errors import InvalidToken, PortalError
from portal.services import Services
from portal.services.people import tokens
from tests.conftest import Portal

DOCUMENTS = "/api/knowledge/documents"


MakePortal = Callable[..., Portal]


def client_of(portal: Portal) -> FlaskClient:
    return portal.app().test_client()


def status(client: FlaskClient, token: str, path: str = DOCUMENTS, method: str = "GET") -> int:
    headers = {"Authorization": f"Bearer {token}"}
    body = {} if method == "POST" else None
    return client.open(path, method=method, headers=headers, json=body).status_code


def outcome(services: Services, token: str) -> object:
    """Return the type of error that a token causes, or the user's name."""
    try:
        return tokens.authenticate(services, token).user.name
    except PortalError as error:
        return InvalidToken if isinstance(error, InvalidToken) else type(error)
