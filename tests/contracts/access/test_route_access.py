"""Who may use which route: one row for each, checked against the live routes and a live portal.

A new route fails until it has a row in `rows.py`, and a row without a route fails
too. Rows say who has access and the status of a valid request; the row's kind decides the response
to everyone else. Another user's private object must be answered like a missing one.
"""

from __future__ import annotations

import pytest
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from portal import api
from portal.domain.people import Scope, User
from portal.http import context
from portal.http.marks import marks_of
from tests.contracts.access.rows import (
    ADMINS,
    ALL,
    OWN,
    PEOPLE,
    READ,
    ROWS,
    SEEING,
    WRITE,
    Row,
    Who,
)
from tests.contracts.access.world import World, method_of, rows_of

# Routes that create and revoke tokens do not accept a personal token.
NEEDS_SESSION = {
    "oidc.begin_confirm",
    "oidc.begin_link",
    "oidc.unlink",
    "account.change_password",
    "account.delete",
    "auth_api.confirm",
    "users_api.delete_own",
    "sessions.end",
    "sessions.end_others",
    "sessions_api.end_session",
    "sessions_api.end_others",
    "confirming.confirm",
    "account.create_token",
    "account.revoke_token",
    "auth_api.revoke_token",  # Other than the token itself.
    "personal_tokens.create_token",
    "personal_tokens.revoke_token",
    "admin.remove_second_factors",
    "second_factors_admin_api.remove_all",
    "second_factors.begin_totp",
    "second_factors.show_totp",
    "second_factors.confirm_totp",
    "second_factors.remove_totp",
    "second_factors.send_options",
    "second_factors.add_passkey",
    "second_factors.remove_passkey",
    "second_factors.replace_recovery_codes",
    "second_factors_api.begin_totp",
    "second_factors_api.confirm_totp",
    "second_factors_api.remove_totp",
    "second_factors_api.remove_passkey",
    "second_factors_api.replace_recovery_codes",
}


def test_every_route_has_a_row_and_every_row_a_route(world: World) -> None:
    rules = list(world.app.url_map.iter_rules())
    assert {rule.endpoint for rule in rules} == set(ROWS)
    assert len(rules) == len(ROWS)
    for rule in rules:
        assert len((rule.methods or set()) - {"HEAD", "OPTIONS"}) == 1, rule


def test_marks_of_views_match_the_access_table(world: World) -> None:
    for rule, row in rows_of(world.app):
        view = world.app.view_functions[rule.endpoint]
        assert marks_of(view).is_public == (row.who is ALL), rule.endpoint
        if row.who is not ALL:
            assert context.scope_of(view, method_of(rule)) is row.scope, rule.endpoint


def test_every_route_refuses_requests_without_a_valid_token(world: World) -> None:
    """Everything else is valid: the object exists and the request would succeed."""
    identities: dict[str, dict[str, str]] = {
        "no token": {},
        "expired": world.forged(exp=1),
        "wrong audience": world.forged(aud="another service"),
        "nonsense": {"Authorization": "Bearer x"},
        "another scheme": {"Authorization": "Basic YWRhOnBhc3N3b3Jk"},
    }
    wrong = []
    for rule, row in rows_of(world.app):
        values = world.objects(rule, row)
        for who, headers in identities.items():
            answer = world.call(rule, row, values, headers)
            has_bearer = headers.get("Authorization", "").startswith("Bearer ")
            if not _is_turned_away(rule, row, answer, has_bearer=has_bearer):
                wrong.append((rule.endpoint, who, answer.status_code))
    assert not wrong, "\n".join(map(str, wrong))


def _is_turned_away(rule: Rule, row: Row, answer: TestResponse, *, has_bearer: bool) -> bool:
    """Return whether an anonymous request was refused as the row says."""
    code = answer.status_code
    if row.who is ALL:
        return code == row.ok or (code == 403 and not has_bearer and method_of(rule) == "POST")
    if _is_for_programs(rule):
        return code == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer ")
    if code == 303:
        return answer.headers["Location"].startswith("/login")
    return code == 403 and not has_bearer and method_of(rule) == "POST"


def test_every_allowed_identity_gets_in(world: World) -> None:
    """The same requests succeed, so the refusals to others depend on who they are."""
    administrator = world.portal.user("root", is_admin=True)
    world.passkey(administrator.id)
    people: dict[Who, dict[str, User]] = {
        PEOPLE: {"ada": world.ada, "eve": world.eve, "administrator": administrator},
        SEEING: {"owner": world.ada, "administrator": administrator},
        OWN: {"owner": world.ada},
        ADMINS: {"administrator": administrator},
    }
    wrong = []
    for rule, row in rows_of(world.app):
        for who, user in people.get(row.who, {}).items():
            values = world.objects(rule, row, to_change=row.scope is not READ)
            answer = world.call(rule, row, values, world.portal.headers(user))
            if answer.status_code != row.ok:
                wrong.append((rule.endpoint, who, answer.status_code))
    assert not wrong, "\n".join(map(str, wrong))


def test_ordinary_users_are_not_administrators(world: World) -> None:
    wrong = []
    for rule, row in rows_of(world.app):
        if row.who is ADMINS:
            values = world.objects(rule, row)
            answer = world.call(rule, row, values, world.portal.headers(world.eve))
            if answer.status_code != 403:
                wrong.append((rule.endpoint, answer.status_code))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("scope", [READ, WRITE])
def test_personal_token_is_limited_to_its_scope(world: World, scope: Scope) -> None:
    """Check the tokens of ada and of an administrator on every route that a session may use."""
    ours, administrators = (world.personal(user, scope) for user in (world.ada, world.portal.admin))
    allowed = {READ} if scope is READ else {READ, WRITE}
    wrong = []
    for rule, row in rows_of(world.app):
        if row.who is ALL:
            continue
        expected = row.ok if row.scope in allowed else 403
        values = world.objects(rule, row, to_change=row.scope is not READ and expected != 403)
        headers = administrators if row.who is ADMINS else ours
        answer = world.call(rule, row, values, headers)
        if rule.endpoint in NEEDS_SESSION:
            expected = 403
        challenge = answer.headers.get("WWW-Authenticate", "")
        named = f'error="insufficient_scope", scope="{row.scope.value}"'
        if answer.status_code != expected or (row.scope not in allowed) != (named in challenge):
            wrong.append((rule.endpoint, answer.status_code, challenge))
    assert not wrong, "\n".join(map(str, wrong))


def _is_for_programs(rule: Rule) -> bool:
    return rule.rule.startswith(api.PREFIXES)
