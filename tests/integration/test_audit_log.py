"""The audit log: who did what, when and from where."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from portal.domain.audit import Origin, Source
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.store.models import AuditRow
from tests.conftest import Portal


def rows(services: Services) -> list[AuditRow]:
    with services.database.begin() as session:
        return list(session.scalars(select(AuditRow).order_by(AuditRow.created_at)))


def test_event_is_recorded_with_actor_subject_and_origin(portal: Portal) -> None:
    bob = portal.person("bob")
    audit.set_origin(Origin(Source.WEB, "192.0.2.1", "Mozilla/5.0\0 (\u202ex)", "request-1"))
    try:
        with portal.services.database.begin() as session:
            audit.record(
                session,
                AuditEvent.ROLE_CHANGED,
                actor=portal.admin,
                subject=audit.user(bob),
                details={"is_admin": True},
            )
    finally:
        audit.set_origin(None)
    found = rows(portal.services)[-1]
    assert (found.event, found.source, found.address) == ("role_changed", "web", "192.0.2.1")
    assert (found.actor_id, found.actor_name) == (portal.admin.id, "admin")
    assert (found.subject_kind, found.subject_id) == ("user", str(bob.id))
    assert (found.subject_title, found.details) == ("bob", {"is_admin": True})
    assert found.user_agent == "Mozilla/5.0 (x)"


def test_event_is_rolled_back_with_what_it_tells_about(portal: Portal) -> None:
    before = len(rows(portal.services))

    def fail() -> None:
        with portal.services.database.begin() as session:
            audit.record(session, AuditEvent.BACKUP_TAKEN, subject=Subject(SubjectKind.BACKUP))
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        fail()
    assert len(rows(portal.services)) == before


def test_digest_of_a_name_is_keyed_and_ignores_case() -> None:
    assert audit.digest_name("key", "Alice ") == audit.digest_name("key", "alice")
    assert audit.digest_name("key", "alice") != audit.digest_name("another key", "alice")
    assert audit.digest_name("key", "alice") != audit.digest_name("key", "bob")
