"""Portals that require a second factor."""

from __future__ import annotations

import pytest
from flask import Flask

from portal import create_app
from portal.http.marks import marks_of
from portal.services.people import sessions
from portal.services.people.second_factors import totp
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.second_factors import PAGE, App
from tests.integration.people.two_step.conftest import DOCUMENTS, TOKEN, is_signed_in


@pytest.fixture
def strict(make_services) -> tuple[Portal, Flask]:
    """Return a portal that requires a second factor of administrators."""
    services = make_services(sign_in={"require_second_factor": "administrators"})
    app = create_app(services)
    app.config["PROPAGATE_EXCEPTIONS"] = False
    return Portal.of(services), app


def test_user_who_must_set_up_a_second_factor_reaches_nothing_else(
    strict: tuple[Portal, Flask],
) -> None:
    portal, app = strict
    portal.add("Something to read.")
    browser = Browser(app)
    browser.sign_in("admin", PASSWORD)
    reached = []
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        is_open = marks_of(view).is_public or marks_of(view).is_for_enrolment
        if is_open or "GET" not in (rule.methods or ()) or rule.arguments:
            continue
        answer = browser.get(rule.rule)
        is_page = answer.status_code == 303 and answer.headers["Location"] == PAGE
        is_api = answer.status_code == 403 and "second_factor_enrolment_required" in answer.text
        if not (is_page or is_api):
            reached.append((rule.rule, answer.status_code))
    assert reached == []
    page = browser.get(PAGE)
    assert "requires two-step verification" in page.text
    assert "notification-bell" not in page.text


def test_second_factor_opens_the_portal_that_requires_it(strict: tuple[Portal, Flask]) -> None:
    portal, app = strict
    browser = Browser(app)
    browser.sign_in("admin", PASSWORD)
    browser.post(f"{PAGE}/totp", page=PAGE)
    phone = App(totp.find_enrolment(portal.services, portal.admin).secret)
    form = {"code": phone.code()}
    confirmed = browser.post(f"{PAGE}/totp/confirm", form, page=f"{PAGE}/totp")
    assert "new-recovery-codes" in browser.follow(confirmed).text
    assert is_signed_in(browser)


def test_token_of_a_password_opens_nothing_before_a_required_second_factor(
    strict: tuple[Portal, Flask],
) -> None:
    _, app = strict
    client = app.test_client()
    body = {"username": "admin", "password": PASSWORD}
    pair = client.post(TOKEN, json=body).json
    headers = {"Authorization": f"Bearer {pair['access_token']}"}
    refused = client.get(DOCUMENTS, headers=headers)
    assert refused.status_code == 403
    assert refused.json["error"]["code"] == "second_factor_enrolment_required"
    renewed = client.post("/api/auth/refresh", json={"refresh_token": pair["refresh_token"]}).json
    headers = {"Authorization": f"Bearer {renewed['access_token']}"}
    assert client.get(DOCUMENTS, headers=headers).status_code == 403
    secret = client.post("/api/account/second-factors/totp", headers=headers).json["secret"]
    code = {"code": App(secret).code()}
    client.post("/api/account/second-factors/totp/confirm", json=code, headers=headers)
    assert client.get(DOCUMENTS, headers=headers).status_code == 200


def test_requirement_for_administrators_leaves_others_alone(strict: tuple[Portal, Flask]) -> None:
    portal, app = strict
    portal.user("ada")
    browser = Browser(app)
    browser.sign_in("ada", PASSWORD)
    assert is_signed_in(browser)


def test_personal_and_operator_tokens_continue_working_under_the_requirement(
    strict: tuple[Portal, Flask],
) -> None:
    portal, app = strict
    client = app.test_client()
    _, secret = sessions.create_personal_token(
        portal.services, portal.admin, name="script", ttl_s=600
    )
    for token in (secret, portal.token(portal.admin)):
        headers = {"Authorization": f"Bearer {token}"}
        assert client.get(DOCUMENTS, headers=headers).status_code == 200


def test_off_in_yaml_is_not_read_as_a_boolean(make_services) -> None:
    services = make_services(sign_in={"require_second_factor": False})
    assert services.settings.sign_in.require_second_factor == "off"
