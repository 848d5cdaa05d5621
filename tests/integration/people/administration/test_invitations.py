"""Administrators see the invitations that are still open, and withdraw them."""

from __future__ import annotations

import re

from flask.testing import FlaskClient

from portal.services.people import invitations
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser


def test_withdrawn_invitation_leaves_the_list_and_opens_nothing(
    client: FlaskClient, portal: Portal
) -> None:
    withdrawn, kept, used = (invitations.invite(portal.services, portal.admin) for _ in range(3))
    invitations.accept_invitation(portal.services, used.secret or "", name="zoe", password=PASSWORD)
    browser = Browser(client.application)
    browser.sign_in("admin", PASSWORD)
    listed = r"/admin/invitations/([\w-]+)/withdraw"
    page = browser.get("/admin").text
    assert set(re.findall(listed, page)) == {str(withdrawn.id), str(kept.id)}
    assert kept.secret is not None
    assert kept.secret not in page
    address = f"/admin/invitations/{withdrawn.id}/withdraw"
    assert browser.post(address, {}).status_code == 303
    assert re.findall(listed, browser.get("/admin").text) == [str(kept.id)]
    gone = client.get(f"/invite/{withdrawn.secret}")
    assert gone.status_code == 404
    assert "invalid or has expired" in gone.text
    assert client.get(f"/invite/{kept.secret}").status_code == 200
    assert browser.post(address, {}).status_code == 404
    assert browser.post(f"/admin/invitations/{used.id}/withdraw", {}).status_code == 404


def test_new_invitation_is_shown_once_and_reloading_makes_no_other(
    client: FlaskClient, portal: Portal
) -> None:
    browser = Browser(client.application)
    browser.sign_in("admin", PASSWORD)
    link = 'data-testid="shown-once"'
    made = browser.post("/admin/invitations", {})
    assert (made.status_code, made.headers["Location"]) == (303, "/admin")
    assert [link in browser.get("/admin").text for _ in range(2)] == [True, False]
    assert len(invitations.list_invitations(portal.services, portal.admin)) == 1


def test_new_invitation_is_not_shown_to_the_next_user_of_the_browser(
    client: FlaskClient, portal: Portal
) -> None:
    portal.user("ada", is_admin=True)
    browser = Browser(client.application)
    browser.sign_in("admin", PASSWORD)
    browser.post("/admin/invitations", {})
    browser.client.delete_cookie("portal_session")
    browser.sign_in("ada", PASSWORD)
    assert "/invite/" not in browser.get("/admin").text
