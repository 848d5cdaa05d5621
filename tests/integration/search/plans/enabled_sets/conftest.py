"""Fixtures for the tests of enabled sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from portal.domain.people import User
from portal.domain.search import SearchRequest
from portal.services import Services
from portal.services.search import engine
from portal.store.search.context import read_context
from portal.store.session import Session
from tests.conftest import Portal

TEXTS = ("The violin stands in the hall.", "The copper pot hangs in the hall.")


@pytest.fixture
def shelf(portal: Portal) -> Shelf:
    ann, ben = portal.user("ann"), portal.user("ben")
    first, second = (portal.add(content, owner=ann).id for content in TEXTS)
    conversations = [
        portal.scalar(
            "INSERT INTO conversations (user_id) VALUES (:user) RETURNING id", user=user.id
        )
        for user in (ann, ben)
    ]
    return Shelf(portal, ann, ben, first, second, *conversations)


DOCUMENTS, DEFAULTS, OVERRIDES = "documents", "defaults", "overrides"


@dataclass(frozen=True)
class Shelf:
    """Two documents owned by Ann, and a conversation each for Ann and Ben."""

    portal: Portal
    ann: User
    ben: User
    first: UUID
    second: UUID
    conversation: UUID
    other_conversation: UUID

    @property
    def services(self) -> Services:
        return self.portal.services

    @property
    def binds(self) -> dict[str, Any]:
        return {
            "ann": self.ann.id,
            "ben": self.ben.id,
            "first": self.first,
            "second": self.second,
            "conversation": self.conversation,
            "other_conversation": self.other_conversation,
        }

    def do(self, session: Session, *statements: str) -> None:
        for statement in statements:
            used = {name: value for name, value in self.binds.items() if f":{name}" in statement}
            session.execute(text(statement), used)

    def commit(self, *statements: str) -> None:
        with self.services.database.begin() as session:
            self.do(session, *statements)

    def versions(self) -> dict[str, int]:
        """Return the versions that Ann's searches in her conversation depend on."""
        with self.services.database.begin() as session:
            read = read_context(
                session, self.ann.id, self.conversation, keyword_backend="auto"
            ).versions
        return {DOCUMENTS: read.documents, DEFAULTS: read.defaults, OVERRIDES: read.overrides}

    def changed(self, *statements: str) -> set[str]:
        """Run statements in one transaction; return the versions that they change."""
        before = self.versions()
        self.commit(*statements)
        after = self.versions()
        return {name for name in after if after[name] != before[name]}

    def find(self, services: Services | None = None, **wishes: Any) -> set[UUID]:
        """Return the documents that Ann finds."""
        request = SearchRequest("violin copper", conversation_id=self.conversation, **wishes)
        outcome = engine.search(services or self.services, self.ann, request)
        return {hit.document_id for hit in outcome.hits}


DEFAULT_OFF = "INSERT INTO user_document_defaults VALUES (:ann, :first, FALSE)"
OVERRIDE_OFF = "INSERT INTO conversation_document_overrides VALUES (:conversation, :first, FALSE)"
NEW_DOCUMENT = """
    INSERT INTO documents
        (collection_id, owner_id, title, file_name, media_type, size_bytes, sha256)
    SELECT collection_id, owner_id, 'new', 'new', media_type, 1, '' FROM documents WHERE id = :first
"""
OF_DOCUMENTS = {
    "a new document": NEW_DOCUMENT,
    "a document erased for good": "DELETE FROM documents WHERE id = :first",
    "into the trash": "UPDATE documents SET deleted_at = now() WHERE id = :first",
    "out of the trash": "UPDATE documents SET deleted_at = NULL WHERE id = :first",
    "hidden": "UPDATE documents SET visibility = 'private' WHERE id = :first",
    "given away": "UPDATE documents SET owner_id = :ben WHERE id = :first",
    "its owner erased": "DELETE FROM users WHERE id = :ann",
    "renamed": "UPDATE documents SET title = 'other' WHERE id = :first",
    "another domain": "UPDATE documents SET domain = 'law' WHERE id = :first",
    "another type": "UPDATE documents SET media_type = 'text/markdown' WHERE id = :first",
    "withdrawn": "UPDATE documents SET current_job_id = NULL WHERE id = :first",
    "its job erased": "DELETE FROM jobs WHERE document_id = :first",
}
CHANGES = {
    DOCUMENTS: "UPDATE documents SET deleted_at = now() WHERE id = :first",
    DEFAULTS: DEFAULT_OFF,
    OVERRIDES: OVERRIDE_OFF,
}
