"""The slots of a large selection give the same jobs as the rule itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from portal.domain.deadlines import Deadline
from portal.domain.people import User
from portal.domain.search import SearchMode, SearchRequest
from portal.services import Services
from portal.services.search import engine
from portal.services.search.cache import SearchCache
from portal.store.documents.selection import SELECTION_JOINS, SELECTION_WHERE, selection_binds
from portal.store.search.context import read_context
from portal.store.search.filters.narrowing import Narrowing
from portal.store.search.selection import enabled, job_slots
from portal.store.search.selection.enabled import EnabledQuery, EnabledSet
from portal.store.search.selection.enabled_sets import EnabledSets
from portal.store.search.selection.job_slots import JobSlots, counting_by_slots
from portal.store.search.selection.scope import Scope
from portal.store.statements import fetch
from tests.integration.search.plans.enabled_sets.conftest import Shelf
from tests.integration.search.plans.enabled_sets.test_changes_during_a_search import (
    AT_ONCE,
    NEVER,
    after_once,
    undo,
)

DOCUMENTS = 40
NARROW = Narrowing("AND d.domain = :f_domain", "", {"f_domain": "law"})

MORE = f"""
    INSERT INTO documents (id, collection_id, owner_id, title, file_name, media_type, size_bytes,
                           sha256, domain)
    SELECT gen_random_uuid(), collection_id, :ben, 'more', 'more', media_type, 1, '',
           CASE WHEN number % 3 > 0 THEN 'law' END
    FROM documents, generate_series(1, {DOCUMENTS}) number WHERE id = :first
"""
NEW_JOB = """
    WITH job AS (
        INSERT INTO jobs (document_id, status) VALUES (:document, 'processing') RETURNING id
    )
    INSERT INTO document_chunks
        (job_id, document_id, collection_id, chunk_index, content, terms, char_start, char_end)
    SELECT job.id, d.id, d.collection_id, 0, 'A violin.', 'violin', 0, 9
    FROM documents d, job WHERE d.id = :document RETURNING job_id
