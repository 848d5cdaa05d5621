"""A cached set of enabled documents is never stale: every change to it changes its version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from threading import Barrier
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from portal.domain.deadlines import Deadline
from portal.domain.people import User
from portal.domain.search import SearchMode, SearchRequest
from portal.services import Services
from portal.services.documents import library
from portal.services.search import engine
from portal.services.search.cache import SearchCache
from portal.store.documents import rows as document_store
from portal.store.search.context import read_context
from portal.store.search.filters.narrowing import narrowing
from portal.store.search.selection import enabled_sets
from portal.store.search.selection.enabled import EnabledQuery, EnabledSet, drifted
from portal.store.search.selection.enabled_sets import EnabledSets
from portal.store.search.selection.scope import Scope, Versions
from portal.store.session import Session
from portal.text.terms.query_syntax import parse_query
from tests.conftest import Portal

DOCUMENTS, DEFAULTS, OVERRIDES = "documents", "defaults", "overrides"
TEXTS = ("The violin stands in the hall.", "The copper pot hangs in the hall.")
NEVER = {"exact_always_chunks": 0, "exact_chunks": 0, "exact_share": 0.0}
ALWAYS = {"exact_always_chunks": 1_000_000, "exact_chunks": 1_000_000, "exact_share": 1.0}


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


@pytest.fixture
def shelf(portal: Portal) -> Shelf:
    ann, ben = portal.user("ann"), portal.user("ben")
    first, second = (portal.add(content, owner=ann).id for content in TEXTS)
    with portal.services.database.begin() as session:
        conversations = [
            session.execute(
                text("INSERT INTO conversations (user_id) VALUES (:user) RETURNING id"),
                {"user": user.id},
            ).scalar_one()
            for user in (ann, ben)
        ]
    return Shelf(portal, ann, ben, first, second, *conversations)


# --- what bumps which version ---------------------------------------------------------------------

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


@pytest.mark.parametrize("change", OF_DOCUMENTS)
def test_change_of_a_document_bumps_the_version_of_documents(shelf: Shelf, change: str) -> None:
    assert DOCUMENTS in shelf.changed(OF_DOCUMENTS[change])


def test_publishing_new_text_bumps_the_version_of_documents(shelf: Shelf) -> None:
    assert shelf.changed(
        "INSERT INTO jobs (document_id, status) VALUES (:first, 'ready')",
        "UPDATE documents SET current_job_id ="
        " (SELECT id FROM jobs WHERE document_id = :first ORDER BY created_at DESC LIMIT 1)"
        " WHERE id = :first",
    ) == {DOCUMENTS}


def test_moving_to_another_collection_bumps_both(shelf: Shelf) -> None:
    def version(name: str) -> int:
        with shelf.services.database.begin() as session:
            return session.execute(
                text("SELECT documents_version FROM collections WHERE name = :name"),
                {"name": name},
            ).scalar_one()

    shelf.commit("INSERT INTO collections (name) VALUES ('other')")
    before = version("portal"), version("other")
    shelf.commit(
        "UPDATE documents SET collection_id = (SELECT id FROM collections WHERE name = 'other')"
        " WHERE id = :first"
    )
    after = version("portal"), version("other")
    assert before[0] != after[0]
    assert before[1] != after[1]


OF_SWITCHES = {
    "set": "INSERT INTO {table} VALUES ({mine}, :second, FALSE)",
    "turned": "UPDATE {table} SET enabled = TRUE WHERE {column} = {mine} AND document_id = :first",
    "set or turned": "INSERT INTO {table} VALUES ({mine}, :first, TRUE)"
    " ON CONFLICT ({column}, document_id) DO UPDATE SET enabled = TRUE",
    "forgotten": "DELETE FROM {table} WHERE {column} = {mine} AND document_id = :first",
    "of another document": "UPDATE {table} SET document_id = :second WHERE {column} = {mine}",
    "somebody else's": "UPDATE {table} SET {column} = {other} WHERE {column} = {mine}",
    "gone with its document": "DELETE FROM documents WHERE id = :first",
}
SWITCHES = {
    DEFAULTS: ("user_document_defaults", "user_id", ":ann", ":ben"),
    OVERRIDES: (
        "conversation_document_overrides",
        "conversation_id",
        ":conversation",
        ":other_conversation",
    ),
}


@pytest.mark.parametrize("kind", SWITCHES)
@pytest.mark.parametrize("change", OF_SWITCHES)
def test_change_of_a_switch_bumps_its_owners_version(shelf: Shelf, kind: str, change: str) -> None:
    table, column, mine, other = SWITCHES[kind]
    shelf.commit(f"INSERT INTO {table} VALUES ({mine}, :first, FALSE)")
    statement = OF_SWITCHES[change].format(table=table, column=column, mine=mine, other=other)
    of_the_document = {DOCUMENTS} if change == "gone with its document" else set()
    assert shelf.changed(statement) == {kind} | of_the_document


@pytest.mark.parametrize("kind", SWITCHES)
def test_switches_of_others_change_nothing(shelf: Shelf, kind: str) -> None:
    table, _, mine, other = SWITCHES[kind]
    shelf.commit(f"INSERT INTO {table} VALUES ({mine}, :second, FALSE)")
    assert not shelf.changed(f"INSERT INTO {table} VALUES ({other}, :first, FALSE)")


def test_switch_taken_over_bumps_the_new_owner_too(shelf: Shelf) -> None:
    shelf.commit("INSERT INTO user_document_defaults VALUES (:ben, :first, FALSE)")
    assert shelf.changed("UPDATE user_document_defaults SET user_id = :ann") == {DEFAULTS}


def test_what_changes_no_result_bumps_nothing(shelf: Shelf) -> None:
    assert not shelf.changed(
        "UPDATE documents SET status = 'failed', updated_at = now() WHERE id = :first",
        "UPDATE users SET last_seen_at = now() WHERE id = :ann",
        "UPDATE conversations SET title = 'renamed' WHERE id = :conversation",
    )


@pytest.mark.parametrize(
    "owner", ["users WHERE id = :ann", "conversations WHERE id = :conversation"]
)
def test_owner_of_switches_can_be_erased(shelf: Shelf, owner: str) -> None:
    """Switches are deleted with their owner, although their trigger finds no row to update."""
    shelf.commit(DEFAULT_OFF, OVERRIDE_OFF)
    shelf.commit(f"DELETE FROM {owner}")
    with shelf.services.database.begin() as session:
        left = session.scalar(text("SELECT count(*) FROM conversation_document_overrides"))
    assert left == 0


# --- transactions ---------------------------------------------------------------------------------

CHANGES = {
    DOCUMENTS: "UPDATE documents SET deleted_at = now() WHERE id = :first",
    DEFAULTS: DEFAULT_OFF,
    OVERRIDES: OVERRIDE_OFF,
}


@pytest.mark.parametrize("kind", CHANGES)
def test_version_changes_with_the_commit_and_not_before(shelf: Shelf, kind: str) -> None:
    before, found = shelf.versions(), shelf.find()
    with shelf.services.database.begin() as session:
        shelf.do(session, CHANGES[kind])
        assert shelf.versions() == before
        assert shelf.find() == found == {shelf.first, shelf.second}
    assert shelf.versions()[kind] != before[kind]
    assert shelf.find() == {shelf.second}


@pytest.mark.parametrize("kind", CHANGES)
def test_rolled_back_change_bumps_nothing(shelf: Shelf, kind: str) -> None:
    before = shelf.versions()
    with shelf.services.database.begin() as session:
        shelf.do(session, CHANGES[kind])
        session.rollback()
    with shelf.services.database.begin() as session:
        part = session.begin_nested()
        shelf.do(session, CHANGES[kind])
        part.rollback()
    assert shelf.versions() == before


def test_versions_never_come_back(shelf: Shelf) -> None:
    """A repeated version would make a set cached long ago look current."""
    shelf.commit(DEFAULT_OFF, OVERRIDE_OFF)
    seen = [shelf.versions()]
    for _ in range(5):
        for value in ("TRUE", "FALSE"):
            shelf.commit(
                f"UPDATE user_document_defaults SET enabled = {value}",
                f"UPDATE conversation_document_overrides SET enabled = {value}",
                f"UPDATE documents SET visibility = '{'shared' if value else 'private'}'",
            )
            seen.append(shelf.versions())
    for kind in seen[0]:
        assert len({versions[kind] for versions in seen}) == len(seen)


def test_version_changes_when_an_older_transaction_commits_last(shelf: Shelf) -> None:
    """Versions are transaction ids, and transactions do not commit in the order of their ids."""
    seen = [shelf.versions()]
    with shelf.services.database.begin() as older:
        older.execute(text("SELECT pg_current_xact_id()"))
        shelf.commit("UPDATE documents SET deleted_at = now() WHERE id = :second")
        seen.append(shelf.versions())
        assert shelf.find() == {shelf.first}
        shelf.do(older, "UPDATE documents SET deleted_at = now() WHERE id = :first")
    seen.append(shelf.versions())
    assert len({versions[DOCUMENTS] for versions in seen}) == 3
    assert not shelf.find()


@pytest.mark.parametrize(
    ("bumped", "statement"),
    [
        ("users", "INSERT INTO user_document_defaults SELECT :ann, id, FALSE FROM documents"),
        (
            "conversations",
            """INSERT INTO conversation_document_overrides
            SELECT :conversation, id, FALSE FROM documents""",
        ),
        ("collections", "UPDATE documents SET deleted_at = now()"),
    ],
)
def test_a_thousand_documents_at_once_bump_once(shelf: Shelf, bumped: str, statement: str) -> None:
    shelf.commit(
        NEW_DOCUMENT.replace("WHERE id = :first", ", generate_series(1, 1000) WHERE id = :first")
    )
    shelf.commit(
        "CREATE TABLE bumps (at timestamptz DEFAULT clock_timestamp())",
        "CREATE FUNCTION note_bump() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO bumps DEFAULT VALUES; RETURN NULL; END'",
        f"CREATE TRIGGER note_bump AFTER UPDATE ON {bumped}"
        " FOR EACH ROW EXECUTE FUNCTION note_bump()",
    )
    shelf.commit(statement)
    with shelf.services.database.begin() as session:
        assert session.scalar(text("SELECT count(*) FROM bumps")) == 1
    assert not shelf.find()


def test_transactions_that_go_opposite_ways_do_not_deadlock(shelf: Shelf) -> None:
    """One deletes a document and then sets a switch, the other does the reverse: both must lock the
    row shared by all documents last."""
    trash = "UPDATE documents SET deleted_at = now() WHERE id = {}"
    switch = (
        "INSERT INTO user_document_defaults VALUES (:ann, {}, FALSE)"
        " ON CONFLICT (user_id, document_id) DO UPDATE SET enabled = NOT excluded.enabled"
    )
    both = Barrier(2)

    def run(first: str, then: str) -> None:
        with shelf.services.database.begin() as session:
            shelf.do(session, first)
            both.wait(timeout=60)
            shelf.do(session, then)

    with ThreadPoolExecutor(2) as threads:
        for _ in range(5):
            runs = [
                threads.submit(run, trash.format(":first"), switch.format(":first")),
                threads.submit(run, switch.format(":second"), trash.format(":second")),
            ]
            for one in runs:
                one.result(timeout=120)
    assert not shelf.find()


def test_uploads_do_not_wait_for_each_other(shelf: Shelf) -> None:
    with shelf.services.database.begin() as unfinished:
        shelf.do(unfinished, NEW_DOCUMENT)
        shelf.commit("SET LOCAL lock_timeout = '5s'", NEW_DOCUMENT)


# --- changes in the very moment of a search -------------------------------------------------------

AT_ONCE = {
    "default off": DEFAULT_OFF,
    "override off": OVERRIDE_OFF,
    "into the trash": CHANGES[DOCUMENTS],
    "foreign": "UPDATE documents SET visibility = 'private', owner_id = :ben WHERE id = :first",
    "withdrawn": "UPDATE documents SET current_job_id = NULL WHERE id = :first",
}


@contextmanager
def after_once(function: str, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` once, right after this function of the search returns."""
    module = engine if hasattr(engine, function) else EnabledQuery
    original = getattr(module, function)
    with pytest.MonkeyPatch.context() as patch:

        def acting(*values: Any, **named: Any) -> Any:
            result = original(*values, **named)
            patch.setattr(module, function, original)
            act()
            return result

        patch.setattr(module, function, acting)
        yield


