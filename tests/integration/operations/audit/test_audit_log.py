"""The audit log: who did what, when and from where."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select

from portal.domain.documents import Visibility
from portal.domain.people.audit import Origin, Source
from portal.observability.logs import configure_logs
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.documents import library, trash
from portal.services.people import accounts, invitations, sessions
from portal.services.search import dynamic_config
from portal.store.models import AuditRow
from tests.conftest import PASSWORD, Portal


def rows(services: Services) -> list[AuditRow]:
    with services.database.begin() as session:
        return list(session.scalars(select(AuditRow).order_by(AuditRow.created_at)))


def test_event_is_recorded_with_actor_subject_and_origin(portal: Portal) -> None:
    bob = portal.user("bob")
    audit.set_origin(Origin(Source.WEB, "192.0.2.1", "Mozilla/5.0\0 (\u202ex)", "request-1"))
    try:
        with portal.services.database.begin() as session:
            audit.record(session, AuditEvent.ROLE_CHANGED, portal.admin, bob, is_admin=True)
    finally:
        audit.set_origin(None)
    found = rows(portal.services)[-1]
    assert (found.event, found.source, found.address) == ("role_changed", "web", "192.0.2.1")
    assert (found.actor_id, found.actor_name) == (portal.admin.id, "admin")
    assert (found.subject_kind, found.subject_id) == ("user", str(bob.id))
    assert (found.subject_title, found.details) == ("bob", {"is_admin": True})
    assert found.user_agent == "Mozilla/5.0 (x)"


def test_event_is_rolled_back_with_its_change(portal: Portal) -> None:
    before = len(rows(portal.services))

    def fail() -> None:
        with portal.services.database.begin() as session:
            audit.record(session, AuditEvent.BACKUP_TAKEN, None, Subject(SubjectKind.BACKUP))
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        fail()
    assert len(rows(portal.services)) == before


def test_digest_of_a_name_is_keyed_and_ignores_case() -> None:
    assert audit.digest_name("key", "Alice ") == audit.digest_name("key", "alice")
    assert audit.digest_name("key", "alice") != audit.digest_name("another key", "alice")
    assert audit.digest_name("key", "alice") != audit.digest_name("key", "bob")


# --- what is recorded ------------------------------------------------------------------------


def sign_in(client: FlaskClient, name: str, password: str) -> dict[str, str]:
    body = {"username": name, "password": password}
    answer = client.post(
        "/api/auth/token",
        json=body,
        headers={"User-Agent": "curl/8", "X-Request-ID": "request-0001"},
    )
    return answer.get_json()


def test_sign_in_is_recorded_with_address_and_device(client: FlaskClient, portal: Portal) -> None:
    sign_in(client, "admin", PASSWORD)
    found = rows(portal.services)[-1]
    assert (found.event, found.actor_name, found.source) == ("sign_in", "admin", "web")
    assert (found.address, found.user_agent) == ("127.0.0.1", "curl/8")
    assert found.request_id == "request-0001"


def test_failed_sign_in_is_recorded_and_logged_without_the_name_or_password(
    client: FlaskClient, portal: Portal, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(portal.services.settings)
    for name in ("admin", "hunter2-typed-as-a-name"):
        sign_in(client, name, "not the password")
    known, unknown = rows(portal.services)[-2:]
    digest = audit.digest_name(portal.services.secret_key, "hunter2-typed-as-a-name")
    assert (known.event, unknown.event) == ("sign_in_failed", "sign_in_failed")
    assert (known.subject_title, unknown.subject_title) == ("admin", None)
    assert (unknown.name_digest, unknown.address) == (digest, "127.0.0.1")
    logged = capsys.readouterr().err
    assert digest in logged
    assert "sign_in_failed" in logged
    assert "127.0.0.1" in logged
    stored = str([vars(row) for row in (known, unknown)])
    for secret in ("hunter2", "not the password"):
        assert secret not in logged
        assert secret not in stored


def test_sign_out_and_a_stolen_refresh_token_are_recorded(
    client: FlaskClient, portal: Portal
) -> None:
    pair = sign_in(client, "admin", PASSWORD)
    client.post("/api/auth/refresh", json={"refresh_token": pair["refresh_token"]})
    client.post("/api/auth/refresh", json={"refresh_token": pair["refresh_token"]})
    reused = rows(portal.services)[-1]
    assert (reused.event, reused.subject_title) == ("session_ended", "admin")
    assert reused.details == {"reason": "refresh_token_reused"}
    pair = sign_in(client, "admin", PASSWORD)
    bearer = {"Authorization": f"Bearer {pair['access_token']}"}
    client.post("/api/auth/revoke", json={}, headers=bearer)
    ended = rows(portal.services)[-1]
    assert (ended.event, ended.actor_name) == ("sign_out", "admin")


def test_changes_of_accounts_tokens_and_invitations_are_recorded(portal: Portal) -> None:
    services, admin = portal.services, portal.admin
    secret = invitations.invite(services, admin).secret or ""
    bob = invitations.accept_invitation(services, secret, name="bob", password=PASSWORD)
    invitations.withdraw(services, admin, invitations.invite(services, admin).id)
    accounts.change_password(services, bob, current=PASSWORD, new="another long password")
    made, _ = sessions.create_personal_token(services, bob, name="backup script", ttl_s=60)
    sessions.revoke_personal_token(services, bob, made.id)
    accounts.set_disabled(services, admin, bob.id, disabled=True)
    accounts.set_disabled(services, admin, bob.id, disabled=False)
    told = [(row.event, row.actor_name, row.subject_title) for row in rows(services)]
    assert told == [
        ("user_created", None, "admin"),
        ("invitation_created", "admin", None),
        ("invitation_used", "bob", None),
        ("user_created", None, "bob"),
        ("invitation_created", "admin", None),
        ("invitation_withdrawn", "admin", None),
        ("password_changed", "bob", "bob"),
        ("token_created", "bob", "backup script"),
        ("token_revoked", "bob", "backup script"),
        ("user_disabled", "admin", "bob"),
        ("user_enabled", "admin", "bob"),
    ]


def test_visibility_purges_and_settings_are_recorded_without_text(portal: Portal) -> None:
    services, admin = portal.services, portal.admin
    document = portal.add("mauve elephants", title="Animals")
    library.change_document(services, admin, document.id, visibility=Visibility.PRIVATE)
    library.change_document(services, admin, document.id, visibility=Visibility.PRIVATE)
    library.purge_document(services, admin, document.id)
    dynamic_config.change(services, admin, {"top_n": 7, "rrf_k": 60})
    changed, purged, setting = rows(services)[-3:]
    assert (changed.event, changed.subject_title) == ("visibility_changed", "Animals")
    assert changed.details == {"before": "shared", "after": "private"}
    assert (purged.event, purged.subject_id) == ("document_purged", str(document.id))
    assert (purged.subject_title, purged.details) == ("Animals", {})
    assert (setting.event, setting.subject_id) == ("settings_changed", "top_n")
    assert setting.details == {"before": 5, "after": 7}
    assert "mauve" not in str([vars(row) for row in rows(services)])


def test_purge_by_a_worker_is_recorded_as_the_workers(make_services, portal: Portal) -> None:
    document = portal.add("mauve elephants", title="Animals")
    library.delete_document(portal.services, portal.admin, document.id)
    audit.set_origin(Origin(Source.WORKER))
    try:
        later = datetime.now(UTC) + timedelta(days=60)
        trash.purge_expired(make_services(trash_days=30), seconds=5, now=later)
    finally:
        audit.set_origin(None)
    found = rows(portal.services)[-1]
    assert (found.event, found.source, found.actor_name) == ("document_purged", "worker", None)
