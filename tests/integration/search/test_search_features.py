"""Search beyond ranking: operators, duplicates, neighbours, preferences and explanations."""

from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import text

from portal.domain.search import (
    Fusion,
    Normalisation,
    SearchMode,
    SearchOutcome,
    SearchRequest,
    Weights,
)
from portal.domain.search.degraded import PHRASE_NOT_FOUND
from portal.services.models import catalog
from portal.services.search import engine
from portal.store.embedding_models.registry import find_active
from portal.store.search.legs.statements import KeywordPlan, VectorPlan
from portal.text.terms.analyser import index_terms
from tests.conftest import Portal
from tests.factories.cases import for_each

SECTION = "Expenses above 200 euros need the approval of the head of department before the trip. "


def search(portal: Portal, query: str, **wishes) -> SearchOutcome:
    return engine.search(portal.services, portal.admin, SearchRequest(query=query, **wishes))


def titles(outcome: SearchOutcome) -> list[str]:
    return [hit.title for hit in outcome.hits]


@pytest.fixture
def handbook(portal: Portal) -> Portal:
    portal.add("Annual leave is fifteen days. Leave must be asked for in time.", name="leave.txt")
    portal.add("Sick leave needs a note from a doctor. 病假需要医生证明。", name="sick.md")
    portal.add("機器學習是人工智慧的一個分支，用資料訓練模型。", name="机器学习.txt")
    return portal


@for_each(
    ("query", "expected"),
    [
        ('leave "fifteen days"', {"leave"}),
        ("leave -doctor title:leave", {"leave"}),
        ("leave -doctor -模型", {"leave"}),
        ("leave type:md", {"sick"}),
        ("leave title:sick", {"sick"}),
        ("模型 title:機器", {"机器学习"}),
        ("「机器学习」", {"机器学习"}),
    ],
)
@for_each("mode", list(SearchMode))
def test_operators_narrow_every_leg(
    handbook: Portal, query: str, expected: set[str], mode: SearchMode
) -> None:
    assert set(titles(search(handbook, query, mode=mode))) == expected


def test_phrase_found_nowhere_is_ignored_and_reported(handbook: Portal) -> None:
    outcome = search(handbook, 'leave "sixteen days"')
    assert "leave" in titles(outcome)
    assert PHRASE_NOT_FOUND in outcome.degraded


def test_query_of_exclusions_only_finds_nothing(handbook: Portal) -> None:
    assert not search(handbook, "-doctor").hits


def test_copies_are_shown_once(portal: Portal) -> None:
    portal.add(SECTION * 3, name="travel.txt")
    portal.add("  " + SECTION.upper() * 3, name="travel (copy).txt")
    portal.add(SECTION.replace("200", "300") * 3, name="travel old.txt")
    outcome = search(portal, "Who approves expenses?")
    assert sorted(hit.duplicate_count for hit in outcome.hits) == [0, 1]
    assert len(outcome.hits) == 2


def test_short_chunks_are_shown_with_their_neighbours(portal: Portal) -> None:
    sentences = [f"Door {word} is kept shut at night. " for word in ("one", "two", "three")]
    document = portal.add("".join(sentences), name="doors.txt")
    _store_apart(portal, document.id, sentences)
    hit = search(portal, "door two", mode=SearchMode.KEYWORD).hits[0]
    assert hit.excerpt == "".join(sentences).strip()
    assert (hit.char_start, hit.char_end) == (len(sentences[0]), len("".join(sentences[:2])))


def _store_apart(portal: Portal, document_id: UUID, contents: list[str]) -> None:
    """Store the document's text as chunks of the test's own, as programs do."""
    rows, start = [], 0
    for index, content in enumerate(contents):
        rows.append({"i": index, "c": content, "t": index_terms(content), "s": start})
        start += len(content)
    with portal.services.database.begin() as session:
        session.execute(
            text("UPDATE document_chunks SET chunk_index = 99 WHERE document_id = :d"),
            {"d": document_id},
        )
        session.execute(
            text(
                "INSERT INTO document_chunks (job_id, document_id, collection_id, chunk_index,"
                " content, terms, char_start, char_end)"
                " SELECT job_id, document_id, collection_id, :i, :c, :t, :s, :s + length(:c)"
                " FROM document_chunks WHERE document_id = :d AND chunk_index = 99"
            ),
            [row | {"d": document_id} for row in rows],
        )
        session.execute(
            text("DELETE FROM document_chunks WHERE document_id = :d AND chunk_index = 99"),
            {"d": document_id},
        )
        session.execute(
            text("UPDATE documents SET current_job_id = current_job_id WHERE id = :d"),
            {"d": document_id},
        )