@pytest.mark.parametrize("plan", [NEVER, ALWAYS, {}], ids=["index", "exact", "default"])
def test_what_is_switched_off_during_a_search_is_not_shown(
    shelf: Shelf, make_services: Callable[..., Services], plan: dict[str, Any]
) -> None:
    """This holds for a change before or after the set is computed and with a cached set; the next
    search uses no stale set either."""
    process = make_services(search={"plan": plan})
    for change, mode in product(AT_ONCE, SearchMode):
        for function, is_kept in (
            ("read_context", True),
            ("read_context", False),
            ("count", False),
        ):
            # Start without cached results, which are valid for a search begun before the change.
            fresh = replace(process, enabled_sets=EnabledSets(), search_cache=SearchCache())
            if is_kept:
                assert shelf.find(fresh, mode=mode) == {shelf.first, shelf.second}
            with after_once(function, lambda: shelf.commit(AT_ONCE[change])):  # noqa: B023
                assert shelf.find(fresh, mode=mode) == {shelf.second}, (change, mode, function)
            assert shelf.find(fresh, mode=mode) == {shelf.second}
            undo(shelf)
            assert shelf.find(fresh, mode=mode) == {shelf.first, shelf.second}


def test_text_published_during_a_search_replaces_what_was_there(shelf: Shelf) -> None:
    old = library.list_chunks(shelf.services, shelf.ann, shelf.first)[0][0].id
    with shelf.services.database.begin() as session:
        job, new = session.execute(_NEW_TEXT, {"document": shelf.first}).one()

    def publish() -> None:
        with shelf.services.database.begin() as session:
            document_store.publish(session, document_id=shelf.first, job_id=job)

    request = SearchRequest("violin", mode=SearchMode.KEYWORD)
    for is_published in (False, True):
        if not is_published:
            with after_once("read_context", publish):
                hits = engine.search(shelf.services, shelf.ann, request).hits
        else:
            hits = engine.search(shelf.services, shelf.ann, request).hits
        found = {hit.chunk_id for hit in hits}
        assert old not in found
    assert found == {new}


