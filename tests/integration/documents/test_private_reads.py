"""What administrators read of others' private documents is there for the owners to see."""

from __future__ import annotations

from uuid import UUID

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.documents import Visibility
from portal.domain.people import User
from portal.errors import NotFound
from portal.services.documents import private_reads
from tests.conftest import Portal


@pytest.fixture
def client(portal: Portal) -> FlaskClient:
    return create_app(portal.services).test_client()


def reads(portal: Portal, owner: User, document_id: UUID) -> list[tuple[str | None, str]]:
    entries = private_reads.list_reads(portal.services, owner, document_id)
    return [(one.actor_name, one.event) for one in entries]


@pytest.mark.parametrize(
    "path",
    [
        "/documents/{}",
        "/documents/{}/file",
        "/api/knowledge/documents/{}",
        "/api/knowledge/documents/{}/content",
        "/v1/documents/{}",
    ],
)
def test_opening_is_recorded_once(portal: Portal, client: FlaskClient, path: str) -> None:
    mei = portal.user("mei")
    secret = portal.add("The salary is ten.", owner=mei, visibility=Visibility.PRIVATE)
    shared = portal.add("The canteen opens.", owner=mei)
    for _ in range(2):
        for document in (secret, shared):
            address = path.format(document.id)
            assert client.get(address, headers=portal.headers()).status_code == 200
            assert client.get(address, headers=portal.headers(mei)).status_code == 200
    assert reads(portal, mei, secret.id) == [("admin", "private_document_opened")]
    assert reads(portal, mei, shared.id) == []


def test_searching_is_recorded(portal: Portal, client: FlaskClient) -> None:
    mei = portal.user("mei")
    secret = portal.add("The salary is ten.", owner=mei, visibility=Visibility.PRIVATE)
    for path in ("/search?q=salary", "/v1/search?q=salary&limit=5"):
        assert client.get(path, headers=portal.headers()).status_code == 200
    assert reads(portal, mei, secret.id) == [("admin", "private_document_found")]
    page = client.get("/admin/audit", headers=portal.headers()).text
    assert "Found a private document by a search" in page
    assert "salary is" not in page


def test_owner_sees_who_read_and_others_do_not(portal: Portal, client: FlaskClient) -> None:
    mei, ben = portal.user("mei"), portal.user("ben")
    secret = portal.add("The salary is ten.", owner=mei, visibility=Visibility.PRIVATE)
    address = f"/documents/{secret.id}"
    assert 'data-testid="private-reads"' not in client.get(address, headers=portal.headers()).text
    page = client.get(address, headers=portal.headers(mei)).text
    assert 'data-testid="private-reads"' in page
    for other in (ben, portal.admin):
        with pytest.raises(NotFound):
            private_reads.list_reads(portal.services, other, secret.id)
