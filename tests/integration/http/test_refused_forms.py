"""After a form was refused, the page keeps what was typed and marks the field that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.services import Services
from portal.services.documents import folders, library
from portal.services.people import accounts, groups, invitations
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser

NEW_PASSWORD = "a quite different password"


def marked(page: str) -> list[str]:
    """Return the names of the fields that are marked as wrong."""
    fields = re.findall(r"<(?:input|select)\b[^>]*>", page)
    return [
        name[1]
        for field in fields
        if "aria-invalid" in field
        if (name := re.search(r'name="([^"]*)"', field))
    ]


def value(page: str, element_id: str) -> str:
    """Return the value of a field."""
    field = re.search(rf'<input\b[^>]*id="{element_id}"[^>]*>', page)
    assert field is not None, element_id
    found = re.search(r'value="([^"]*)"', field[0])
    return found[1] if found else ""


@pytest.fixture
def client(portal: Portal) -> FlaskClient:
    return portal.client()


def test_unknown_user_name_stays_in_the_form_of_members(
    portal: Portal, client: FlaskClient
) -> None:
    folder = folders.create_folder(portal.services, portal.admin, name="Plans")
    form = {"kind": "user", "name": "nobody-here", "role": "keeper"}
    page = client.post(f"/folders/{folder}/members", data=form)
    assert page.status_code == 404
    assert value(page.text, "name-user") == "nobody-here"
    assert re.search(r'<option value="keeper" selected>', page.text)
    assert marked(page.text) == ["name"]
    assert page.text.index("add-heading") < page.text.index("form-error")


def test_refused_names_of_a_group_stay_in_their_forms(portal: Portal, client: FlaskClient) -> None:
    groups.create_group(portal.services, portal.admin, name="Sales")
    group = groups.create_group(portal.services, portal.admin, name="Buying")
    edited = client.post(f"/admin/groups/{group}", data={"name": "Sales", "description": "New"})
    assert value(edited.text, "field-name") == "Sales"
    assert value(edited.text, "field-description") == "New"
    assert value(edited.text, "member-name") == ""
    added = client.post(f"/admin/groups/{group}/members", data={"name": "nobody-here"})
    assert value(added.text, "member-name") == "nobody-here"
    assert value(added.text, "field-name") == "Buying"


@pytest.mark.parametrize(
    ("current", "new", "again", "wrong"),
    [
        ("not the one", NEW_PASSWORD, NEW_PASSWORD, "current"),
        (PASSWORD, "short", "short", "new"),
        (PASSWORD, "short", "another", "new"),
        (PASSWORD, NEW_PASSWORD, "another", "new_again"),
    ],
)
def test_the_field_that_is_wrong_is_marked_when_a_password_changes(
    make_services: Callable[..., Services], current: str, new: str, again: str, wrong: str
) -> None:
    services = make_services()
    accounts.ensure_first_administrator(services)
    owner = Browser(create_app(services))
    owner.sign_in("admin", PASSWORD)
    form: dict[str, object] = {"current": current, "new": new, "new_again": again}
    page = owner.post("/account/password", form).text
    assert marked(page) == [wrong]
    assert ("do not match" in page) == (new != again)
    assert ("too short" in page) == (new == "short")
    assert re.search(rf'name="{wrong}"[^>]* autofocus\s+required>', page)


@pytest.mark.parametrize(
    ("name", "password", "again", "wrong"),
    [
        ("admin", NEW_PASSWORD, NEW_PASSWORD, "name"),
        ("mei", "short", "short", "password"),
        ("mei", "short", "another", "password"),
        ("mei", NEW_PASSWORD, "another", "password_again"),
    ],
)
def test_the_field_that_is_wrong_is_marked_in_an_invitation(
    portal: Portal, name: str, password: str, again: str, wrong: str
) -> None:
    secret = invitations.invite(portal.services, portal.admin).secret
    form: dict[str, object] = {"name": name, "password": password, "password_again": again}
    page = Browser(portal.app()).post(f"/invite/{secret}", form, page=f"/invite/{secret}")
    assert marked(page.text) == [wrong]
    assert value(page.text, "field-name") == name


def test_a_form_that_has_expired_leads_back_to_its_page(portal: Portal) -> None:
    client = portal.app().test_client()
    client.set_cookie("portal_session", portal.token(portal.admin))
    page = client.post(
        "/folders", data={"name": "Plans"}, headers={"Referer": "http://localhost/folders/new"}
    )
    assert page.status_code == 403
    assert "<h1>This form has expired</h1>" in page.text
    assert 'href="/folders/new"' in page.text
    assert "Permission denied" not in page.text


def test_trashed_document_is_reported_to_those_who_may_restore_it(
    portal: Portal, client: FlaskClient
) -> None:
    document = portal.add("Core hours are ten to three.", name="hours.txt")
    library.delete_document(portal.services, portal.admin, document.id)
    page = client.get(f"/documents/{document.id}")
    assert page.status_code == 404
    assert "“hours” is in the trash" in page.text
    assert 'href="/trash"' in page.text
    other = portal.client(portal.user("mei")).get(f"/documents/{document.id}")
    assert other.status_code == 404
    assert "hours" not in other.text
