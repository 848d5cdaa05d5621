"""Personal access tokens allow what their scope says and no more."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select
from werkzeug.test import TestResponse

from portal.domain.documents import Visibility
from portal.domain.people import Scope, User
from portal.services.people import accounts, sessions
from portal.store.models import AuditRow
from tests.conftest import PASSWORD, Portal

TOKENS = "/api/auth/tokens"
DOCUMENTS = "/api/knowledge/documents"
SEARCH = "/api/knowledge/search"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def personal(portal: Portal, scope: Scope, user: User | None = None) -> dict[str, str]:
    _, secret = sessions.create_personal_token(
        portal.services, user or portal.admin, name=scope.value, ttl_s=3600, scopes=[scope]
    )
    return bearer(secret)


def code(answer: TestResponse) -> str:
    return str(answer.get_json()["error"]["code"])


def make(client: FlaskClient, headers: dict[str, str], **body: Any) -> TestResponse:
    return client.post(TOKENS, json={"name": "script", **body}, headers=headers)


def test_token_is_created_listed_and_revoked_by_api(portal: Portal, client: FlaskClient) -> None:
    headers = portal.headers(portal.user("ada"))
    made = make(client, headers, name="nightly import", scopes=["write"], expires_in_days=90)
    assert made.status_code == 201
    (listed,) = client.get(TOKENS, headers=headers).get_json()["tokens"]
    assert listed == {key: made.get_json()[key] for key in listed}
    assert listed["name"] == "nightly import"
    assert listed["scopes"] == ["read", "write"]
    assert listed["last_used_at"] is None
    life = datetime.fromisoformat(listed["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=89) < life <= timedelta(days=90)

    secret = bearer(made.get_json()["token"])
    assert client.get(DOCUMENTS, headers=secret).status_code == 200
    assert client.delete(f"{TOKENS}/{listed['id']}", headers=headers).status_code == 204
    assert client.get(DOCUMENTS, headers=secret).status_code == 401
    assert client.get(TOKENS, headers=headers).get_json()["tokens"] == []


def test_token_gets_the_smallest_scope_and_a_short_life_by_default(
    portal: Portal, client: FlaskClient
) -> None:
    made = make(client, portal.headers()).get_json()
    assert made["scopes"] == ["read"]
    life = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert life < timedelta(days=31)


# Each makes a valid body invalid.
WRONG: tuple[dict[str, Any], ...] = (
    {"scopes": []},
    {"scopes": ["root"]},
    {"scopes": "read"},
    {"expires_in_days": 3650},
    {"expires_in_days": 0},
    {"name": ""},
    {"name": "   "},
    {"name": "a\u200bb"},
    {"name": "x" * 101},
    {"user_id": "somebody"},
)


def test_invalid_request_for_a_token_is_refused(portal: Portal, client: FlaskClient) -> None:
    headers = portal.headers()
    answers = [make(client, headers, **wrong).status_code for wrong in WRONG]
    assert answers == [422] * len(WRONG)
    assert client.get(TOKENS, headers=headers).get_json()["tokens"] == []


def test_refusal_for_the_scope_does_not_reveal_what_exists(
    portal: Portal, client: FlaskClient
) -> None:
    theirs = portal.add("a secret", visibility=Visibility.PRIVATE)
    headers = personal(portal, Scope.READ, portal.user("eve"))
    answers = [
        client.delete(f"{DOCUMENTS}/{which}", headers=headers)
        for which in (theirs.id, "00000000-0000-4000-8000-000000000000")
    ]
    assert [answer.status_code for answer in answers] == [403, 403]
    bodies = [dict(answer.get_json()["error"], request_id="") for answer in answers]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("scope", [Scope.READ, Scope.WRITE])
def test_administrator_without_the_scope_sees_what_users_see(
    portal: Portal, client: FlaskClient, scope: Scope
) -> None:
    private = portal.add(
        "The quince diary", owner=portal.user("ada"), visibility=Visibility.PRIVATE
    )
    address, headers = f"{DOCUMENTS}/{private.id}", personal(portal, Scope.ADMIN)
    assert client.get(address, headers=headers).status_code == 200
    found = client.post(SEARCH, json={"query": "quince"}, headers=headers).get_json()
    assert len(found["results"]) == 1  # No cache may return this to the next token.
    headers = personal(portal, scope)
    assert client.get(address, headers=headers).status_code == 404
    assert client.get(DOCUMENTS, headers=headers).get_json()["total_count"] == 0
    found = client.post(SEARCH, json={"query": "quince"}, headers=headers).get_json()
    assert found["results"] == []


def test_only_administrators_grant_the_administration_scope(
    portal: Portal, client: FlaskClient
) -> None:
    ada = portal.user("ada")
    assert make(client, portal.headers(ada), scopes=["admin"]).status_code == 403
    assert make(client, portal.headers(), scopes=["admin"]).status_code == 201


def test_token_of_an_ordinary_user_never_administers(portal: Portal, client: FlaskClient) -> None:
    """A scope limits the user's rights and never extends them."""
    ada = portal.user("ada", is_admin=True)
    headers = personal(portal, Scope.ADMIN, ada)
    assert client.get("/admin", headers=headers).status_code == 200
    portal.execute("UPDATE users SET is_admin = false WHERE name = 'ada'")
    assert client.get("/admin", headers=headers).status_code == 403


