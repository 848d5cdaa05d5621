"""Linking an account to the provider, unlinking it, and confirming one's identity."""

from __future__ import annotations

import time

from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.servers.oidc import LyingProvider, Provider, path, query
from tests.integration.people.oidc.conftest import (
    MakePortal,
    browser_of,
    callback,
    events,
    id_token,
    name_of,
    sign_in,
)


def signed_in(portal: Portal, name: str = "ada") -> Browser:
    browser = browser_of(portal)
    assert browser.sign_in(name, PASSWORD).status_code == 303
    return browser


def begin_link(browser: Browser, page: str = "/oidc/link") -> str:
    answer = browser.post(page)
    assert answer.status_code == 200, answer.text
    address = answer.headers["Refresh"].removeprefix("0; url=")
    assert f'href="{address}"'.replace("&", "&amp;") in answer.text
    return address


def grow_old(portal: Portal) -> None:
    """Make all sign-ins an hour older."""
    portal.execute("UPDATE sessions SET authenticated_at = now() - interval '1 hour'")


def test_user_links_their_account_and_signs_in_with_it(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer, label="Example ID")
    portal.user("ada")
    provider.set_user("7f3a", preferred_username="ada")
    assert sign_in(browser_of(portal), provider, "7f3a").status_code == 409
    browser = signed_in(portal)
    answer = browser.get(path(provider.approve(begin_link(browser), "7f3a")))
    assert answer.headers["Location"] == "/account#sign-ins"
    page = browser.get("/account").text
    assert 'data-testid="identity-row"' in page
    assert "linked to your account" in page
    assert "oidc_linked" in events(portal)
    other = browser_of(portal)
    assert sign_in(other, provider, "7f3a").status_code == 303
    assert name_of(other) == "ada"


def test_link_belongs_to_the_session_in_which_it_began(
    provider: Provider, make_portal: MakePortal
) -> None:
    """Otherwise an attacker could link their own identity to a victim's account."""
    portal = make_portal(provider.issuer)
    portal.user("ada")
    portal.user("eve")
    attacker, victim = signed_in(portal, "eve"), signed_in(portal, "ada")
    address = provider.approve(begin_link(attacker), "evil")
    assert victim.get(path(address)).status_code == 400
    victim.client.set_cookie("portal_oidc", attacker.cookie("portal_oidc") or "")
    assert victim.get(path(address)).status_code == 400
    assert "identity-row" not in victim.get("/account").text
    assert browser_of(portal).get(path(address)).status_code == 400


def test_subject_of_another_account_cannot_be_linked(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer)
    for name in ("ada", "eve"):
        portal.user(name)
        browser = signed_in(portal, name)
        browser.get(path(provider.approve(begin_link(browser), "7f3a")))
    assert "belongs to another account" in browser.get("/account").text
    other = browser_of(portal)
    sign_in(other, provider, "7f3a")
    assert name_of(other) == "ada"


def test_unlinking_ends_the_sessions_that_began_with_it(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer)
    portal.user("ada")
    browser = signed_in(portal)
    browser.get(path(provider.approve(begin_link(browser), "unlinked")))
    other = browser_of(portal)
    sign_in(other, provider, "unlinked")
    identity = {"issuer": provider.issuer, "subject": "unlinked"}
    assert browser.post("/oidc/unlink", identity).status_code == 303
    assert (name_of(browser), name_of(other)) == ("ada", None)
    assert sign_in(browser_of(portal), provider, "unlinked").status_code == 403
    assert "oidc_unlinked" in events(portal)
    assert browser.post("/oidc/unlink", identity).status_code == 404


def test_only_way_to_sign_in_cannot_be_removed(provider: Provider, make_portal: MakePortal) -> None:
    portal = make_portal(provider.issuer, create_accounts=True)
    browser = browser_of(portal)
    sign_in(browser, provider, "lonely")
    browser.post("/oidc/unlink", {"issuer": provider.issuer, "subject": "lonely"})
    assert "only way into your account" in browser.get("/account").text
    assert sign_in(browser_of(portal), provider, "lonely").status_code == 303
    # With a second identity linked, the first may be removed.
    browser.get(path(provider.approve(begin_link(browser), "lonely-2")))
    answer = browser.post("/oidc/unlink", {"issuer": provider.issuer, "subject": "lonely"})
    assert answer.status_code == 303
    assert sign_in(browser_of(portal), provider, "lonely").status_code == 409


def test_user_cannot_remove_the_link_of_another(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer, create_accounts=True)
    sign_in(browser_of(portal), provider, "victim")
    portal.user("eve")
    identity = {"issuer": provider.issuer, "subject": "victim"}
    assert signed_in(portal, "eve").post("/oidc/unlink", identity).status_code == 404
    assert sign_in(browser_of(portal), provider, "victim").status_code == 303


def test_links_change_only_after_a_recent_sign_in(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer)
    portal.user("ada")
    browser = signed_in(portal)
    grow_old(portal)
    for address in ("/oidc/link", "/oidc/unlink"):
        answer = browser.post(address)
        assert answer.status_code == 403
        assert 'name="confirm_password"' in answer.text


def test_user_without_a_password_confirms_at_the_provider(
    liar: LyingProvider, make_portal: MakePortal
) -> None:
    portal = make_portal(liar.issuer, create_accounts=True, label="Example ID")
    browser = browser_of(portal)
    begun = browser.get("/oidc/sign-in").headers["Location"]
    liar.id_token = id_token(liar, begun, sub="grace")
    assert callback(browser, begun).status_code == 303
    grow_old(portal)
    refused = browser.post("/account/tokens", {"name": "script", "days": "30"})
    assert refused.status_code == 403
    assert "Confirm with Example ID" in refused.text
    form = {"confirm_path": "/account/tokens", "name": "script", "days": "30"}
    now = int(time.time())
    # Another user, an old sign-in, and one without a time do not confirm.
    for said in (
        {"sub": "eve", "auth_time": now},
        {"sub": "grace", "auth_time": now - 3600},
        {"sub": "grace"},
    ):
        begun = _confirm(browser, form)
        liar.id_token = id_token(liar, begun, **said)
        callback(browser, begun)
        assert browser.post("/account/tokens", {"name": "x", "days": "30"}).status_code == 403
    begun = _confirm(browser, form)
    assert (query(begun)["prompt"], query(begun)["max_age"]) == ("login", "0")
    liar.id_token = id_token(liar, begun, sub="grace", auth_time=now)
    answer = callback(browser, begun)
    assert answer.headers["Location"] == "/account/confirm/resume"
    offered = browser.get("/account/confirm/resume").text
    assert 'action="/account/tokens"' in offered
    assert 'value="script"' in offered
    assert browser.get("/account/confirm/resume").status_code == 303
    assert browser.post("/account/tokens", {"name": "x", "days": "30"}).status_code == 303


def _confirm(browser: Browser, form: dict[str, object]) -> str:
    answer = browser.post("/oidc/confirm", form)
    return answer.headers["Refresh"].removeprefix("0; url=")
