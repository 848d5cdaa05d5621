"""A new analyser is applied to stored documents gradually, while the portal serves."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from portal.services.documents import library
from portal.services.documents.ingestion import reanalysis
from portal.services.documents.ingestion.chunk_storage import chunk_terms
from portal.services.operations import maintenance
from portal.text.terms.analyser import analyser_version
from tests.conftest import Portal


@pytest.fixture
def aged(portal: Portal) -> Portal:
    """Return seven documents with terms of an analyser without Chinese and stemming."""
    for number in range(7):
        portal.add(f"員工每年有十五天帶薪年假。Running number{number}.", name=f"年假{number}.txt")
    portal.execute("UPDATE document_chunks SET terms = lower(content), analyser_version = 1")
    portal.execute("DELETE FROM vocabulary")
    return portal


def ask(portal: Portal, statement: str, **binds: object) -> list[object]:
    return portal.scalars(statement, **binds)


def found(portal: Portal, term: str) -> int:
    query = "SELECT c.id FROM document_chunks c WHERE c.terms_vector @@ to_tsquery('simple', :term)"
    return len(ask(portal, query, term=term))


def outdated(portal: Portal) -> int:
    query = "SELECT id FROM document_chunks WHERE analyser_version < :version"
    return len(ask(portal, query, version=analyser_version()))


def test_old_chunks_are_found_again_batch_by_batch(aged: Portal) -> None:
    assert (found(aged, "员工"), found(aged, "run")) == (0, 0)
    progress = list(reanalysis.reanalyse(aged.services, batch_size=3))
    assert [(each.done, each.left) for each in progress] == [(3, 4), (6, 1), (7, 0)]
    assert (found(aged, "员工"), found(aged, "run")) == (7, 7)
    assert {"员工", "running"} <= set(ask(aged, "SELECT word FROM vocabulary"))
    assert list(reanalysis.reanalyse(aged.services)) == []


def test_interrupted_run_continues_where_it_stopped(aged: Portal) -> None:
    next(reanalysis.reanalyse(aged.services, batch_size=2))
    assert outdated(aged) == 5
    assert found(aged, "员工") == 2
    reanalysis.reanalyse_for(aged.services, seconds=0, batch_size=2)
    assert outdated(aged) == 3
    reanalysis.reanalyse_for(aged.services, seconds=60, batch_size=1, should_stop=lambda: True)
    assert outdated(aged) == 2
    maintenance.run(aged.services, should_stop=lambda: True)
    assert outdated(aged) == 2
    maintenance.run(aged.services)
    assert outdated(aged) == 0
    terms = ask(aged, "SELECT terms FROM document_chunks ORDER BY terms LIMIT 1")
    assert terms == [chunk_terms("年假0", None, None, "員工每年有十五天帶薪年假。Running number0.")]


def test_only_one_process_reanalyses_at_a_time(aged: Portal) -> None:
    with aged.services.database.begin() as session:
        session.execute(text("SELECT pg_advisory_xact_lock(7316003)"))
        assert list(reanalysis.reanalyse(aged.services)) == []
    assert list(reanalysis.reanalyse(aged.services))[-1].left == 0


def test_new_title_is_found_after_reanalysis(portal: Portal) -> None:
    document = portal.add("Nothing of note.", name="old.txt")
    library.change_document(portal.services, portal.admin, document.id, title="差旅報銷")
    reanalysis.reanalyse_for(portal.services, seconds=5)
    assert found(portal, "报销") == 1
    assert found(portal, "old") == 0
