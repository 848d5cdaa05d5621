"""Versions of documents and switches: what bumps which, and when."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import text

from tests.integration.search.plans.enabled_sets.conftest import (
    CHANGES,
    DEFAULT_OFF,
    DEFAULTS,
    DOCUMENTS,
    NEW_DOCUMENT,
    OF_DOCUMENTS,
    OVERRIDE_OFF,
    OVERRIDES,
    Shelf,
)


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
                text("SELECT documents_version FROM collections WHERE name = :name"), {"name": name}
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


def test_transferred_switch_bumps_the_version_of_the_new_owner(shelf: Shelf) -> None:
    shelf.commit("INSERT INTO user_document_defaults VALUES (:ben, :first, FALSE)")
    assert shelf.changed("UPDATE user_document_defaults SET user_id = :ann") == {DEFAULTS}


def test_changes_that_affect_no_result_keep_the_version(shelf: Shelf) -> None:
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