@pytest.mark.parametrize("scope", list(Scope))
def test_every_token_may_revoke_itself(portal: Portal, client: FlaskClient, scope: Scope) -> None:
    headers = personal(portal, scope)
    assert client.post("/api/auth/revoke", json={}, headers=headers).status_code == 204
    assert client.get(DOCUMENTS, headers=headers).status_code == 401


def test_personal_token_revokes_only_itself(portal: Portal, client: FlaskClient) -> None:
    headers, session = personal(portal, Scope.ADMIN), portal.headers()
    itself = {"token": headers["Authorization"].removeprefix("Bearer ")}
    for other in (
        session,
        personal(portal, Scope.READ),
        personal(portal, Scope.READ, portal.user("eve")),
    ):
        body = {"token": other["Authorization"].removeprefix("Bearer ")}
        refused = client.post("/api/auth/revoke", json=body, headers=headers)
        assert (refused.status_code, code(refused)) == (403, "needs_session")
        assert client.get(DOCUMENTS, headers=other).status_code == 200
    unknown = client.post("/api/auth/revoke", json={"token": "unknown"}, headers=headers)
    assert (unknown.status_code, code(unknown)) == (403, "needs_session")
    assert client.post("/api/auth/revoke", json=itself, headers=headers).status_code == 204
    assert client.get(DOCUMENTS, headers=headers).status_code == 401


def test_session_revokes_only_tokens_of_its_user(portal: Portal, client: FlaskClient) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    theirs = (portal.headers(ada), personal(portal, Scope.READ, ada))
    for caller, status in ((eve, 200), (ada, 401)):
        for headers in theirs:
            body = {"token": headers["Authorization"].removeprefix("Bearer ")}
            answer = client.post("/api/auth/revoke", json=body, headers=portal.headers(caller))
            assert answer.status_code == 204
            assert client.get(DOCUMENTS, headers=headers).status_code == status
    with portal.services.database.begin() as session:
        log = session.execute(select(AuditRow.event, AuditRow.actor_name)).all()
    ended = {tuple(row) for row in log if row.event in ("session_ended", "token_revoked")}
    assert ended == {("session_ended", "ada"), ("token_revoked", "ada")}


def test_user_cannot_see_or_revoke_tokens_of_another(portal: Portal, client: FlaskClient) -> None:
    headers = personal(portal, Scope.READ, portal.user("ada"))
    (theirs,) = client.get(TOKENS, headers=headers).get_json()["tokens"]
    assert client.get(TOKENS, headers=portal.headers()).get_json()["tokens"] == []
    answer = client.delete(f"{TOKENS}/{theirs['id']}", headers=portal.headers())
    assert answer.status_code == 404
    assert client.get(DOCUMENTS, headers=headers).status_code == 200


def test_last_use_is_shown_to_the_minute(portal: Portal, client: FlaskClient) -> None:
    headers = personal(portal, Scope.READ)
    before = datetime.now(UTC) - timedelta(minutes=1)
    client.get(DOCUMENTS, headers=headers)
    (listed,) = client.get(TOKENS, headers=portal.headers()).get_json()["tokens"]
    assert before < datetime.fromisoformat(listed["last_used_at"]) <= datetime.now(UTC)
    portal.execute("UPDATE tokens SET last_used_at = now() - interval '2 minutes'")
    client.get(DOCUMENTS, headers=headers)
    (listed,) = client.get(TOKENS, headers=portal.headers()).get_json()["tokens"]
    assert before < datetime.fromisoformat(listed["last_used_at"])


