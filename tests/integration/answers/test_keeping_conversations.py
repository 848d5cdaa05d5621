"""Pinning conversations, and undoing their deletion."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.errors import InvalidInput, NotFound
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import switches
from tests.conftest import Portal
from tests.factories.answers import ask

QUESTION = "How many days of leave?"


@pytest.fixture
def talk(portal: Portal) -> UUID:
    portal.add("Employees get fifteen days of leave.", name="leave.txt")
    begun = conversations.create(portal.services, portal.admin).id
    ask(portal.services, portal.admin, begun, QUESTION)
    return begun


def ids(portal: Portal, **which: bool) -> list[UUID]:
    page = conversations.list_conversations(portal.services, portal.admin, **which)
    return [one.id for one in page.items]


def rows(portal: Portal) -> int:
    with portal.services.database.begin() as session:
        return session.scalar(text("SELECT count(*) FROM conversations"))


def test_deleted_conversation_is_gone_until_it_is_restored(portal: Portal, talk: UUID) -> None:
    services, admin = portal.services, portal.admin
    answer = conversations.messages(services, admin, talk)[1]
    conversations.delete(services, admin, talk)
    assert ids(portal) == []
    for read in (
        lambda: conversations.get(services, admin, talk),
        lambda: conversations.messages(services, admin, talk),
        lambda: conversations.get_message(services, admin, answer.id),
        lambda: conversations.rename(services, admin, talk, "Another"),
        lambda: conversations.delete(services, admin, talk),
        lambda: ask(services, admin, talk, QUESTION),
        lambda: switches.count_enabled(services, admin, talk),
        lambda: conversations.restore(services, portal.user("mei"), talk),
    ):
        with pytest.raises(NotFound):
            read()
    conversations.restore(services, admin, talk)
    assert ids(portal) == [talk]
    assert conversations.messages(services, admin, talk)[1].content == answer.content


def test_deleted_conversation_is_erased_after_an_hour(portal: Portal, talk: UUID) -> None:
    services, admin = portal.services, portal.admin
    now = datetime.now(UTC)
    conversations.delete(services, admin, talk)
    conversations.erase_old(services, now=now + timedelta(minutes=59))
    assert rows(portal) == 1
    conversations.erase_old(services, now=now + timedelta(minutes=61))
    assert rows(portal) == 0
    with pytest.raises(NotFound):
        conversations.restore(services, admin, talk)


def test_unused_conversation_is_erased_after_a_day(portal: Portal, talk: UUID) -> None:
    services, admin = portal.services, portal.admin
    now = datetime.now(UTC)
    unused = conversations.create(services, admin).id
    named = conversations.create(services, admin, "For Monday").id
    pinned = conversations.create(services, admin).id
    conversations.pin(services, admin, pinned, pinned=True)
    conversations.erase_old(services, now=now + timedelta(hours=23))
    assert set(ids(portal)) == {talk, unused, named, pinned}
    conversations.erase_old(services, now=now + timedelta(hours=25))
    assert set(ids(portal)) == {talk, named, pinned}


def test_unpinned_conversations_are_erased_after_the_configured_days(
    portal: Portal, talk: UUID, make_services: Callable[..., Services]
) -> None:
    services, admin = portal.services, portal.admin
    now = datetime.now(UTC)
    pinned = conversations.create(services, admin, "Kept").id
    conversations.pin(services, admin, pinned, pinned=True)
    conversations.erase_old(services, now=now + timedelta(days=3650))
    assert set(ids(portal)) == {talk, pinned}
    limited = make_services(conversation_days=30)
    conversations.erase_old(limited, now=now + timedelta(days=29))
    assert set(ids(portal)) == {talk, pinned}
    conversations.erase_old(limited, now=now + timedelta(days=31))
    assert ids(portal) == [pinned]


def test_pinned_conversations_are_listed_separately_and_limited(
    portal: Portal, talk: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, admin = portal.services, portal.admin
    other = conversations.create(services, admin, "Other").id
    conversations.pin(services, admin, talk, pinned=True)
    assert ids(portal, pinned=True) == [talk]
    assert ids(portal, pinned=False) == [other]
    assert set(ids(portal)) == {talk, other}
    monkeypatch.setattr(conversations, "MAX_PINNED", 1)
    conversations.pin(services, admin, talk, pinned=True)
    with pytest.raises(InvalidInput):
        conversations.pin(services, admin, other, pinned=True)
    conversations.pin(services, admin, talk, pinned=False)
    conversations.pin(services, admin, other, pinned=True)
    assert ids(portal, pinned=True) == [other]


def test_api_pins_a_conversation_and_reports_it(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers()
    made = client.post("/api/conversations", headers=headers, json={"title": "Leave"}).json
    assert made["pinned"] is False
    path = f"/api/conversations/{made['id']}"
    changed = client.patch(path, headers=headers, json={"pinned": True}).json
    assert (changed["pinned"], changed["title"]) == (True, "Leave")
    assert client.patch(path, headers=headers, json={"title": "Days off"}).json["pinned"] is True
    unchanged = client.patch(path, headers=headers, json={}).json
    assert (unchanged["pinned"], unchanged["title"]) == (True, "Days off")
    assert client.patch(path, headers=headers, json={"title": ""}).status_code == 422
