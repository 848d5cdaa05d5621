"""Two-step verification: set-up, sign-in, and attempts to bypass it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.domain.people import Scope
from portal.errors import SignInExpired, WrongSecondFactor
from portal.services.people import accounts, second_factors, sessions
from portal.services.people.second_factors import recovery_codes, totp
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.second_factors import PAGE, App, set_up_totp
from tests.factories.second_factors import recovery_codes as codes_in

STEP = "/login/second-step"
TOKEN = "/api/auth/token"
DOCUMENTS = "/api/knowledge/documents"


@pytest.fixture
def app(client: FlaskClient) -> Flask:
    return client.application


@pytest.fixture
def visitor(app: Flask) -> Browser:
    return Browser(app)


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """A code must not expire between being read off the app and being sent."""
    now = time.time()
    monkeypatch.setattr(totp, "time", SimpleNamespace(time=lambda: now))


def step(browser: Browser, code: str):
    return browser.post(STEP, {"code": code}, page=STEP)


def is_signed_in(browser: Browser) -> bool:
    return browser.get("/documents").status_code == 200


def audited(portal: Portal, event: str) -> list[dict[str, object]]:
    with portal.services.database.begin() as session:
        rows = session.execute(
            text("SELECT details FROM audit_log WHERE event = :event ORDER BY created_at"),
            {"event": event},
        )
        return list(rows.scalars())


# --- setting up -----------------------------------------------------------------------------------


def test_authenticator_app_is_set_up_in_the_browser_and_asked_for_from_then_on(
    portal: Portal, app: Flask, visitor: Browser
) -> None:
    visitor.sign_in("admin", PASSWORD)
    assert visitor.post(f"{PAGE}/totp", page=PAGE).status_code == 303
    page = visitor.get(f"{PAGE}/totp").text
    secret = totp.find_enrolment(portal.services, portal.admin).secret
    assert secret in page
    assert "<svg" in page
    assert "style=" not in page
    # The factor is inactive until a code proves that the app has the secret.
    assert not second_factors.has_any(portal.services, portal.admin.id)
    wrong = visitor.post(f"{PAGE}/totp/confirm", {"code": "000000"}, page=f"{PAGE}/totp")
    assert wrong.status_code == 422
    phone = App(secret)
    done = visitor.post(f"{PAGE}/totp/confirm", {"code": phone.code()}, page=f"{PAGE}/totp")
    assert len(set(codes_in(done.text))) == recovery_codes.COUNT
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
    with portal.services.database.begin() as session:
        stored = bytes(session.scalar(text("SELECT sealed_secret FROM totp_secrets")))
        digests = [
            bytes(one) for one in session.scalars(text("SELECT code_sha256 FROM recovery_codes"))
        ]
    assert enrolment.secret.encode() not in stored
    assert all(code.replace("-", "").encode() not in one for code in codes for one in digests)


def test_forms_of_another_site_set_nothing_up_and_remove_nothing(
    portal: Portal, visitor: Browser
) -> None:
    visitor.sign_in("admin", PASSWORD)
    for path in ("/totp", "/totp/confirm", "/totp/remove", "/passkeys", "/passkeys/options",
                 "/recovery-codes"):  # fmt: skip
        assert visitor.client.post(PAGE + path, base_url="http://localhost").status_code == 403
    with portal.services.database.begin() as session:
        assert session.scalar(text("SELECT count(*) FROM totp_secrets")) == 0


def test_personal_token_cannot_change_second_factors(portal: Portal, client: FlaskClient) -> None:
    set_up_totp(portal, portal.admin)
    _, secret = sessions.create_personal_token(
        portal.services, portal.admin, name="script", ttl_s=600, scopes=Scope
    )
    headers = {"Authorization": f"Bearer {secret}"}
    api = "/api/account/second-factors"
    assert client.delete(f"{api}/totp", headers=headers).status_code == 403
    assert client.post(f"{api}/recovery-codes", headers=headers).status_code == 403
    assert client.post(f"{api}/totp", headers=headers).status_code == 403
    # The token still works for everything else: it was created after a full sign-in.
    assert client.get(DOCUMENTS, headers=headers).status_code == 200


# --- codes ----------------------------------------------------------------------------------------


def test_code_is_accepted_once(portal: Portal, app: Flask) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    first, second = Browser(app), Browser(app)
    first.sign_in("admin", PASSWORD)
    second.sign_in("admin", PASSWORD)
    code = phone.code()
    assert step(first, code).status_code == 303
    refused = step(second, code)
    assert refused.status_code == 401
    assert not is_signed_in(second)


def test_code_sent_twice_at_once_is_accepted_once(portal: Portal) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    code = phone.code()

    def attempt(_number: int) -> bool:
        try:
            second_factors.check_code(portal.services, portal.admin.id, code)
        except WrongSecondFactor:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(attempt, range(4))) == [False, False, False, True]


def test_clocks_may_differ_by_one_step_and_no_more(portal: Portal) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    for steps in (-2, 2, 3):
        with pytest.raises(WrongSecondFactor):
            second_factors.check_code(portal.services, portal.admin.id, phone.code(steps))
    second_factors.check_code(
        portal.services, portal.admin.id, f" {phone.code(1)[:3]} {phone.code(1)[3:]} "
    )


def test_recovery_code_works_once_and_is_recorded(portal: Portal, app: Flask) -> None:
    _, codes = set_up_totp(portal, portal.admin)
    first, second = Browser(app), Browser(app)
    first.sign_in("admin", PASSWORD)
    assert step(first, codes[0].upper().replace("-", " ")).status_code == 303
    assert is_signed_in(first)
    assert "9 unused recovery codes are left" in first.get(PAGE).text
    second.sign_in("admin", PASSWORD)
    assert step(second, codes[0]).status_code == 401
    assert audited(portal, "recovery_code_used") == [{"left": 9}]
    assert "Codes left: 9." in first.get("/notifications").text


def test_new_recovery_codes_replace_the_old_ones(portal: Portal, visitor: Browser) -> None:
    phone, codes = set_up_totp(portal, portal.admin)
    visitor.sign_in("admin", PASSWORD)
    step(visitor, phone.code())
    made = codes_in(visitor.post(f"{PAGE}/recovery-codes", page=PAGE).text)
    assert len(made) == recovery_codes.COUNT
    with pytest.raises(WrongSecondFactor):
        second_factors.check_code(portal.services, portal.admin.id, codes[0])
    second_factors.check_code(portal.services, portal.admin.id, made[0])


# --- guessing -------------------------------------------------------------------------------------


def test_pending_sign_in_takes_five_codes(portal: Portal, visitor: Browser) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    visitor.sign_in("admin", PASSWORD)
    answers = [step(visitor, f"{number:06}").status_code for number in range(5)]
    assert answers == [401] * 5
    # Even the right code is too late now: the user must enter the password again.
    late = step(visitor, phone.code())
    assert (late.status_code, late.headers["Location"]) == (303, "/login")
    assert not is_signed_in(visitor)


def test_starting_again_gives_no_more_guesses_and_leaves_other_methods_open(
    portal: Portal, app: Flask
) -> None:
    phone, codes = set_up_totp(portal, portal.admin)
    answers: list[int] = []
    for _ in range(3):
        browser = Browser(app)
        browser.sign_in("admin", PASSWORD)
        answers += [step(browser, f"{number:06}").status_code for number in range(4)]
    assert answers == [401] * 10 + [429] * 2
    owner = Browser(app, address="192.0.2.77")
    owner.sign_in("admin", PASSWORD)
    locked = step(owner, phone.code())
    assert locked.status_code == 429
    assert int(locked.headers["Retry-After"]) > 0
    # Recovery codes have a limit of their own.
    assert step(owner, codes[0]).status_code == 303


def test_guesses_over_the_api_and_in_the_browser_share_one_count(
    portal: Portal, client: FlaskClient, visitor: Browser
) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    body = {"username": "admin", "password": PASSWORD}
    for number in range(10):
        with pytest.raises(WrongSecondFactor):
            second_factors.check_code(portal.services, portal.admin.id, f"{number:06}")
    answer = client.post(TOKEN, json=body | {"otp": phone.code()})
    assert (answer.status_code, answer.json["error"]["code"]) == (429, "second_factor_locked")


def test_guesses_at_once_are_all_counted(portal: Portal) -> None:
    set_up_totp(portal, portal.admin)

    def attempt(number: int) -> str:
        try:
            second_factors.check_code(
                portal.services, portal.admin.id, f"{number:06}", sign_in="one sign-in"
            )
        except (WrongSecondFactor, SignInExpired) as error:
            return error.code
        return "passed"

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(attempt, range(12)))
    assert answers.count("wrong_second_factor") == second_factors.MAX_FAILURES_OF_SIGN_IN
    assert answers.count("sign_in_expired") == 12 - second_factors.MAX_FAILURES_OF_SIGN_IN


def test_a_day_of_guessing_is_bounded_too(portal: Portal) -> None:
    set_up_totp(portal, portal.admin)
    with portal.services.database.begin() as session:
        session.execute(
            text(
                "INSERT INTO second_factor_failures (user_id, method, failed_at) "
                "SELECT :user_id, 'totp', now() - :age FROM generate_series(1, 30)"
            ),
            {"user_id": portal.admin.id, "age": timedelta(hours=5)},
        )
    with pytest.raises(second_factors.SecondFactorLocked) as locked:
        second_factors.check_code(portal.services, portal.admin.id, "000000")
    assert 18 * 3600 < locked.value.params["seconds"] <= 19 * 3600


# --- getting around it ----------------------------------------------------------------------------


def test_pending_sign_in_opens_nothing(portal: Portal, app: Flask, visitor: Browser) -> None:
    set_up_totp(portal, portal.admin)
    visitor.sign_in("admin", PASSWORD)
    state = visitor.cookie("portal_sign_in")
    assert state
    thief = app.test_client()
    thief.set_cookie("portal_session", state)
    assert thief.get("/documents").status_code == 303
    headers = {"Authorization": f"Bearer {state}"}
    assert app.test_client().get(DOCUMENTS, headers=headers).status_code == 401
    for path in ("/documents", "/account", PAGE, "/admin", "/chat"):
        assert "/login" in visitor.get(path).headers["Location"], path


def test_second_step_without_the_first_leads_back_to_it(visitor: Browser) -> None:
    for answer in (visitor.get(STEP), visitor.post(STEP, {"code": "123456"}, page="/login")):
        assert (answer.status_code, answer.headers["Location"]) == (303, "/login")


def test_code_of_another_user_does_not_pass(portal: Portal, app: Flask) -> None:
    eve = portal.user("eve")
    eves_phone, eves_codes = set_up_totp(portal, eve)
    set_up_totp(portal, portal.admin)
    browser = Browser(app)
    browser.sign_in("admin", PASSWORD)
    assert step(browser, eves_phone.code()).status_code == 401
    assert step(browser, eves_codes[0]).status_code == 401


def test_pending_sign_in_of_another_user_signs_that_user_in_only_with_their_code(
    portal: Portal, app: Flask
) -> None:
    eve = portal.user("eve")
    eves_phone, _ = set_up_totp(portal, eve)
    set_up_totp(portal, portal.admin)
    victim, attacker = Browser(app), Browser(app)
    victim.sign_in("admin", PASSWORD)
    attacker.sign_in("eve", PASSWORD)
    # A code from the attacker's own app does not complete a stolen pending sign-in.
    stolen = victim.cookie("portal_sign_in")
    assert stolen
    attacker.client.set_cookie("portal_sign_in", stolen)
    assert step(attacker, eves_phone.code()).status_code == 401
    assert not is_signed_in(attacker)


def test_password_that_changes_meanwhile_stops_the_second_step(
    portal: Portal, visitor: Browser
) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    visitor.sign_in("admin", PASSWORD)
    accounts.change_password(
        portal.services, portal.admin, current=PASSWORD, new="another long password"
    )
    assert step(visitor, phone.code()).status_code == 401
    assert not is_signed_in(visitor)


def test_changing_the_password_keeps_the_session_and_its_second_factor(
    portal: Portal, visitor: Browser
) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    visitor.sign_in("admin", PASSWORD)
    step(visitor, phone.code())
    new = "another long password"
    form = {"current": PASSWORD, "new": new, "new_again": new}
    assert visitor.post("/account/password", form).status_code == 303
    assert is_signed_in(visitor)


def test_session_from_before_has_to_take_the_second_step_after_a_new_password(
    portal: Portal, visitor: Browser
) -> None:
    visitor.sign_in("admin", PASSWORD)
    set_up_totp(portal, portal.admin)  # In another browser.
    new = "another long password"
    form = {"current": PASSWORD, "new": new, "new_again": new}
    assert visitor.post("/account/password", form).headers["Location"].startswith(STEP)
    assert not is_signed_in(visitor)


# --- programs -------------------------------------------------------------------------------------


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


def test_api_lists_and_removes(portal: Portal, client: FlaskClient) -> None:
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


# --- required -------------------------------------------------------------------------------------


@pytest.fixture
def strict(make_services) -> tuple[Portal, Flask]:
    """Return a portal that requires a second factor of administrators."""
    services = make_services(sign_in={"require_second_factor": "administrators"})
    app = create_app(services)
    app.config["PROPAGATE_EXCEPTIONS"] = False
    return Portal.of(services), app


def test_who_has_to_set_up_a_second_factor_reaches_nothing_else(
    strict: tuple[Portal, Flask],
) -> None:
    portal, app = strict
    portal.add("Something to read.")
    browser = Browser(app)
    browser.sign_in("admin", PASSWORD)
    reached = []
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        is_open = getattr(view, "is_public", False) or getattr(view, "is_for_enrolment", False)
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
    assert browser.post(f"{PAGE}/totp/confirm", form, page=f"{PAGE}/totp").status_code == 200
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


def test_off_in_yaml_is_no_boolean(make_services) -> None:
    services = make_services(sign_in={"require_second_factor": False})
    assert services.settings.sign_in.require_second_factor == "off"


# --- losing everything ----------------------------------------------------------------------------


def test_administrator_removes_the_second_factors_of_a_user(portal: Portal, app: Flask) -> None:
    ada = portal.user("ada")
    set_up_totp(portal, ada)
    browser = Browser(app)
    browser.sign_in("admin", PASSWORD)
    path = f"/admin/users/{ada.id}/second-factors/remove"
    assert path in browser.get("/admin").text
    assert browser.post(path, page="/admin").status_code == 303
    assert path not in browser.get("/admin").text
    with_password = Browser(app)
    with_password.sign_in("ada", PASSWORD)
    assert is_signed_in(with_password)
    assert audited(portal, "second_factor_removed") == [{"method": "all"}]


def test_stale_session_changes_no_second_factor_without_the_password(
    portal: Portal, app: Flask, visitor: Browser
) -> None:
    ada = portal.user("ada")
    set_up_totp(portal, ada)
    visitor.sign_in("admin", PASSWORD)
    with portal.services.database.begin() as session:
        session.execute(text("UPDATE sessions SET authenticated_at = now() - interval '1 hour'"))
    paths = [
        f"/admin/users/{ada.id}/second-factors/remove",
        *(f"{PAGE}/{name}" for name in ("totp", "totp/confirm", "totp/remove")),
        *(f"{PAGE}/{name}" for name in ("passkeys", "passkeys/options", "recovery-codes")),
    ]
    for path in paths:
        assert visitor.post(path, page=PAGE).status_code == 403, path
    api = "/api/account/second-factors"
    assert visitor.call("DELETE", f"{api}/totp").status_code == 403
    assert second_factors.has_any(portal.services, ada.id)
    # With the password, the same form goes through.
    form = {"confirm_password": PASSWORD}
    assert visitor.post(paths[0], form, page=PAGE).status_code == 303


def test_changed_secret_key_does_not_skip_the_second_step(portal: Portal, make_services) -> None:
    phone, codes = set_up_totp(portal, portal.admin)
    services = make_services(secret_key="another key that is long enough for HS256, really")
    moved = Browser(create_app(services))
    moved.sign_in("admin", PASSWORD)
    refused = step(moved, phone.code())
    assert refused.status_code == 401
    assert "secret key has changed" in refused.text
    assert step(moved, codes[0]).status_code == 303


def test_rotated_secret_key_reads_what_the_old_one_sealed(portal: Portal, make_services) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    new, old = "another key that is long enough for HS256, really", portal.services.secret_key
    rotated = make_services(secret_key=new, secret_key_old=old)
    second_factors.check_code(rotated, portal.admin.id, phone.code())
    # Using the factor re-encrypted its secret with the new key: the old one is no longer needed.
    second_factors.check_code(make_services(secret_key=new), portal.admin.id, phone.code(1))


def test_dialog_of_an_ended_session_leads_to_the_second_step_and_back(
    portal: Portal, visitor: Browser
) -> None:
    authenticator, _ = set_up_totp(portal, portal.admin)
    form = {"csrf_token": visitor.csrf_token("/login"), "next": "/chat"}
    form |= {"name": "admin", "password": PASSWORD}
    headers = {"HX-Request": "true", "Referer": "http://localhost/chat"}
    answer = visitor.client.post("/login", data=form, headers=headers)
    assert (answer.status_code, answer.text) == (200, "")
    # The page does not go on as if it were signed in.
    assert "HX-Trigger" not in answer.headers
    assert not is_signed_in(visitor)
    address = answer.headers["HX-Redirect"]
    assert address.startswith(STEP)
    done = visitor.post(address, {"code": authenticator.code()}, page=address)
    assert (done.status_code, done.location) == (303, "/chat")
    assert is_signed_in(visitor)