def test_token_from_before_scopes_keeps_its_rights(portal: Portal, client: FlaskClient) -> None:
    """Rows older than scopes have the column's default."""
    headers = personal(portal, Scope.READ)
    portal.execute("UPDATE tokens SET scopes = DEFAULT WHERE kind = 'personal'")
    assert client.post("/api/conversations", json={}, headers=headers).status_code == 201
    assert client.get("/admin", headers=headers).status_code == 200


def test_new_password_and_closed_account_end_personal_tokens(
    portal: Portal, client: FlaskClient
) -> None:
    ada = portal.user("ada")
    headers = personal(portal, Scope.WRITE, ada)
    accounts.change_password(portal.services, ada, current=PASSWORD, new="another long one")
    assert client.get(DOCUMENTS, headers=headers).status_code == 401
    headers = personal(portal, Scope.WRITE, ada)
    accounts.set_disabled(portal.services, portal.admin, ada.id, disabled=True)
    assert client.get(DOCUMENTS, headers=headers).status_code == 401
    accounts.set_disabled(portal.services, portal.admin, ada.id, disabled=False)
    assert client.get(DOCUMENTS, headers=headers).status_code == 401


def test_response_without_a_token_says_how_to_authenticate(client: FlaskClient) -> None:
    assert client.get(DOCUMENTS).headers["WWW-Authenticate"] == 'Bearer realm="portal"'
    refused = client.get(DOCUMENTS, headers=bearer("nonsense"))
    assert refused.headers["WWW-Authenticate"] == 'Bearer realm="portal", error="invalid_token"'


def test_page_creates_shows_once_and_revokes_a_token(portal: Portal) -> None:
    client = portal.client()
    form = {"name": "backup", "scope": "write", "days": "90"}
    made = client.post("/account/tokens", data=form)
    assert (made.status_code, made.headers["Location"]) == (303, "/account#tokens")
    with client.session_transaction() as cookie:
        held = str(cookie["shown_once"])
    shown = client.get("/account").get_data(as_text=True)
    shown_token = re.search(r"eyJ[\w-]+(?:\.[\w-]+){2}", shown)
    assert shown_token
    assert shown_token[0] not in held
    section = shown.partition('id="tokens"')[2].partition("</section>")[0]
    assert '<a href="/docs">' in section  # The API reference.
    listed = client.get("/account").get_data(as_text=True)
    assert "backup" in listed
    assert shown_token[0] not in listed
    (token,) = sessions.list_personal_tokens(portal.services, portal.admin)
    assert token.level is Scope.WRITE
    revoked = client.post(f"/account/tokens/{token.id}/revoke")
    assert revoked.status_code == 303
    assert sessions.list_personal_tokens(portal.services, portal.admin) == ()


def test_page_offers_administration_to_administrators_alone(
    portal: Portal, client: FlaskClient
) -> None:
    ada, offered = portal.headers(portal.user("ada")), 'value="admin"'
    assert offered not in client.get("/account", headers=ada).get_data(as_text=True)
    assert offered in client.get("/account", headers=portal.headers()).get_data(as_text=True)
    forced = client.post("/account/tokens", data={"name": "x", "scope": "admin"}, headers=ada)
    assert forced.status_code == 403


def test_form_without_a_name_keeps_the_chosen_scope(portal: Portal, client: FlaskClient) -> None:
    form = {"name": " ", "scope": "write"}
    answer = client.post("/account/tokens", data=form, headers=portal.headers())
    page = answer.get_data(as_text=True)
    assert answer.status_code == 422
    checked = re.findall(r'value="(\w+)"\s+aria-describedby="scope-\w+"\s+checked', page)
    assert checked == ["write"]


def test_refusal_names_the_missing_scope(portal: Portal, client: FlaskClient) -> None:
    headers = personal(portal, Scope.READ)
    answer = client.post("/api/conversations", json={}, headers=headers)
    assert (answer.status_code, code(answer)) == (403, "insufficient_scope")
    assert "write" in answer.get_data(as_text=True)


def test_token_that_administers_creates_no_tokens(portal: Portal, client: FlaskClient) -> None:
    headers = personal(portal, Scope.ADMIN)
    answer = make(client, headers)
    assert (answer.status_code, code(answer)) == (403, "needs_session")
    assert len(client.get(TOKENS, headers=headers).get_json()["tokens"]) == 1