"""
PUBLISH = "UPDATE documents SET current_job_id = :job WHERE id = :document"
FOLDERS = (
    "INSERT INTO folders (id, name) VALUES (:first, 'open')",
    (
        "INSERT INTO folders (id, name, owner_id, visibility)"
        " VALUES (:second, 'closed', :ben, 'members')"
    ),
)
CHANGES = (
    (
        "UPDATE documents SET deleted_at = CASE WHEN deleted_at IS NULL THEN now() END"
        " WHERE id = :document"
    ),
    (
        "UPDATE documents SET visibility = CASE visibility WHEN 'shared' THEN 'private'"
        " ELSE 'shared' END WHERE id = :document"
    ),
    "UPDATE documents SET owner_id = :ann WHERE id = :document",
    "UPDATE documents SET folder_id = :first WHERE id = :document",
    "UPDATE documents SET folder_id = :second WHERE id = :document",
    "UPDATE documents SET folder_id = NULL WHERE id = :document",
    "UPDATE documents SET current_job_id = NULL WHERE id = :document",
    "UPDATE documents SET domain = 'law' WHERE id = :document",
    *(
        f"INSERT INTO user_document_defaults VALUES (:ann, :document, {state})"
        f" ON CONFLICT (user_id, document_id) DO UPDATE SET enabled = {state}"
        for state in ("TRUE", "FALSE")
    ),
    "DELETE FROM user_document_defaults WHERE document_id = :document",
    *(
        f"INSERT INTO conversation_document_overrides VALUES (:conversation, :document, {state})"
        f" ON CONFLICT (conversation_id, document_id) DO UPDATE SET enabled = {state}"
        for state in ("TRUE", "FALSE")
    ),
)
RARE = (
    (
        "INSERT INTO folder_switches (user_id, folder_id, enabled) VALUES (:ann, :first, FALSE)"
        " ON CONFLICT DO NOTHING"
    ),
    "DELETE FROM folder_switches",
    (
        "INSERT INTO folder_members (folder_id, user_id, role) VALUES (:second, :ann, 'reader')"
        " ON CONFLICT DO NOTHING"
    ),
    "DELETE FROM folder_members",
    "UPDATE user_document_defaults SET enabled = NOT enabled",
)


def jobs_by_slots(shelf: Shelf, query: EnabledQuery, slots: JobSlots) -> list[set[UUID]]:
    """Return the jobs whose chunks count, among all chunks and among shared ones."""
    binds = slots.binds | {"collection_id": query.versions.collection_id}
    statements = (
        f"SELECT e.job_id FROM document_chunks e {counting_by_slots('e', has_other_jobs=True)}",
        f"SELECT w.job_id FROM shared_chunks w {counting_by_slots('w', has_other_jobs=False)}",
    )
    return [{row[0] for row in fetch(query.reader, text(one), binds)} for one in statements]


def jobs_by_rule(query: EnabledQuery) -> list[set[UUID]]:
    """Return the same by the rule of the selection."""
    scope = query.scope
    binds = selection_binds(scope.user, scope.conversation_id) | scope.narrowing.binds
    counting = f"""
        FROM documents d JOIN document_chunks c ON c.job_id = d.current_job_id {SELECTION_JOINS}
        WHERE {SELECTION_WHERE} {scope.narrowing.documents}
    """
    shared = "AND d.visibility = 'shared' AND d.deleted_at IS NULL AND d.gate_id IS NULL"
    statements = (f"SELECT c.job_id {counting} {also}" for also in ("", shared))
    return [{row[0] for row in fetch(query.reader, text(one), binds)} for one in statements]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("slots_a_job", [1, 16])
def test_slots_select_the_same_jobs_as_the_rule(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, slots_a_job: int, seed: int
) -> None:
    """They stay the same through random changes: switches, folders, gates, visibility, the trash,
    new text, and unfinished jobs."""
    monkeypatch.setattr(job_slots, "_SLOTS_A_JOB", slots_a_job)
    monkeypatch.setattr(enabled, "MAX_CHANGED", 12)
    monkeypatch.setattr(enabled, "_MAX_DRIFT", 1.0)
    draw, kept = random.Random(seed), EnabledSets()
    shelf.commit(MORE, *FOLDERS)
    documents = [row for (row,) in execute(shelf, "SELECT id FROM documents")]
    for document in documents:
        ((job,),) = execute(shelf, NEW_JOB, document=document)
        execute(shelf, PUBLISH, document=document, job=job)
    admin = replace(shelf.ben, is_admin=True)
    scopes = [
        Scope(shelf.ann),
        Scope(shelf.ann, shelf.conversation),
        Scope(shelf.ann, None, NARROW),
        Scope(admin),
    ]
    followed = 0
    for _ in range(60):
        if draw.random() < 0.8:
            document = draw.choice(documents)
            change = draw.choice([*CHANGES, NEW_JOB, NEW_JOB])
            rows = execute(shelf, change, document=document)
            if rows and draw.random() < 0.7:
                execute(shelf, PUBLISH, document=document, job=rows[0][0])
        elif draw.random() < 0.3:
            shelf.commit(draw.choice(RARE))
        for scope in scopes:
            found, by_slots, by_rule = look(shelf, kept, scope)
            assert by_slots == by_rule
            followed += bool(found.slots and found.slots.changed)
    assert followed > 30


def look(
    shelf: Shelf, kept: EnabledSets, scope: Scope
) -> tuple[EnabledSet, list[set[UUID]], list[set[UUID]]]:
    """Return the set of a scope now, its jobs by slots, and its jobs by the rule."""
    with shelf.services.database.driver() as reader:
        read = read_context(
            reader, scope.user.id, scope.conversation_id, keyword_backend="auto"
        ).versions
        query = EnabledQuery(reader, scope, read, 0, Deadline.within(20))
        found = kept.find(query)
        if found.slots is None:
            found = kept.find(query)
        assert found.slots is not None
        return found, jobs_by_slots(shelf, query, found.slots), jobs_by_rule(query)


def execute(shelf: Shelf, statement: str, **binds: UUID) -> list[tuple[UUID, ...]]:
    """Run a statement in a transaction and return its rows."""
    values = {**shelf.binds, **binds}
    used = {name: value for name, value in values.items() if f":{name}" in statement}
    with shelf.services.database.begin() as session:
        result = session.execute(text(statement), used)
        return [tuple(row) for row in result] if result.returns_rows else []


def test_jobs_that_do_not_fit_into_slots_are_joined() -> None:
    jobs = b"".join(uuid4().bytes + bytes(4) for _ in range(1_001))
    assert JobSlots.of(jobs, b"").bits
    assert not JobSlots.of(jobs, jobs[:20]).bits
    assert not JobSlots.of(jobs * 66, b"").bits


def test_chunks_of_a_running_job_take_no_place_in_a_leg(
    shelf: Shelf, make_services: Callable[..., Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may share its slot with a job that counts."""
    monkeypatch.setattr(job_slots, "_SLOTS_A_JOB", 1)
    process = make_services(search={"plan": NEVER})
    admin: User = replace(shelf.ann, is_admin=True)
    request = SearchRequest("violin copper", mode=SearchMode.KEYWORD)
    for _ in range(40):
        execute(shelf, NEW_JOB, document=shelf.first)
    for asker in (shelf.ann, admin):
        for _ in range(3):
            fresh = replace(process, search_cache=SearchCache())
            outcome = engine.search(fresh, asker, request)
            assert {hit.document_id for hit in outcome.hits} == {shelf.first, shelf.second}
            assert outcome.text_count == 2


@pytest.mark.parametrize("mode", SearchMode)
def test_search_by_slots_follows_documents_that_change_meanwhile(
    shelf: Shelf, make_services: Callable[..., Services], mode: SearchMode
) -> None:
    """A document that is switched off is not shown, and replaced text is found as it is now."""
    process = make_services(search={"plan": NEVER})
    sets = process.enabled_sets

    def find(act: Callable[[], object] = lambda: None) -> set[UUID]:
        with after_once("read_context", act):
            return shelf.find(replace(process, search_cache=SearchCache()), mode=mode)

    def keep_slots() -> None:
        sets._cache.clear()
        assert find() == find() == {shelf.first, shelf.second}
        assert all(found.slots for _, found in sets._cache.values())

    for change in AT_ONCE.values():
        keep_slots()
        assert find(lambda: shelf.commit(change)) == {shelf.second}  # noqa: B023
        undo(shelf)
    if mode is SearchMode.KEYWORD:
        keep_slots()
        ((job,),) = execute(shelf, NEW_JOB, document=shelf.first)
        publish = partial(execute, shelf, PUBLISH, document=shelf.first, job=job)
        assert find(publish) == {shelf.first, shelf.second}
