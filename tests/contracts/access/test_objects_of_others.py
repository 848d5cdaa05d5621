"""Others may do nothing with a user's objects, unless these are shared with them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from werkzeug.routing import Rule

from portal.domain.documents import Visibility
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole
from portal.domain.people import User
from portal.services.documents.folders import members as folder_members
from portal.services.people import groups
from tests.contracts.access.rows import OWN, READ, SEEING, Row, Who
from tests.contracts.access.world import World, plain, rows_of

# A user's own switches of a document, which change nothing for others.
SWITCHES = {
    "selection.set_default",
    "selection.set_folder_default",
    "selection_api.set_default",
    "selection_api.forget_default",
    "selection_api.set_folder_default",
    "selection_api.forget_folder_default",
}
# The row makes the document private, which only its owner may do, not the keepers of a folder.
OWNERS_ALONE = {"reading.edit"}
LEADS_TO_CHANGES = {
    *("documents.confirm_delete", "folders.show_edit", "folders.confirm_delete"),
    *("folder_sources.show", "folder_sources_api.get_source"),
}


def told_apart(
    world: World, rule: Rule, row: Row, objects: dict[str, Any], people: dict[str, User]
) -> list[tuple[str, str, int, int]]:
    """Return the users who can tell these objects from missing ones, with the status of both
    responses."""
    found = []
    for who, user in people.items():
        headers = world.portal.headers(user)
        missing = plain(world.call(rule, row, dict.fromkeys(objects, uuid4()), headers))
        foreign = plain(world.call(rule, row, objects, headers))
        if missing[0] != 404 or foreign != missing:
            found.append((rule.endpoint, who, foreign[0], missing[0]))
    return found


def test_foreign_objects_answer_like_missing_ones(world: World) -> None:
    others: dict[Who, dict[str, User]] = {
        SEEING: {"other person": world.eve},
        OWN: {"other person": world.eve, "administrator": world.portal.admin},
    }
    wrong = []
    for rule, row in rows_of(world.app):
        there = world.objects(rule, row)
        wrong += told_apart(world, rule, row, there, others.get(row.who, {}))
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
    """To all others, shared documents in a members-only folder are like missing ones."""
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
        wrong += told_apart(world, rule, row, there[row.is_trashed], people)
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("role", FolderRole)
def test_members_can_do_only_what_their_role_allows(world: World, role: FolderRole) -> None:
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
