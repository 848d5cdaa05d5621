"""A live portal with the objects that requests are about."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import jwt
from flask import Flask
from sqlalchemy import text
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from portal.domain.documents import Visibility
from portal.domain.documents.bulk import BulkAction, BulkTarget
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole, FolderVisibility
from portal.domain.people import Scope, TokenKind, User
from portal.services.answers import conversations
from portal.services.documents import bulk, folders, library, notifications
from portal.services.documents.folders import members as folder_members
from portal.services.people import accounts, groups, invitations, sessions, tokens
from portal.services.search import saved
from portal.store.people import second_factors
from tests.conftest import Portal
from tests.contracts.access.rows import QUESTION, ROWS, Row
from tests.factories.answers import ask

OBJECTS = {
    *("document_id", "job_id", "chunk_id", "conversation_id", "message_id", "citation_id"),
    *("token_id", "user_id", "session_id", "passkey_id", "notification_id", "search_id"),
    *("folder_id", "change_id", "report_id", "member_id", "group_id", "invitation_id"),
}
# Parts in which responses about a foreign and a missing object may differ.
_VARIABLE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b"
    r"|[\w=-]{150,}"  # The form token.
)


@dataclass
class World:
    """A portal with ada, whose objects are all private, eve, who owns nothing, and an
    administrator. `kept` are ada's objects for requests that change nothing."""

    portal: Portal
    app: Flask
    ada: User
    eve: User
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    kept: dict[tuple[bool, bool], dict[str, Any]] = field(default_factory=dict)

    def document(
        self, *, is_trashed: bool, visibility: Visibility = Visibility.PRIVATE
    ) -> dict[str, UUID]:
        content = f"The quince trees of garden {next(self.numbers)} are pruned in February."
        services = self.portal.services
        made = self.portal.add(content, owner=self.ada, visibility=visibility)
        with services.database.begin() as session:
            chunk = session.execute(
                text("SELECT id, job_id FROM document_chunks WHERE document_id = :id"),
                {"id": made.id},
            ).one()
        if is_trashed:
            library.delete_document(services, self.ada, made.id)
        folder_id = folders.create_folder(
            services, self.ada, name=f"Folder {next(self.numbers)}", visibility=visibility
        )
        zoe = self.member(folder_id, "zoe", FolderRole.READER)
        return {
            "member_id": zoe,
            "document_id": made.id,
            "chunk_id": chunk.id,
            "job_id": chunk.job_id,
            "folder_id": folder_id,
        }

    def member(self, folder_id: UUID, name: str, role: FolderRole) -> UUID:
        """Add a user to the members of ada's folder."""
        services = self.portal.services
        folder_members.set_member(
            services, self.ada, folder_id, kind=MemberKind.USER, name=name, role=role
        )
        return accounts.find_user(services, name).id

    def gated(self, *, is_trashed: bool = False) -> dict[str, Any]:
        """Return a shared document of ada's in a folder that is open to members only."""
        made = self.document(is_trashed=False, visibility=Visibility.SHARED)
        services, folder_id = self.portal.services, made["folder_id"]
        members_only = FolderVisibility.MEMBERS
        folders.change_folder(services, self.ada, folder_id, visibility=members_only)
        folders.move_document(services, self.ada, made["document_id"], folder_id)
        if is_trashed:
            library.delete_document(services, self.ada, made["document_id"])
        return made

    def group(self, names: set[str]) -> dict[str, UUID]:
        services, admin = self.portal.services, self.portal.admin
        made = {
            "group_id": groups.create_group(services, admin, name=f"Group {next(self.numbers)}")
        }
        if "user_id" in names:
            member = self.portal.user(f"member {next(self.numbers)}")
            self.passkey(member.id)
            groups.add_member(services, admin, made["group_id"], member.name)
            made["user_id"] = member.id
        return made

    def conversation(self, names: set[str], *, is_question: bool) -> dict[str, UUID]:
        services = self.portal.services
        begun = conversations.create(services, self.ada, "Garden").id
        if not names & {"message_id", "citation_id"}:
            return {"conversation_id": begun}
        answer = ask(services, self.ada, begun, QUESTION)
        question, _ = conversations.messages(services, self.ada, begun)
        message = question if is_question else answer
        return {
            "conversation_id": begun,
            "message_id": message.id,
            "citation_id": answer.citations[0].id,
        }

    def passkey(self, user_id: UUID) -> UUID:
        with self.portal.services.database.begin() as session:
            made = second_factors.add_passkey(
                session,
                user_id=user_id,
                name="a key",
                rp_id="localhost",
                credential_id=uuid4().bytes,
                public_key=b"",
                sign_count=0,
                transports=[],
            )
            assert made is not None
            return made

    def objects(self, rule: Rule, row: Row, *, to_change: bool = False) -> dict[str, Any]:
        """Return ada's objects for a request, new ones if it changes them."""
        names = set(rule.arguments) | set(re.findall(r"<(\w+_id)>", repr(row.sends)))
        if to_change:
            return self._made(row, names)
        kind = row.is_trashed, row.is_question
        if kind not in self.kept:
            self.kept[kind] = self._made(row, OBJECTS)
        return {name: self.kept[kind][name] for name in names & OBJECTS}

    def _made(self, row: Row, names: set[str]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if names & {"document_id", "chunk_id", "job_id", "folder_id", "member_id"}:
            made |= self.document(is_trashed=row.is_trashed)
        if names & {"conversation_id", "message_id", "citation_id"}:
            made |= self.conversation(names, is_question=row.is_question)
        if "notification_id" in names:
            document = self.document(is_trashed=False)
            page = notifications.list_notifications(self.portal.services, self.ada)
            (made["notification_id"],) = (
                item.id for item in page.items if item.document_id == document["document_id"]
            )
        if "token_id" in names:
            token, _ = sessions.create_personal_token(
                self.portal.services, self.ada, name="script", ttl_s=600
            )
            made["token_id"] = token.id
        if "session_id" in names:
            token = self.portal.token(self.ada)
            found = tokens.authenticate(self.portal.services, token).session
            made["session_id"] = found.id if found else None
        if "passkey_id" in names:
            made["passkey_id"] = self.passkey(self.ada.id)
        if names & {"change_id", "report_id"}:
            services, tagged = self.portal.services, BulkAction.ADD_TAG
            target = BulkTarget((self.document(is_trashed=False)["document_id"],))
            done = bulk.apply(services, self.ada, target, tagged, "quince")
            made["change_id"] = done.change_id
            made["report_id"] = bulk.add_report(services, self.ada, tagged, done)
        if "search_id" in names:
            name = f"Quinces {next(self.numbers)}"
            made["search_id"] = saved.save(self.portal.services, self.ada, name, {"q": "quince"}).id
        if names & {"user_id", "invitation_id"}:
            made["user_id"] = self.portal.user(f"person {next(self.numbers)}").id
            self.passkey(made["user_id"])
            made["invitation_id"] = invitations.invite(self.portal.services, self.portal.admin).id
        return made | (self.group(names) if "group_id" in names else {})

    def call(self, rule: Rule, row: Row, values: dict[str, Any], headers: dict[str, str]) -> Any:
        """Send a request with a new client and return the response."""
        address = rule.build(values | _fillers(rule, values), append_unknown=False)
        assert address
        sends = {kind: _filled(sent, values, self.numbers) for kind, sent in row.sends.items()}
        client = self.app.test_client()
        answer = client.open(address[1], method=method_of(rule), headers=headers, **sends)
        answer.get_data()  # Read it all, so that the request has ended.
        return answer

    def personal(self, user: User, *scopes: Scope) -> dict[str, str]:
        _, secret = sessions.create_personal_token(
            self.portal.services, user, name="script", ttl_s=600, scopes=scopes
        )
        return {"Authorization": f"Bearer {secret}"}

    def forged(self, **changed: Any) -> dict[str, str]:
        """Return ada's token with other claims, signed with the portal's key."""
        services = self.portal.services
        kinds = {TokenKind.ACCESS}
        claims = tokens.read_claims(services, self.portal.token(self.ada), kinds=kinds)
        body = claims | {"jti": str(claims["jti"]), "sub": str(claims["sub"]), "typ": "access"}
        token = jwt.encode(body | changed, services.secret_key, algorithm=tokens.ALGORITHM)
        return {"Authorization": f"Bearer {token}"}


def _fillers(rule: Rule, values: dict[str, Any]) -> dict[str, Any]:
    missing = rule.arguments - set(values)
    return {name: 1 if name == "number" else "x" for name in missing}


def method_of(rule: Rule) -> str:
    (method,) = (rule.methods or set()) - {"HEAD", "OPTIONS"}
    return str(method)


def _filled(sent: Any, values: dict[str, Any], numbers: Iterator[int]) -> Any:
    if isinstance(sent, dict):
        return {name: _filled(value, values, numbers) for name, value in sent.items()}
    if isinstance(sent, list):
        return [_filled(value, values, numbers) for value in sent]
    if sent == "<file>":
        return (io.BytesIO(f"A note, number {next(numbers)}.".encode()), "note.txt")
    if isinstance(sent, str) and sent.startswith("<"):
        return str(values[sent.strip("<>")])
    return sent


def plain(answer: TestResponse) -> tuple[int, str]:
    return answer.status_code, _VARIABLE.sub("…", answer.get_data(as_text=True))


def rows_of(app: Flask) -> list[tuple[Rule, Row]]:
    return [(rule, ROWS[rule.endpoint]) for rule in app.url_map.iter_rules()]
