"""Codes of second factors, each accepted once, and guesses at them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient

from portal.errors import SignInExpired, WrongSecondFactor
from portal.services.people import second_factors
from portal.services.people.second_factors import recovery_codes
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.second_factors import PAGE, set_up_totp
from tests.factories.second_factors import recovery_codes as codes_in
from tests.integration.people.two_step.conftest import TOKEN, audited, is_signed_in, step


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
    replaced = visitor.post(f"{PAGE}/recovery-codes", page=PAGE)
    made = codes_in(visitor.follow(replaced).text)
    assert len(made) == recovery_codes.COUNT
    with pytest.raises(WrongSecondFactor):
        second_factors.check_code(portal.services, portal.admin.id, codes[0])
    second_factors.check_code(portal.services, portal.admin.id, made[0])


def test_pending_sign_in_allows_five_codes(portal: Portal, visitor: Browser) -> None:
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


def test_guesses_a_day_are_limited_too(portal: Portal) -> None:
    set_up_totp(portal, portal.admin)
    portal.execute(
        "INSERT INTO second_factor_failures (user_id, method, failed_at) "
        "SELECT :user_id, 'totp', now() - :age FROM generate_series(1, 30)",
        user_id=portal.admin.id,
        age=timedelta(hours=5),
    )
    with pytest.raises(second_factors.SecondFactorLocked) as locked:
        second_factors.check_code(portal.services, portal.admin.id, "000000")
    assert 18 * 3600 < locked.value.params["seconds"] <= 19 * 3600
