"""Groups at the provider decide who may sign in and who is an administrator."""

from __future__ import annotations

import pytest

from portal.services.people import accounts
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.servers.oidc import LyingProvider, Provider
from tests.integration.people.oidc.conftest import (
    MakePortal,
    begin,
    browser_of,
    callback,
    error_of,
    events,
    id_token,
    link,
    name_of,
    sign_in,
)


def is_admin(browser: Browser) -> bool:
    return browser.get("/admin").status_code == 200


def test_role_follows_the_groups_at_each_sign_in(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer, admin_groups="ops, root", create_accounts=True)
    for groups, expected in (
        (["staff"], False),
        (["staff", "ops"], True),
        ("root", True),
        (["Ops", "operations", "ops, root"], False),
        ({"ops": True}, False),
        ([["ops"]], False),
        (["ops"], True),
        (None, False),
    ):
        provider.set_user("grace", **({} if groups is None else {"groups": groups}))
        browser = browser_of(portal)
        assert sign_in(browser, provider, "grace").status_code == 303
        assert is_admin(browser) is expected, groups
    assert events(portal).count("role_changed") == 4


def test_removed_role_is_lost_in_every_session(provider: Provider, make_portal: MakePortal) -> None:
    portal = make_portal(provider.issuer, admin_groups="ops", create_accounts=True)
    provider.set_user("grace", groups=["ops"])
    first, second = browser_of(portal), browser_of(portal)
    sign_in(first, provider, "grace")
    assert is_admin(first)
    provider.set_user("grace", groups=[])
    sign_in(second, provider, "grace")
    assert not is_admin(first)


def test_account_keeps_its_role_without_the_setting(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer)
    link(portal, "admin", "boss")
    provider.set_user("boss", groups=[])
    browser = browser_of(portal)
    sign_in(browser, provider, "boss")
    assert is_admin(browser)


def test_last_administrator_with_a_password_stays_one(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer, admin_groups="ops", create_accounts=True)
    link(portal, "admin", "boss")
    provider.set_user("boss", groups=[])
    provider.set_user("other", groups=["ops"])
    # Another administrator, who cannot sign in while the provider is down.
    sign_in(browser_of(portal), provider, "other")
    browser = browser_of(portal)
    sign_in(browser, provider, "boss")
    assert is_admin(browser)
    accounts.create_user(portal.services, name="deputy", password=PASSWORD, is_admin=True)
    browser = browser_of(portal)
    sign_in(browser, provider, "boss")
    assert not is_admin(browser)


def test_last_administrator_without_a_password_stays_one(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer, admin_groups="ops", create_accounts=True)
    provider.set_user("only", groups=["ops"])
    sign_in(browser_of(portal), provider, "only")
    portal.execute("UPDATE users SET is_admin = false WHERE name = 'admin'")
    provider.set_user("only", groups=[])
    browser = browser_of(portal)
    sign_in(browser, provider, "only")
    assert is_admin(browser)


def test_user_in_no_allowed_group_is_refused_and_signed_out(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(
        provider.issuer, allowed_groups="staff", admin_groups="ops", create_accounts=True
    )
    inside, refused = browser_of(portal), browser_of(portal)
    provider.set_user("grace", groups=["staff"])
    assert sign_in(inside, provider, "grace").status_code == 303
    provider.set_user("grace", groups=["visitors"])
    answer = sign_in(refused, provider, "grace")
    assert answer.status_code == 403
    assert "not in a group" in error_of(answer)
    assert name_of(refused) is None
    assert name_of(inside) is None
    provider.set_user("chief", groups=["ops"])
    assert sign_in(browser_of(portal), provider, "chief").status_code == 303


def test_unlinked_user_outside_allowed_groups_gets_no_account(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer, allowed_groups="staff", create_accounts=True)
    provider.set_user("visitor", groups=[])
    assert sign_in(browser_of(portal), provider, "visitor").status_code == 403
    assert portal.scalar("SELECT array_agg(name) FROM users") == ["admin"]


# The setting, and the claim that holds the group.
@pytest.mark.parametrize(
    ("name", "claims"),
    [
        ("realm_access.roles", {"realm_access": {"roles": ["ops"]}}),
        ("https://example.org/groups", {"https://example.org/groups": ["ops"]}),
    ],
)
def test_groups_may_be_nested_or_in_a_claim_with_dots(
    liar: LyingProvider, make_portal: MakePortal, name: str, claims: dict[str, object]
) -> None:
    portal = make_portal(liar.issuer, groups_claim=name, admin_groups="ops", create_accounts=True)
    browser = browser_of(portal)
    begun = begin(browser)
    liar.id_token = id_token(liar, begun, **claims)
    assert callback(browser, begun).status_code == 303
    assert is_admin(browser)


def test_omitted_groups_claim_is_not_read_as_no_groups(
    liar: LyingProvider, make_portal: MakePortal
) -> None:
    """Entra ID then lists the groups elsewhere; removing the role would be wrong."""
    portal: Portal = make_portal(liar.issuer, admin_groups="ops", create_accounts=True)
    left_out = {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "x"}}}
    browser = browser_of(portal)
    begun = begin(browser)
    liar.id_token = id_token(liar, begun, **left_out)
    answer = callback(browser, begun)
    assert (answer.status_code, "too many" in error_of(answer)) == (403, True)
