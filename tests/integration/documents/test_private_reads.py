"""Owners can see what administrators have read of documents that are closed to them."""

from __future__ import annotations

from uuid import UUID

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.documents import Visibility
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole, FolderVisibility
from portal.domain.people import User
from portal.domain.search import SearchRequest
from portal.errors import NotFound
from portal.services.answers import citing, conversations, single_answer
from portal.services.documents import folders, private_reads
from portal.services.documents.folders import members as folder_members
from portal.services.search import explaining
from tests.conftest import Portal
from tests.factories.answers import ask


@pytest.fixture
def client(portal: Portal) -> FlaskClient:
    return create_app(portal.services).test_client()


def reads(portal: Portal, owner: User, document_id: UUID) -> list[tuple[str | None, str]]:
    entries = private_reads.list_reads(portal.services, owner, document_id)
    return [(entry.actor_name, entry.event) for entry in entries]


OPENING = (
    "/documents/{}",
    "/documents/{}/file",
    "/api/knowledge/documents/{}",
    "/api/knowledge/documents/{}/content",
    "/v1/documents/{}",
    "/documents/{}/revisions/1",
    "/documents/{}/revisions/1/file",
    "/api/knowledge/documents/{}/revisions/1/content",
    "/api/knowledge/documents/{}/revisions/1/file",
    "/api/v1/jobs/{job}/chunks",
)


def test_opening_is_recorded_once(portal: Portal, client: FlaskClient) -> None:
    mei = portal.user("mei")
    for path in OPENING:
        secret = portal.add(f"Salary at {path}", owner=mei, visibility=Visibility.PRIVATE)
        shared = portal.add(f"Canteen at {path}", owner=mei)
        for _ in range(2):
            for document in (secret, shared):
                address = path.format(document.id, job=document.job_id)
                assert client.get(address, headers=portal.headers()).status_code == 200, path
                assert client.get(address, headers=portal.headers(mei)).status_code == 200, path
        assert reads(portal, mei, secret.id) == [("admin", "private_document_opened")], path
        assert reads(portal, mei, shared.id) == [], path


def test_searching_is_recorded(portal: Portal, client: FlaskClient) -> None:
    mei = portal.user("mei")
    secret = portal.add("The salary is ten.", owner=mei, visibility=Visibility.PRIVATE)
    for path in ("/search?q=salary", "/v1/search?q=salary&limit=5"):
        assert client.get(path, headers=portal.headers()).status_code == 200
    assert reads(portal, mei, secret.id) == [("admin", "private_document_found")]
    page = client.get("/admin/audit", headers=portal.headers()).text
    assert "Private document found by search" in page
    assert "salary is" not in page


def test_results_of_internal_searches_are_not_recorded(portal: Portal, client: FlaskClient) -> None:
    mei = portal.user("mei")
    secret = portal.add("The salary is ten.", owner=mei, visibility=Visibility.PRIVATE)
    office = portal.add("The office salary list is in the safe.")
    request = SearchRequest("salary", top_n=1)
    explaining.why_not(portal.services, portal.admin, request, office.id)
    single_answer.is_answered(portal.services, portal.admin, "What is the salary?", language="en")
    assert reads(portal, mei, secret.id) == []


def test_reads_in_a_members_folder_by_an_outside_administrator_are_recorded(
    portal: Portal, client: FlaskClient
) -> None:
    mei, kim, ben = (portal.user(name) for name in ("mei", "kim", "ben"))
    services = portal.services
    folder_id = folders.create_folder(
        services, mei, name="Board", visibility=FolderVisibility.MEMBERS
    )
    for name, role in (("kim", FolderRole.KEEPER), ("ben", FolderRole.READER)):
        folder_members.set_member(
            services, mei, folder_id, kind=MemberKind.USER, name=name, role=role
        )
    minutes = portal.add("The merger is agreed.", owner=mei)
    folders.move_document(services, mei, minutes.id, folder_id)
    address = f"/documents/{minutes.id}"
    for user in (portal.admin, kim, ben):
        assert client.get(address, headers=portal.headers(user)).status_code == 200
    client.get("/search?q=merger", headers=portal.headers())
    expected = [("admin", "private_document_found"), ("admin", "private_document_opened")]
    assert reads(portal, mei, minutes.id) == reads(portal, kim, minutes.id) == expected
    assert 'data-testid="private-reads"' in client.get(address, headers=portal.headers(kim)).text
    assert (
        'data-testid="private-reads"' not in client.get(address, headers=portal.headers(ben)).text
    )
    joined = portal.add("The merger is off.", owner=mei)
    folders.move_document(services, mei, joined.id, folder_id)
    folder_members.set_member(
        services, mei, folder_id, kind=MemberKind.USER, name="admin", role=FolderRole.READER
    )
    client.get(f"/documents/{joined.id}", headers=portal.headers())
    assert reads(portal, mei, joined.id) == []


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


def test_citation_that_shows_the_text_around_it_is_recorded(portal: Portal) -> None:
    mei = portal.user("mei")
    secret = portal.add("The office closes at six.", owner=mei, visibility=Visibility.PRIVATE)
    talk = conversations.create(portal.services, portal.admin).id
    answer = ask(portal.services, portal.admin, talk, "When does the office close?")
    citing.quoted_text(portal.services, portal.admin, answer.citations[0].id)
    assert ("admin", "private_document_opened") in reads(portal, mei, secret.id)


def test_card_that_shows_more_than_the_quotation_is_recorded(portal: Portal) -> None:
    mei = portal.user("mei")
    table = "| thing | fee |\n| --- | --- |\n| locker | 7 euros |\n| desk | 9 euros |\n"
    secret = portal.add(table, name="fees.md", owner=mei, visibility=Visibility.PRIVATE)
    talk = conversations.create(portal.services, portal.admin).id
    answer = ask(portal.services, portal.admin, talk, "What is the fee for a locker?")
    _, header = citing.get_card(portal.services, portal.admin, answer.citations[0].id)
    assert header == ("thing", "fee")
    assert ("admin", "private_document_opened") in reads(portal, mei, secret.id)
