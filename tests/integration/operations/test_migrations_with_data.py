"""Migrations of folders, groups and sources, down and up, on a portal that has all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from portal.domain.documents import DocumentFilter, Visibility
from portal.domain.documents.bulk import BulkAction, BulkTarget
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole, FolderVisibility
from portal.domain.documents.selection import AskScope
from portal.domain.search import SearchMode, SearchRequest
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import bulk, folders, switches
from portal.services.documents.folders import members as folder_members
from portal.services.documents.sources import folder_sources
from portal.services.people import accounts, groups
from portal.services.search import engine
from portal.store import migrations
from tests.conftest import Portal
from tests.factories.answers import ask
from tests.integration.documents.sources.tied_folder import Tied

BEFORE_FOLDERS = "0040"
WORDS = {"open": "heron", "board": "osprey", "own": "kestrel", "source": "plover"}


@pytest.fixture
def filled(make_services: Callable[..., Services], tmp_path: Path) -> Portal:
    """Return a portal with mei's folders: shared, for members, private, tied. Ben is in none."""
    services = make_services(sources={"directories": (tmp_path,)})
    portal = Portal.of(services)
    mei, kim = portal.user("mei"), portal.user("kim")
    portal.user("ben")
    (tmp_path / "source.txt").write_text(f"The {WORDS['source']} wades.")
    places = {
        "open": FolderVisibility.SHARED,
        "board": FolderVisibility.MEMBERS,
        "own": FolderVisibility.PRIVATE,
        "source": FolderVisibility.SHARED,
    }
    made = {
        name: folders.create_folder(services, mei, name=name, visibility=one)
        for name, one in places.items()
    }
    below = folders.create_folder(services, mei, name="below", parent_id=made["board"])
    group = groups.create_group(services, portal.admin, name="Board")
    groups.add_member(services, portal.admin, group, "kim")
    for kind, name in ((MemberKind.GROUP, "Board"), (MemberKind.USER, "kim")):
        folder_members.set_member(
            services, mei, made["board"], kind=kind, name=name, role=FolderRole.KEEPER
        )
    stored = {
        name: portal.add(
            f"The {WORDS[name]} flies.",
            name=f"{name}.txt",
            owner=mei,
            visibility=Visibility.PRIVATE if name == "own" else Visibility.SHARED,
        ).id
        for name in ("open", "board", "own")
    }
    for name, folder_id in (("open", made["open"]), ("board", below), ("own", made["own"])):
        bulk.apply(services, mei, BulkTarget((stored[name],)), BulkAction.MOVE, folder_id)
    bulk.apply(services, mei, BulkTarget((stored["open"],)), BulkAction.ADD_TAG, "birds")
    tied = Tied(portal, tmp_path, mei, made["source"])
    tied.tie()
    assert tied.run().added == 1
    tied.index()
    switches.set_folder_switch(services, kim, None, made["open"], False)
    scope = AskScope(documents=(stored["open"],), folders=(made["board"],), tags=("birds",))
    chat = conversations.create(services, kim, scope=scope)
    ask(services, kim, chat.id, "What flies?", scope=AskScope(folders=(made["board"],)))
    conversations.pin(services, kim, chat.id, pinned=True)
    conversations.delete(services, kim, conversations.create(services, kim).id)
    return portal


def found(portal: Portal, name: str) -> set[str]:
    """Return which documents a user finds."""
    user = accounts.find_user(portal.services, name)
    seen = set()
    for document, word in WORDS.items():
        hits = engine.search(
            portal.services, user, SearchRequest(word, mode=SearchMode.KEYWORD)
        ).hits
        seen |= {document for hit in hits if word in hit.excerpt}
    return seen


def test_portal_with_folders_is_migrated_down_and_up_again(
    filled: Portal, database_url: str
) -> None:
    everything, for_all = set(WORDS), {"open", "source"}
    assert (found(filled, "mei"), found(filled, "ben")) == (everything, for_all)
    assert found(filled, "kim") == {"board", "source"}
    filled.services.database.dispose()
    revisions = migrations.known_revisions()
    server = create_engine(database_url)
    # One revision at a time, as an operator goes back release by release.
    for revision in reversed(revisions[revisions.index(BEFORE_FOLDERS) : -1]):
        migrations.migrate(database_url, revision)
    with server.connect() as connection:
        rows = connection.execute(text("SELECT title, visibility FROM documents ORDER BY title"))
        # Nothing is shown to more users than before.
        closed = {"board", "own"}
        assert {row.title: row.visibility == "private" for row in rows} == {
            name: name in closed for name in everything
        }
        chunks = "SELECT count(*) FROM shared_chunks WHERE terms LIKE '%osprey%'"
        assert connection.scalar(text(chunks)) == 0
    migrations.migrate(database_url)
    with server.connect() as connection:
        assert migrations.differences(connection) == []
    server.dispose()
    assert (found(filled, "mei"), found(filled, "ben")) == (everything, for_all)
    mei = accounts.find_user(filled.services, "mei")
    assert folders.list_paths(filled.services, mei) == []
    folder_id = folders.create_folder(filled.services, mei, name="Again")
    target = BulkTarget(None, DocumentFilter())
    assert bulk.apply(filled.services, mei, target, BulkAction.MOVE, folder_id).changed_count == 4


def test_last_run_of_a_source_is_kept_by_an_upgrade(filled: Portal, database_url: str) -> None:
    filled.services.database.dispose()
    migrations.migrate(database_url, "0066")
    migrations.migrate(database_url)
    mei = accounts.find_user(filled.services, "mei")
    (tied,) = (one.id for one in folders.list_paths(filled.services, mei) if one.words == "source")
    source = folder_sources.find_source(filled.services, mei, tied)
    (past,) = folder_sources.list_runs(filled.services, mei, tied)
    assert source is not None
    assert past.ran_at == source.last_run_at
    assert (past.run.added, [one.path for one in past.run.listed]) == (1, ["source.txt"])
