"""Who may use which route: one row for each, checked against the live routes and a live portal.

A new route fails until it has a row in `route_access_rows.py`, and a row without a route fails
too. Rows say who has access and the status of a valid request; the row's kind decides the response
to everyone else. Another user's private object must be answered like a missing one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import jwt
import pytest
from flask import Flask
from sqlalchemy import text
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from portal import api
from portal.domain.documents import Visibility
from portal.domain.documents.bulk import BulkAction, BulkTarget
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole, FolderVisibility
from portal.domain.people import Scope, TokenKind, User
from portal.http import context
from portal.services.answers import conversations
from portal.services.documents import bulk, folders, library, notifications
from portal.services.documents.folders import members as folder_members
from portal.services.people import accounts, groups, sessions, tokens
from portal.services.search import saved
from portal.store.people import second_factors
from tests.conftest import Portal
from tests.contracts.route_access_rows import (
    ADMINS,
    ALL,
    OWN,
    PEOPLE,
    QUESTION,
    READ,
    ROWS,
    SEEING,
    WRITE,
    Row,
    Who,
)
from tests.factories.answers import ask

OBJECTS = {
    *("document_id", "job_id", "chunk_id", "conversation_id", "message_id", "citation_id"),
    *(
        "token_id",
        "user_id",
        "notification_id",
        "session_id",
        "passkey_id",
        "folder_id",
        "change_id",
        "member_id",
        "group_id",
        "search_id",
    ),
}
# Parts in which responses about a foreign and a missing object may differ.
_VARIABLE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b"
    r"|[\w=-]{150,}"  # What proves that a form is ours.
)
# Page forms without a form token are refused before the user is checked.
_CLOSED_PAGE = {303, 403}


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

    def conversation(self, *, is_question: bool) -> dict[str, UUID]:
        services = self.portal.services
        begun = conversations.create(services, self.ada, "Garden").id
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
            made |= self.conversation(is_question=row.is_question)
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
        if "change_id" in names:
            target = BulkTarget((self.document(is_trashed=False)["document_id"],))
            done = bulk.apply(self.portal.services, self.ada, target, BulkAction.ADD_TAG, "quince")
            made["change_id"] = done.change_id
        if "search_id" in names:
            name = f"Quinces {next(self.numbers)}"
            made["search_id"] = saved.save(self.portal.services, self.ada, name, {"q": "quince"}).id
        if "user_id" in names:
            made["user_id"] = self.portal.user(f"person {next(self.numbers)}").id
            self.passkey(made["user_id"])
        return made | (self.group(names) if "group_id" in names else {})

    def call(self, rule: Rule, row: Row, values: dict[str, Any], headers: dict[str, str]) -> Any:
        """Send a request with a new client and return the response."""
        address = rule.build(values | _fillers(rule, values), append_unknown=False)
        assert address
        sends = {kind: _filled(sent, values, self.numbers) for kind, sent in row.sends.items()}
        client = self.app.test_client()
        answer = client.open(address[1], method=_method(rule), headers=headers, **sends)
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


def _method(rule: Rule) -> str:
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


def _plain(answer: TestResponse) -> tuple[int, str]:
    return answer.status_code, _VARIABLE.sub("…", answer.get_data(as_text=True))


def _is_for_programs(rule: Rule) -> bool:
    return rule.rule.startswith(api.PREFIXES)


@pytest.fixture
def world(portal: Portal) -> World:
    app = portal.app()
    world = World(portal, app, portal.user("ada"), portal.user("eve"))
    portal.user("zoe")  # Who signs in with a password alone.
    for user in (world.ada, world.eve):
        world.passkey(user.id)
    return world


def rows_of(app: Flask) -> list[tuple[Rule, Row]]:
    return [(rule, ROWS[rule.endpoint]) for rule in app.url_map.iter_rules()]


def test_every_route_has_a_row_and_every_row_a_route(world: World) -> None:
    rules = list(world.app.url_map.iter_rules())
    assert {rule.endpoint for rule in rules} == set(ROWS)
    assert len(rules) == len(ROWS)
    for rule in rules:
        assert len((rule.methods or set()) - {"HEAD", "OPTIONS"}) == 1, rule


def test_views_say_of_themselves_what_their_rows_say(world: World) -> None:
    for rule, row in rows_of(world.app):
        view = world.app.view_functions[rule.endpoint]
        assert getattr(view, "is_public", False) == (row.who is ALL), rule.endpoint
        if row.who is not ALL:
            assert context.scope_of(view, _method(rule)) is row.scope, rule.endpoint


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
        return code == row.ok or (code == 403 and not has_bearer and _method(rule) == "POST")
    if _is_for_programs(rule):
        return code == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer ")
    if code == 303:
        return answer.headers["Location"].startswith("/login")
    return code == 403 and not has_bearer and _method(rule) == "POST"


def test_foreign_objects_answer_like_missing_ones(world: World) -> None:
    others: dict[Who, dict[str, User]] = {
        SEEING: {"other person": world.eve},
        OWN: {"other person": world.eve, "administrator": world.portal.admin},
    }
    wrong = []
    for rule, row in rows_of(world.app):
        there = world.objects(rule, row)
        for who, user in others.get(row.who, {}).items():
            headers = world.portal.headers(user)
            missing = _plain(world.call(rule, row, dict.fromkeys(there, uuid4()), headers))
            foreign = _plain(world.call(rule, row, there, headers))
            if missing[0] != 404 or foreign != missing:
                wrong.append((rule.endpoint, who, foreign[0], missing[0]))
    assert not wrong, "\n".join(map(str, wrong))


def test_shared_document_is_read_by_others_but_not_changed(world: World) -> None:
    headers, wrong = world.portal.headers(world.eve), []
    shared = {
        is_trashed: world.document(is_trashed=is_trashed, visibility=Visibility.SHARED)
        for is_trashed in (False, True)
    }
    for rule, row in rows_of(world.app):
        if row.who is not SEEING:
            continue
        is_theirs_to_use = row.scope is READ or rule.endpoint in SWITCHES
        expected = row.ok if is_theirs_to_use and rule.endpoint not in LEADS_TO_CHANGES else 403
        answer = world.call(rule, row, shared[row.is_trashed], headers)
        if answer.status_code != (404 if row.is_trashed else expected):
            wrong.append((rule.endpoint, answer.status_code))
    assert not wrong, "\n".join(map(str, wrong))


def test_members_of_other_folders_and_removed_members_see_nothing(world: World) -> None:
    """Shared documents in a folder for members are like missing ones to all others."""
    services, admin = world.portal.services, world.portal.admin
    there = {is_trashed: world.gated(is_trashed=is_trashed) for is_trashed in (False, True)}
    people = {role.value: world.portal.user(f"other {role}") for role in FolderRole}
    elsewhere = world.gated()["folder_id"]
    for role in FolderRole:
        world.member(elsewhere, people[role.value].name, role)
    people["removed"], people["removed with a group"] = world.eve, world.portal.user("ina")
    group_id = groups.create_group(services, admin, name="Gardeners")
    groups.add_member(services, admin, group_id, "ina")
    for made in there.values():
        eve = world.member(made["folder_id"], "eve", FolderRole.KEEPER)
        folder_members.set_member(
            services,
            world.ada,
            made["folder_id"],
            kind=MemberKind.GROUP,
            name="gardeners",
            role=FolderRole.KEEPER,
        )
    addresses = [f"/documents/{there[False]['document_id']}", "/api/folders"]
    for who in ("removed", "removed with a group"):
        headers = world.portal.headers(people[who])
        seen = [world.app.test_client().get(address, headers=headers) for address in addresses]
        assert seen[0].status_code == 200
        assert str(there[False]["folder_id"]) in seen[1].get_data(as_text=True)
    for made in there.values():
        folder_members.remove_member(services, world.ada, made["folder_id"], eve)
    groups.remove_member(services, admin, group_id, people["removed with a group"].id)
    wrong = []
    for rule, row in rows_of(world.app):
        if row.who is not SEEING:
            continue
        objects = there[row.is_trashed]
        for who, user in people.items():
            headers = world.portal.headers(user)
            missing = _plain(world.call(rule, row, dict.fromkeys(objects, uuid4()), headers))
            foreign = _plain(world.call(rule, row, objects, headers))
            if missing[0] != 404 or foreign != missing:
                wrong.append((rule.endpoint, who, foreign[0], missing[0]))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("role", FolderRole)
def test_members_do_what_their_role_lets_them(world: World, role: FolderRole) -> None:
    headers, wrong = world.portal.headers(world.eve), []
    kept = world.gated()
    world.member(kept["folder_id"], "eve", role)
    for rule, row in rows_of(world.app):
        if row.who is not SEEING or row.is_trashed:
            continue
        values = kept
        if role is FolderRole.KEEPER and row.scope is not READ:
            values = world.gated()
            world.member(values["folder_id"], "eve", role)
        expected = row.ok
        is_change = row.scope is not READ or rule.endpoint in LEADS_TO_CHANGES
        if is_change and role is not FolderRole.KEEPER and rule.endpoint not in SWITCHES:
            expected = 403
        if rule.endpoint in OWNERS_ALONE:
            expected = 403
        answer = world.call(rule, row, values, headers)
        if answer.status_code != expected:
            wrong.append((rule.endpoint, answer.status_code, expected))
    assert not wrong, "\n".join(map(str, wrong))


def test_everyone_whom_a_row_lets_in_gets_in(world: World) -> None:
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


def test_ordinary_users_are_no_administrators(world: World) -> None:
    wrong = []
    for rule, row in rows_of(world.app):
        if row.who is ADMINS:
            values = world.objects(rule, row)
            answer = world.call(rule, row, values, world.portal.headers(world.eve))
            if answer.status_code != 403:
                wrong.append((rule.endpoint, answer.status_code))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("scope", [READ, WRITE])
def test_personal_token_gets_as_far_as_its_scope(world: World, scope: Scope) -> None:
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


# A user's own switches of a document, which change nothing for others.
SWITCHES = {
    "selection.set_default",
    "selection.set_folder_default",
    "selection_api.set_default",
    "selection_api.forget_default",
    "selection_api.set_folder_default",
    "selection_api.forget_folder_default",
}
# The row makes the document private, which is for its owner to do, not for a folder's keepers.
OWNERS_ALONE = {"reading.edit"}
LEADS_TO_CHANGES = {
    *("documents.confirm_delete", "folders.show_edit", "folders.confirm_delete"),
    *("folder_sources.show", "folder_sources_api.get_source"),
}
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
