"""The front door: what is recent, what is found while one types, and an empty portal."""

from __future__ import annotations

from flask.testing import FlaskClient

from portal.domain.documents import Visibility
from portal.services.answers import conversations
from tests.conftest import Portal

FRAGMENT = {"HX-Request": "true", "HX-Target": "home-results"}


def get(client: FlaskClient, portal: Portal, path: str = "/", **headers: str) -> str:
    answer = client.get(path, headers=portal.headers() | headers)
    assert answer.status_code == 200
    return answer.get_data(as_text=True)


def test_empty_portal_leads_to_the_first_upload(client: FlaskClient, portal: Portal) -> None:
    for path in ("/", "/chat", "/search"):
        assert "empty-portal" in get(client, portal, path), path
    portal.add("The office closes at six.", name="office.txt")
    for path in ("/", "/chat", "/search"):
        assert "empty-portal" not in get(client, portal, path), path


def test_recent_conversations_and_new_documents_are_listed(
    client: FlaskClient, portal: Portal
) -> None:
    portal.add("The office closes at six.", name="office hours.txt")
    conversations.create(portal.services, portal.admin, "Opening hours")
    page = get(client, portal)
    assert page.index("recent-conversations") < page.index("Opening hours")
    assert page.index("new-documents") < page.index("office hours")


def test_typing_finds_documents_that_the_user_may_see(client: FlaskClient, portal: Portal) -> None:
    mei = portal.user("mei")
    portal.add("The office closes at six.", name="office.txt")
    portal.add("The office safe is green.", name="safe.txt", visibility=Visibility.PRIVATE)
    found = get(client, portal, "/?content=office", **FRAGMENT)
    assert "<html" not in found
    assert found.count("data-document-id") == 2
    assert "/search?q=office" in found
    answer = client.get("/?content=office", headers=portal.headers(mei) | FRAGMENT)
    assert "closes at" in answer.text
    assert "green" not in answer.text
    assert "safe.txt" not in answer.text
    assert get(client, portal, "/?content=+", **FRAGMENT).strip() == ""