_NEW_TEXT = text(
    """
    WITH job AS (
        INSERT INTO jobs (document_id, status) VALUES (:document, 'ready') RETURNING id
    )
    INSERT INTO document_chunks
        (job_id, document_id, collection_id, chunk_index, content, terms, char_start, char_end)
    SELECT job.id, d.id, d.collection_id, 0, 'Another violin.', 'anoth violin', 0, 15
    FROM documents d, job WHERE d.id = :document
    RETURNING job_id, id
    """
)


def undo(shelf: Shelf) -> None:
    shelf.commit(
        "DELETE FROM user_document_defaults",
        "DELETE FROM conversation_document_overrides",
        "UPDATE documents SET deleted_at = NULL, visibility = 'shared', owner_id = :ann,"
        " current_job_id = (SELECT id FROM jobs WHERE document_id = documents.id)",
    )


# --- sets that follow changes ---------------------------------------------------------------------

OFF_AND_ON = (
    DEFAULT_OFF,
    "UPDATE user_document_defaults SET enabled = TRUE WHERE user_id = :ann",
    "DELETE FROM user_document_defaults WHERE user_id = :ann",
)
FOLDER = "INSERT INTO folders (id, name) VALUES (:conversation, 'box')"
INTO_FOLDER = "UPDATE documents SET folder_id = :conversation WHERE id = :first"
FOLDER_OFF = (
    "INSERT INTO folder_switches (user_id, folder_id, enabled) VALUES (:ann, :conversation, FALSE)"
)
# Transactions, and whether the set follows their changes instead of being collected again.
FOLLOWED: dict[str, tuple[tuple[tuple[str, ...], bool], ...]] = {
    "switches": tuple(((one,), True) for one in (*OFF_AND_ON, OVERRIDE_OFF)),
    "all at once": ((OFF_AND_ON, True), ((OVERRIDE_OFF, DEFAULT_OFF), True)),
    "documents": tuple(
        ((OF_DOCUMENTS[name],), True)
        for name in ("into the trash", "out of the trash", "withdrawn", "a new document")
    ),
    "hidden and given away": (
        ((OF_DOCUMENTS["hidden"],), True),
        ((OF_DOCUMENTS["given away"], DEFAULT_OFF), True),
    ),
    "a folder": (
        ((FOLDER,), True),
        ((INTO_FOLDER,), True),
        ((FOLDER_OFF,), False),
        ((DEFAULT_OFF,), True),
    ),
    "a folder after a document": (
        ((FOLDER, INTO_FOLDER), True),
        ((OVERRIDE_OFF, FOLDER_OFF), False),
    ),
    "a document after a folder": (
        ((FOLDER, INTO_FOLDER), True),
        ((FOLDER_OFF, DEFAULT_OFF, OVERRIDE_OFF), False),
    ),
    "a scope": (
        ((OVERRIDE_OFF,), True),
        (('UPDATE conversations SET scope = \'{"tags": ["x"]}\' WHERE id = :conversation',), False),
    ),
    "a version that nothing noted": (
        (("UPDATE users SET selection_version = 1 WHERE id = :ann",), False),
        ((DEFAULT_OFF,), True),
    ),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_set_follows_what_changed(shelf: Shelf, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[object] = []
    count = EnabledQuery.count

    def collect(query: EnabledQuery) -> EnabledSet:
        collected.append(query)
        return count(query)

    monkeypatch.setattr(EnabledQuery, "count", collect)
    kept = EnabledSets()
    scope = Scope(shelf.ann, shelf.conversation)

    def find() -> EnabledSet:
        with shelf.services.database.driver() as reader:
            read = read_context(reader, shelf.ann.id, shelf.conversation, keyword_backend="auto")
            query = EnabledQuery(reader, scope, read.versions, 100, Deadline.within(5))
            found, fresh = kept.find(query), count(query)
        assert found.is_same(fresh)
        assert (found.document_count, found.chunk_count) == (
            fresh.document_count,
            fresh.chunk_count,
        )
        return found

    find()
    for statements, is_followed in FOLLOWED[name]:
        collected.clear()
        shelf.commit(*statements)
        find()
        assert (not collected) is is_followed, statements


def test_counts_of_a_broad_set_are_taken_again_before_they_are_far_off() -> None:
    broad = EnabledSet(1_000, 10_000, None)
    for drift, is_known in ((100, True), (200, True), (201, False)):
        found = drifted(broad, drift, max_chunks=5_000)
        assert (found is not None) is is_known
    assert drifted(broad, 10, max_chunks=9_995) is None


# --- the memory itself ----------------------------------------------------------------------------

COLLECTION = uuid4()


def counted(scope: Scope, number: int, count: Callable[[], EnabledSet]) -> EnabledQuery:
    """Return a query that needs no database: it knows its count, and of no changes."""
    versions = Versions(COLLECTION, number, 0, 0)
    return cast(
        "EnabledQuery",
        SimpleNamespace(scope=scope, versions=versions, count=count, follow=lambda *_: None),
    )


def test_set_is_computed_once_for_its_versions(shelf: Shelf) -> None:
    kept, scope, computed = EnabledSets(), Scope(shelf.ann), []

    def compute() -> EnabledSet:
        computed.append(1)
        return EnabledSet(len(computed), 1, None)

    for number, expected in ((1, 1), (1, 1), (2, 2), (2, 2), (1, 3)):
        assert kept.get(counted(scope, number, compute)).document_count == expected


def test_sets_of_different_askers_are_distinguished(shelf: Shelf) -> None:
    kept = EnabledSets()
    scopes = [
        Scope(shelf.ann),
        Scope(shelf.ben),
        Scope(replace(shelf.ann, is_admin=True)),
        Scope(shelf.ann, shelf.conversation),
        *(Scope(shelf.ann, None, narrowing(parse_query(q))) for q in ("title:a", "title:b")),
        *(Scope(shelf.ann, None, narrowing(parse_query("a"), domain=d)) for d in ("x", "y")),
    ]
    for number, scope in enumerate(scopes):
        found = EnabledSet(number, number, None)
        assert kept.get(counted(scope, 1, lambda: found)) is found  # noqa: B023


def test_memory_is_bounded(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enabled_sets, "_CACHE_BYTES", 2_000)
    kept = EnabledSets()
    huge = EnabledSet(1, 1, "x" * 3_000)
    assert kept.get(counted(Scope(shelf.ann), 1, lambda: huge)) is huge
    for number in range(100):
        scope = Scope(shelf.ann, uuid4())
        kept.get(counted(scope, number, lambda: EnabledSet(1, 1, None)))
    assert kept._kept.currsize <= 2_000
