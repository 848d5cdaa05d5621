"""Rate limits: the table of limits, client addresses, sign-in, and what a refusal contains."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore

import pytest
from flask import jsonify
from flask.testing import FlaskClient

from portal import create_app, limits
from portal.http import cookies
from portal.http.marks import marks_of
from portal.limits import callers
from portal.services import Services
from portal.services.people import accounts, administration
from portal.settings import RateLimitSettings
from tests.conftest import PASSWORD, Portal

PROBE = "/api/v1/probe"
LIST = "/api/user/document-defaults"
ON = {"enabled": True}
TABLE = (
    *("search_semantic", "search_text", "search_hybrid", "search_similar"),
    *("list_chunks", "get_chunk"),
)


@pytest.fixture
def open_portal(
    make_services: Callable[..., Services],
) -> Callable[..., tuple[Portal, FlaskClient]]:
    def open_(**settings: object) -> tuple[Portal, FlaskClient]:
        services = make_services(**({"rate_limits": ON} | settings))
        accounts.ensure_first_administrator(services)
        app = create_app(services)

        @limits.limited("search_semantic")
        def probe() -> object:
            return jsonify(ok=True)

        app.add_url_rule(PROBE, view_func=probe)
        return Portal(services, accounts.find_user(services, "admin")), app.test_client()

    return open_


def sign_in(client: FlaskClient, name: str, password: str, address: str = "127.0.0.1", **headers):
    return client.post(
        "/api/auth/token",
        json={"username": name, "password": password},
        environ_base={"REMOTE_ADDR": address},
        headers=headers,
    )


def guesses(client: FlaskClient, count: int, *, name: str = "admin", address: str = "127.0.0.1"):
    return [sign_in(client, name, f"guess {n}", address).status_code for n in range(count)]


def test_every_route_has_a_limit_that_can_be_set(open_portal) -> None:
    _, client = open_portal()
    names = {marks_of(view).rate_limit for view in client.application.view_functions.values()}
    assert {f"{name}_burst" for name in names} <= RateLimitSettings.model_fields.keys()


def test_link_sets_a_password_once_and_wrong_ones_are_limited(open_portal) -> None:
    portal, client = open_portal()
    client.application.config["WTF_CSRF_METHODS"] = set()
    ada = portal.user("ada")
    link = administration.begin_password_reset(portal.services, portal.admin, ada.id).secret
    form = {"password": "seven blue herons", "password_again": "seven blue herons"}
    assert client.post(f"/reset/{link}", data=form).status_code == 303
    statuses = [client.post(f"/reset/{link}", data=form).status_code for _ in range(11)]
    assert statuses == [404] * 10 + [429]


def test_wrong_links_from_elsewhere_do_not_block_a_valid_link(open_portal) -> None:
    portal, client = open_portal(rate_limits=ON | {"sign_in_name": "3 per hour"})
    client.application.config["WTF_CSRF_METHODS"] = set()
    form = {"password": "seven blue herons", "password_again": "seven blue herons"}
    for number in range(4):
        elsewhere = {"REMOTE_ADDR": f"192.0.2.{number}"}
        answer = client.post("/reset/x", data=form, environ_base=elsewhere)
        assert answer.status_code == 404
    ada = portal.user("ada")
    link = administration.begin_password_reset(portal.services, portal.admin, ada.id).secret
    assert client.post(f"/reset/{link}", data=form).status_code == 303


# --- bursts ---------------------------------------------------------------------------------------


@pytest.fixture
def held_open(open_portal) -> Callable[..., tuple[list[int], list[int]]]:
    """Return a function that gives the statuses of concurrent requests, and of one after them."""

    def ask(count: int, **rate_limits: object) -> tuple[list[int], list[int]]:
        portal, client = open_portal(rate_limits=ON | rate_limits)
        let_go, begun = Event(), Semaphore(0)

        @limits.limited("search_hybrid")
        def slow() -> object:
            begun.release()
            let_go.wait(30)
            return jsonify(ok=True)

        # Flask accepts no more routes once it has served a request.
        app = client.application
        app.add_url_rule(f"{PROBE}/slow", view_func=slow)
        headers = portal.headers()

        def get() -> int:
            status = app.test_client().get(f"{PROBE}/slow", headers=headers).status_code
            begun.release()
            return status

        with ThreadPoolExecutor(count) as pool:
            running = [pool.submit(get) for _ in range(count)]
            for _ in range(count):
                # Each request has either begun or been refused.
                assert begun.acquire(timeout=30)
            let_go.set()
            return sorted(one.result() for one in running), [get()]

    return ask


def test_burst_limits_concurrent_requests_of_an_endpoint(held_open) -> None:
    together, later = held_open(5)
    assert together == [200] * 3 + [429] * 2
    assert later == [200]


def test_burst_is_a_setting(held_open) -> None:
    assert held_open(5, search_hybrid_burst=1)[0] == [200] + [429] * 4
    assert held_open(5, search_hybrid_burst=0)[0] == [200] * 5


# --- the table ------------------------------------------------------------------------------------


def test_default_limits_are_those_of_the_table() -> None:
    table = RateLimitSettings().model_dump()
    assert {name: table[name] for name in TABLE} == {
        "search_semantic": "30 per minute",
        "search_text": "60 per minute",
        "search_hybrid": "20 per minute",
        "search_similar": "40 per minute",
        "list_chunks": "100 per minute",
        "get_chunk": "200 per minute",
    }
    assert [table[f"{name}_burst"] for name in TABLE] == [5, 10, 3, 5, 10, 20]


def test_each_of_them_is_the_limit_of_its_endpoint(open_portal) -> None:
    app = open_portal()[1].application
    marked = {
        (method, rule.rule): marks_of(app.view_functions[rule.endpoint]).rate_limit
        for rule in app.url_map.iter_rules()
        for method in rule.methods or ()
    }
    job = "/api/v1/jobs/<uuid:job_id>/chunks"
    assert {
        ("POST", "/api/v1/search/semantic"): "search_semantic",
        ("POST", "/api/v1/search/text"): "search_text",
        ("POST", "/api/v1/search/hybrid"): "search_hybrid",
        ("GET", "/api/v1/search/similar/<uuid:chunk_id>"): "search_similar",
        ("GET", job): "list_chunks",
        ("GET", f"{job}/<uuid:chunk_id>"): "get_chunk",
    }.items() <= marked.items()


def test_endpoint_allows_its_limit_and_says_how_much_is_left(open_portal) -> None:
    portal, client = open_portal()
    headers = portal.headers()
    answers = [client.get(PROBE, headers=headers) for _ in range(31)]
    assert [answer.status_code for answer in answers] == [200] * 30 + [429]
    assert {answer.headers["X-RateLimit-Limit"] for answer in answers} == {"30"}
    left = [int(answer.headers["X-RateLimit-Remaining"]) for answer in answers]
    assert left == [*range(29, -1, -1), 0]
    assert all("Retry-After" not in answer.headers for answer in answers[:-1])
    refused = answers[-1]
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert 0 <= int(refused.headers["X-RateLimit-Reset"]) - time.time() <= 61
    assert refused.json["success"] is False
    assert refused.json["error"]["code"] == "rate_limited"
    assert refused.headers["Retry-After"] in refused.json["error"]["message"]


def test_users_and_endpoints_are_counted_apart(open_portal) -> None:
    portal, client = open_portal(rate_limits=ON | {"search_semantic": "2 per minute"})
    ann = portal.headers(portal.user("ann"))
    assert [client.get(PROBE, headers=ann).status_code for _ in range(3)] == [200, 200, 429]
    assert client.get(PROBE, headers=portal.headers()).status_code == 200
    assert client.get(LIST, headers=ann).status_code == 200


def test_tokens_of_one_user_share_a_limit(open_portal) -> None:
    portal, client = open_portal(rate_limits=ON | {"search_semantic": "2 per minute"})
    answers = [client.get(PROBE, headers=portal.headers()).status_code for _ in range(3)]
    assert answers == [200, 200, 429]


def test_everything_else_has_the_general_limit(open_portal) -> None:
    portal, client = open_portal(rate_limits=ON | {"default": "3 per minute"})
    headers = portal.headers()
    assert [client.get(LIST, headers=headers).status_code for _ in range(4)] == [200] * 3 + [429]
    page = client.get("/login")
    assert page.status_code == 200
    assert page.headers["X-RateLimit-Limit"] == "3"


def test_refused_request_for_a_page_gets_a_page(open_portal) -> None:
    _, client = open_portal(rate_limits=ON | {"default": "1 per minute"})
    client.get("/login")
    refused = client.get("/login")
    assert refused.status_code == 429
    assert refused.mimetype == "text/html"
    assert int(refused.headers["Retry-After"]) >= 1


def test_anonymous_requests_count_although_they_are_refused(open_portal) -> None:
    _, client = open_portal(rate_limits=ON | {"default": "3 per minute"})
    assert [client.get(LIST).status_code for _ in range(5)] == [401] * 3 + [429] * 2


def test_health_metrics_and_files_are_not_limited(open_portal) -> None:
    _, client = open_portal(rate_limits=ON | {"default": "1 per minute"})
    for path in ("/health", "/static/vendor/x/htmx.js"):
        answers = [client.get(path) for _ in range(3)]
        assert {answer.status_code for answer in answers} == {200}
        assert all("X-RateLimit-Limit" not in answer.headers for answer in answers)


def test_switching_limits_off_keeps_the_sign_in_limit(open_portal) -> None:
    portal, client = open_portal(
        rate_limits={"enabled": False, "default": "1 per minute", "search_semantic": "1 per minute"}
    )
    headers = portal.headers()
    assert {client.get(PROBE, headers=headers).status_code for _ in range(5)} == {200}
    assert {client.get(LIST, headers=headers).status_code for _ in range(5)} == {200}
    assert guesses(client, 12) == [401] * 10 + [429] * 2


# --- addresses ------------------------------------------------------------------------------------


def test_forged_forwarding_gains_nothing_without_a_proxy(open_portal) -> None:
    _, client = open_portal()
    answers = [
        sign_in(client, "admin", "guess", **{"X-Forwarded-For": f"10.0.0.{n}"}).status_code
        for n in range(12)
    ]
    assert answers == [401] * 10 + [429] * 2


def test_forged_forwarding_gains_nothing_behind_a_proxy(open_portal) -> None:
    _, client = open_portal(trusted_proxies=1)
    # The proxy appends the real address to the one that the client made up.
    answers = [
        sign_in(client, "admin", "x", **{"X-Forwarded-For": f"10.0.0.{n}, 203.0.113.9"}).status_code
        for n in range(12)
    ]
    assert answers == [401] * 10 + [429] * 2
    other = sign_in(client, "admin", PASSWORD, **{"X-Forwarded-For": "203.0.113.10"})
    assert other.status_code == 200


def test_ipv6_network_counts_as_one_address(open_portal) -> None:
    _, client = open_portal()
    answers = [
        sign_in(client, "admin", "guess", f"2001:db8:1:2::{n:x}").status_code for n in range(12)
    ]
    assert answers == [401] * 10 + [429] * 2
    assert sign_in(client, "admin", PASSWORD, "2001:db8:1:3::1").status_code == 200
    assert sign_in(client, "admin", PASSWORD, "::ffff:192.0.2.1").status_code == 200


# --- sign-in --------------------------------------------------------------------------------------


def test_other_names_from_one_address_share_its_limit(open_portal) -> None:
    _, client = open_portal(rate_limits={"enabled": False, "sign_in_address": "15 per minute"})
    answers = [sign_in(client, f"name {n}", "guess").status_code for n in range(20)]
    assert answers == [401] * 15 + [429] * 5
    assert sign_in(client, "admin", PASSWORD, "192.0.2.7").status_code == 200


def test_other_addresses_at_one_name_share_its_limit(open_portal) -> None:
    _, client = open_portal(rate_limits={"enabled": False, "sign_in_name": "15 per hour"})
    answers = [sign_in(client, "admin", "guess", f"192.0.2.{n}").status_code for n in range(20)]
    assert answers == [401] * 15 + [429] * 5


def by_form(browser: FlaskClient, password: str) -> int:
    """Sign out, then sign in as a browser does."""
    browser.delete_cookie(cookies.SESSION)
    found = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/login").text)
    assert found is not None
    form = {"csrf_token": found[1], "name": "admin", "password": password}
    return browser.post("/login", data=form).status_code


def test_attackers_do_not_lock_a_user_out_of_a_known_browser(open_portal) -> None:
    _, theirs = open_portal(rate_limits={"enabled": False, "sign_in_name": "15 per hour"})
    anonymous = theirs.application.test_client()
    assert by_form(theirs, PASSWORD) == 303
    # Guesses come from everywhere, including the user's own address.
    assert 429 in guesses(anonymous, 12)
    for n in range(20):
        sign_in(anonymous, "admin", "guess", f"192.0.2.{n}")
    assert by_form(anonymous, PASSWORD) == 429
    assert by_form(theirs, PASSWORD) == 303
    # A known browser has a limit on guesses, too.
    assert [by_form(theirs, "guess") for _ in range(12)] == [401] * 10 + [429] * 2


def test_attackers_do_not_lock_a_user_out_of_a_known_address(open_portal) -> None:
    few = {"enabled": False, "sign_in_name": "2 per hour", "sign_in": "100 per minute"}
    _, client = open_portal(rate_limits=few)
    home, office = "192.0.2.200", "2001:db8:1:2::1"
    assert {sign_in(client, "admin", PASSWORD, one).status_code for one in (home, office)} == {200}
    answers = [sign_in(client, "admin", "guess", f"192.0.2.{n}").status_code for n in range(3)]
    assert answers == [401] * 2 + [429]
    assert sign_in(client, "admin", PASSWORD, "192.0.2.9").status_code == 429
    # A program has no cookie; its address is trusted for that name only.
    assert sign_in(client, "admin", PASSWORD, home).status_code == 200
    assert guesses(client, 3, address=home) == [401] * 2 + [429]
    assert sign_in(client, "admin", PASSWORD, office).status_code == 200
    assert guesses(client, 3, name="other", address=office) == [401] * 2 + [429]
    assert sign_in(client, "other", "guess", home).status_code == 429


def test_forged_device_cookie_is_worth_nothing(open_portal) -> None:
    _, client = open_portal(rate_limits={"enabled": False, "sign_in_name": "5 per hour"})
    client.set_cookie("portal_device", "WyJhIiwiYiJd.made.up")
    answers = [sign_in(client, "admin", "guess", f"192.0.2.{n}").status_code for n in range(6)]
    assert answers == [401] * 5 + [429]


def test_success_is_not_counted_and_a_refusal_does_not_extend_the_window(open_portal) -> None:
    _, client = open_portal()
    assert guesses(client, 9) == [401] * 9
    assert {sign_in(client, "admin", PASSWORD).status_code for _ in range(5)} == {200}
    assert guesses(client, 2) == [401, 429]
    first = sign_in(client, "admin", "guess").headers
    again = sign_in(client, "admin", "guess").headers
    assert first["X-RateLimit-Reset"] == again["X-RateLimit-Reset"]


def test_counter_keys_contain_no_names(open_portal) -> None:
    _, client = open_portal()
    with client.application.test_request_context(
        "/api/auth/token", method="POST", json={"username": "my password", "password": "x"}
    ):
        assert "my password" not in callers.tried_name()
