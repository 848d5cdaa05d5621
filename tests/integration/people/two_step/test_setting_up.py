"""Second factors set up in the browser and over the API."""

from __future__ import annotations

import re

from flask import Flask
from flask.testing import FlaskClient

from portal.services.people import second_factors
from portal.services.people.second_factors import recovery_codes, totp
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.second_factors import PAGE, App, set_up_totp
from tests.factories.second_factors import recovery_codes as codes_in
from tests.integration.people.two_step.conftest import (
    STEP,
    TOKEN,
    audited,
    is_signed_in,
    step,
)


def test_authenticator_app_is_set_up_in_the_browser_and_asked_for_from_then_on(
    portal: Portal, app: Flask, visitor: Browser
) -> None:
    visitor.sign_in("admin", PASSWORD)
    assert visitor.post(f"{PAGE}/totp", page=PAGE).status_code == 303
    page = visitor.get(f"{PAGE}/totp").text
    secret = totp.find_enrolment(portal.services, portal.admin).secret
    assert f'data-copy="{secret}"' in page
    # All of it is visible, in groups, and what is selected has no spaces.
    shown = page.split('data-testid="totp-secret">')[1].split("</code>")[0]
    assert "".join(re.findall(r"<span>(\w{4})</span><wbr>", shown)) == secret
    assert not re.search(r"\s", re.sub(r"<[^>]+>", "", shown))
    assert "<svg" in page
    assert "style=" not in page
    # The factor is inactive until a code proves that the app has the secret.
    assert not second_factors.has_any(portal.services, portal.admin.id)
    wrong = visitor.post(f"{PAGE}/totp/confirm", {"code": "000000"}, page=f"{PAGE}/totp")
    assert wrong.status_code == 422
    phone = App(secret)
    done = visitor.post(f"{PAGE}/totp/confirm", {"code": phone.code()}, page=f"{PAGE}/totp")
    assert len(set(codes_in(visitor.follow(done).text))) == recovery_codes.COUNT
    assert codes_in(visitor.get(PAGE).text) == []

    other = Browser(app)
    assert other.sign_in("admin", PASSWORD).headers["Location"].startswith(STEP)
    assert not is_signed_in(other)
    assert step(other, phone.code(1)).status_code == 303
    assert is_signed_in(other)
    assert audited(portal, "second_factor_added") == [{"method": "totp"}]


def test_secret_and_recovery_codes_cannot_be_read_from_the_database(portal: Portal) -> None:
    enrolment = totp.begin(portal.services, portal.admin)
    codes = totp.confirm(portal.services, portal.admin, App(enrolment.secret).code())
    stored = bytes(portal.scalar("SELECT sealed_secret FROM totp_secrets"))
    digests = [bytes(one) for one in portal.scalars("SELECT code_sha256 FROM recovery_codes")]
    assert enrolment.secret.encode() not in stored
    assert all(code.replace("-", "").encode() not in digest for code in codes for digest in digests)


def test_token_of_a_password_needs_a_code_where_the_account_has_a_second_factor(
    portal: Portal, client: FlaskClient
) -> None:
    body = {"username": "admin", "password": PASSWORD}
    # The request of the contract, without and with a code that is not required.
    assert client.post(TOKEN, json=body).status_code == 200
    assert client.post(TOKEN, json=body | {"otp": "123456"}).status_code == 200
    phone, codes = set_up_totp(portal, portal.admin)
    refused = client.post(TOKEN, json=body)
    assert (refused.status_code, refused.json["error"]["code"]) == (401, "second_factor_required")
    wrong = client.post(TOKEN, json=body | {"otp": "000000"})
    assert (wrong.status_code, wrong.json["error"]["code"]) == (401, "wrong_second_factor")
    for otp in (phone.code(), codes[0]):
        assert client.post(TOKEN, json=body | {"otp": otp}).status_code == 200
        assert client.post(TOKEN, json=body | {"otp": otp}).status_code == 401
    # With a wrong password, the response does not reveal whether there is a second factor.
    guess = client.post(TOKEN, json={"username": "admin", "password": "wrong", "otp": codes[1]})
    assert guess.json["error"]["code"] == "wrong_credentials"


def test_api_adds_lists_and_removes_a_second_factor(portal: Portal, client: FlaskClient) -> None:
    api, headers = "/api/account/second-factors", portal.headers()
    made = client.post(f"{api}/totp", headers=headers)
    assert made.status_code == 201
    code = App(made.json["secret"]).code()
    for wrong in ("１２３４５６", "5\u00b3\u00f1j"):
        refused = client.post(f"{api}/totp/confirm", json={"code": wrong}, headers=headers)
        assert refused.status_code == 401
    confirmed = client.post(f"{api}/totp/confirm", json={"code": code}, headers=headers)
    assert len(confirmed.json["recovery_codes"]) == recovery_codes.COUNT
    assert client.post(f"{api}/totp", headers=headers).status_code == 409
    shown = client.get(api, headers=headers).json
    assert shown["totp"]["created_at"]
    assert (shown["required"], shown["passkeys"], shown["recovery_codes_left"]) == (False, [], 10)
    assert client.delete(f"{api}/totp", headers=headers).status_code == 204
    assert client.delete(f"{api}/totp", headers=headers).status_code == 404
    shown = client.get(api, headers=headers).json
    assert (shown["totp"], shown["recovery_codes_left"]) == (None, 0)
