"""Who may create an account: with an invitation, everyone, or no one."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from sqlalchemy import select

from portal.errors import InvalidLink, InvitationsClosed
from portal.services import Services
from portal.services.audit import AuditEvent
from portal.services.people import accounts, invitations
from portal.store.models import AuditRow
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.cases import for_each

FORM: dict[str, object] = {"name": "mei", "password": PASSWORD, "password_again": PASSWORD}


@pytest.fixture
def open_portal(make_services: Callable[..., Services]) -> Callable[..., Portal]:
    return lambda registration, **settings: Portal.of(
        make_services(registration=registration, **settings)
    )


def names(portal: Portal) -> set[str]:
    return {account.name for account in accounts.list_accounts(portal.services, portal.admin)}


def test_open_registration_creates_an_account_and_signs_it_in(
    open_portal: Callable[..., Portal],
) -> None:
    portal = open_portal("open")
    browser = Browser(portal.app())
    assert 'href="/register?next=/search"' in browser.get("/login?next=/search").text
    page = browser.get("/register?next=/search").text
    assert 'name="next" value="/search"' in page
    assert "invited you" not in page
    answer = browser.post("/register", FORM | {"next": "/search"}, page="/register")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/search")
    assert "Welcome, mei. Your account is ready." in browser.follow(answer).text
    assert not accounts.find_user(portal.services, "mei").is_admin
    with portal.services.database.begin() as session:
        events = select(AuditRow).where(AuditRow.event == AuditEvent.USER_CREATED)
        [created] = session.scalars(events.where(AuditRow.subject_title == "mei"))
    assert created.details == {"by": "registration", "is_admin": False}


def test_refused_registration_says_why_in_the_language_of_the_reader(
    open_portal: Callable[..., Portal],
) -> None:
    portal = open_portal("open")
    browser = Browser(portal.app())

    def refusal(**changed: object) -> tuple[int, str]:
        answer = browser.post("/register", FORM | changed, page="/register")
        found = re.search(r'name="(\w+)"[^>]*aria-invalid="true"', answer.text)
        assert found is not None
        return answer.status_code, found[1]

    assert refusal(name="Admin") == (409, "name")
    assert refusal(name="") == (422, "name")
    assert refusal(password="short", password_again="short") == (422, "password")
    assert refusal(password_again="another one") == (422, "password_again")
    headers = {"Accept-Language": "zh-CN"}
    token = browser.csrf_token("/register")
    chinese = browser.client.post(
        "/register",
        data=FORM | {"csrf_token": token, "name": "admin"},
        headers=headers,
        base_url="http://localhost",
    )
    assert "已被占用" in chinese.text
    assert names(portal) == {"admin"}


def test_registration_needs_the_token_of_its_form(open_portal: Callable[..., Portal]) -> None:
    portal = open_portal("open")
    assert portal.app().test_client().post("/register", data=FORM).status_code == 403
    assert names(portal) == {"admin"}


def test_accounts_that_one_address_creates_are_limited(open_portal: Callable[..., Portal]) -> None:
    limits = {"enabled": False, "sign_in_registration": "2 per hour"}
    app = open_portal("open", rate_limits=limits).app()

    def register(name: str, address: str) -> int:
        browser = Browser(app, address=address)
        return browser.post("/register", FORM | {"name": name}, page="/register").status_code

    made = [register(name, "192.0.2.1") for name in ("mei", "otto", "zoe")]
    assert made == [303, 303, 429]
    assert register("zoe", "192.0.2.2") == 303


def test_an_invitation_is_still_good_where_registration_is_open(
    open_portal: Callable[..., Portal],
) -> None:
    portal = open_portal("open")
    path = f"/invite/{invitations.invite(portal.services, portal.admin).secret}"
    assert Browser(portal.app()).post(path, FORM, page=path).status_code == 303
    assert "mei" in names(portal)


@for_each("registration", ["invite", "closed"])
def test_registration_is_neither_offered_nor_possible_unless_open(
    open_portal: Callable[..., Portal], registration: str
) -> None:
    portal = open_portal(registration)
    browser = Browser(portal.app())
    assert "/register" not in browser.get("/login").text
    assert browser.get("/register").status_code == 404
    assert browser.post("/register", FORM, page="/login").status_code == 404
    assert names(portal) == {"admin"}


def test_closed_portal_takes_no_one_by_invitation(
    open_portal: Callable[..., Portal], make_services: Callable[..., Services]
) -> None:
    before = open_portal("invite")
    secret = invitations.invite(before.services, before.admin).secret or ""
    path = f"/invite/{secret}"
    assert Browser(before.app()).get(path).status_code == 200
    portal = Portal.of(make_services(registration="closed"))
    browser = Browser(portal.app())
    assert "for an invitation" not in browser.get("/login").text
    gone = browser.get(path)
    assert (gone.status_code, "invalid or has expired" in gone.text) == (404, True)
    assert browser.post(path, FORM, page="/login").status_code == 404
    with pytest.raises(InvalidLink):
        invitations.accept_invitation(portal.services, secret, name="mei", password=PASSWORD)
    assert names(portal) == {"admin"}


def test_administration_of_a_closed_portal_says_why_there_are_no_invitations(
    open_portal: Callable[..., Portal],
) -> None:
    portal = open_portal("closed")
    browser = Browser(portal.app())
    browser.sign_in("admin", PASSWORD)
    page = browser.get("/admin").text
    assert "PORTAL_REGISTRATION is “closed”" in page
    assert "Create invitation" not in page
    refused = browser.post("/admin/invitations", {})
    assert (refused.status_code, "Invitations are off" in refused.text) == (403, True)
    with pytest.raises(InvitationsClosed):
        invitations.invite(portal.services, portal.admin)