@for_each("normalisation", list(Normalisation))
@for_each("fusion", list(Fusion))
def test_every_fusion_finds_the_answer_first(
    handbook: Portal, fusion: Fusion, normalisation: Normalisation
) -> None:
    outcome = search(
        handbook, "fifteen days annual leave", fusion=fusion, normalisation=normalisation
    )
    assert outcome.hits[0].title == "leave"
    assert all(0 <= hit.score <= 1 for hit in outcome.hits)


def test_explanation_has_plans_counts_and_times(handbook: Portal) -> None:
    explanation = search(handbook, "annual leave", explain=True).explanation
    assert explanation is not None
    assert explanation["plan"] == {"vector": VectorPlan.EXACT, "keyword": KeywordPlan.INDEX}
    assert explanation["counts"]["enabled_documents"] == 3
    assert explanation["counts"]["vector_leg"] == 3
    assert explanation["counts"]["keyword_leg"] >= 1
    for step in ("configuration", "embedding", "selection", "statement", "results"):
        assert explanation["milliseconds"][step] > 0
    assert explanation["embedding_model"] == handbook.services.embedder.name


def test_matched_words_and_ranks_tell_why(handbook: Portal) -> None:
    hit = search(handbook, "leave of fifteen days", explain=True).hits[0]
    assert {"leave", "fifteen", "days"} <= {word.lower() for word in hit.matched_words}
    assert hit.text_rank == 1
    assert hit.vector_rank is not None


def test_model_dropped_during_a_search_is_replaced_by_the_active_one(
    handbook: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the query is embedded, the model's partition is dropped and another model serves."""
    real, asked = catalog.loaded, []

    def switch(services, registered, **urgency):
        asked.append(registered.name)
        if len(asked) == 1:
            with services.database.begin() as session:
                # A switch and a drop at once.
                session.execute(
                    text(
                        "INSERT INTO embedding_models (name, provider, dimensions, status)"
                        " SELECT 'next', provider, dimensions, 'active' FROM embedding_models"
                    )
                )
                session.execute(
                    text(
                        "UPDATE collections SET embedding_model_id ="
                        " (SELECT id FROM embedding_models WHERE name = 'next')"
                    )
                )
                session.execute(text(f"ALTER TABLE {registered.partition} RENAME TO aside"))
                new = session.scalar(text("SELECT max(id) FROM embedding_models"))
                session.execute(text(f"CREATE TABLE chunk_embeddings_m{new} AS TABLE aside"))
        return real(services, before if registered.name == "next" else registered, **urgency)

    with handbook.services.database.begin() as session:
        before = find_active(session)
    monkeypatch.setattr(catalog, "loaded", switch)
    outcome = search(handbook, "annual leave")
    assert asked[-1] == "next"
    assert outcome.hits[0].title == "leave"
    assert not outcome.degraded


def test_copies_do_not_crowd_out_what_differs(portal: Portal) -> None:
    for number in range(30):
        portal.add(SECTION * 2 + "\n" * number, name=f"copy{number}.txt")
    portal.add("Expenses for trains are paid back within a week of the trip.", name="trains.txt")
    portal.add("The approval of hotels is with the secretary.", name="hotels.txt")
    for mode in SearchMode:
        hits = search(portal, "Who gives approval of expenses?", mode=mode, top_n=3).hits
        assert {"trains", "hotels"} < {hit.title for hit in hits}
        assert max(hit.duplicate_count for hit in hits) == 29


@pytest.mark.parametrize("weights", [(5e-324, 5e-324), (1e308, 1e308), (0, 5e-324)])
def test_weights_count_by_their_ratio_however_small_or_large(
    handbook: Portal, weights: tuple[float, float]
) -> None:
    outcome = search(handbook, "annual leave", weights=Weights(*weights))
    assert not outcome.degraded
    assert outcome.hits[0].title == "leave"
