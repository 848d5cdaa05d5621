"""Vector indexes that bring languages closer together change the graph, not the order of hits."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import text

from portal.domain.search import SearchRequest
from portal.services.models import builds, catalog, switching
from portal.services.operations import maintenance
from portal.services.search import engine
from portal.store.binary_parameters import VectorParameter
from portal.store.embedding_models import builds as build_store
from portal.store.embedding_models import language_axis
from portal.store.session import Session
from tests.conftest import Portal
from tests.factories.models import reindex, serving

DIMENSIONS = 48


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def functions(session: Session) -> list[str]:
    query = "SELECT proname FROM pg_proc WHERE proname ~ '^(shortened|stretched)_m' ORDER BY 1"
    return list(session.scalars(text(query)))


def forget_axis(portal: Portal) -> None:
    """Leave the registry and the index as an older version did."""
    model = serving(portal)
    with portal.services.database.begin() as session:
        session.execute(text(f"DROP INDEX ix_{model.partition}_hnsw"))
        language_axis.drop(session, model.id)
        session.execute(text("UPDATE embedding_models SET index_axis = NULL"))
        session.execute(
            text(
                f"CREATE INDEX ix_{model.partition}_hnsw ON {model.partition} USING hnsw"
                f" ((CAST(embedding AS halfvec({model.dimensions}))) halfvec_cosine_ops)"
                " WITH (m = 16, ef_construction = 64)"
            )
        )


def test_results_are_always_ordered_by_cosine(portal: Portal) -> None:
    rng = np.random.default_rng(7)
    axis, question, *chunks = unit(rng.normal(size=(42, DIMENSIONS)))
    question, chunks = unit(question + 3 * axis), unit(np.array(chunks) - 2 * axis)
    with portal.services.database.begin() as session:
        name = language_axis.ensure(session, 9, axis)
        query = (
            f"SELECT -({language_axis.shortened(name, 'CAST(:chunk AS vector)')}"
            f" <#> {language_axis.stretched(name, 'CAST(:question AS vector)')})"
        )
        products = [
            session.scalar(
                text(query), {"chunk": str(each.tolist()), "question": str(question.tolist())}
            )
            for each in chunks
        ]
        lengths = session.scalar(
            text(f"SELECT vector_norm({language_axis.shortened(name, 'CAST(:axis AS vector)')})"),
            {"axis": str(axis.tolist())},
        )
    assert products == pytest.approx(chunks @ question, abs=1e-5)
    assert lengths == pytest.approx(language_axis.SHARE_LEFT, abs=1e-5)


def test_nearly_equal_axis_is_taken_as_the_same(portal: Portal) -> None:
    rng = np.random.default_rng(8)
    axis, other = unit(rng.normal(size=(2, DIMENSIONS)))
    with portal.services.database.begin() as session:
        name = language_axis.ensure(session, 9, axis)
        assert language_axis.ensure(session, 9, axis, standing=name) == name
        assert language_axis.ensure(session, 9, unit(axis + 0.05 * other), standing=name) == name
        assert language_axis.ensure(session, 9, -axis, standing=name) == name
        assert language_axis.ensure(session, 9, other, standing=name) != name


def test_new_portal_has_an_index_with_a_language_axis(portal: Portal) -> None:
    model = serving(portal)
    assert model.shape.axis is not None
    assert model.shape.axis.startswith(f"m{model.id}_")
    with portal.services.database.begin() as session:
        assert len(functions(session)) == 2


def test_index_of_an_older_version_serves_and_is_rebuilt(portal: Portal) -> None:
    portal.add("Herons stand in the reeds of the lake.", name="heron.txt")
    portal.add("苍鹭站在湖边的芦苇里。", name="cang.txt")
    forget_axis(portal)
    searched = engine.search(portal.services, portal.admin, SearchRequest("heron lake"))
    assert searched.hits[0].title == "heron"
    assert searched.degraded == ()
    maintenance.run(portal.services)
    model = serving(portal)
    with portal.services.database.begin() as session:
        assert build_store.is_queued(session, model)
    reindex(portal.services)
    assert serving(portal).shape.axis is not None
    searched = engine.search(portal.services, portal.admin, SearchRequest("heron lake"))
    assert searched.hits[0].title == "heron"
    assert searched.degraded == ()
    portal.execute("DELETE FROM procrastinate_jobs WHERE task_name = 'build_model'")
    maintenance.run(portal.services)
    with portal.services.database.begin() as session:
        assert not build_store.is_queued(session, model)


def test_functions_are_dropped_with_their_model(portal: Portal) -> None:
    portal.add("Herons stand in the reeds.", name="heron.txt")
    first = serving(portal)
    name = catalog.register(portal.services, "hashing:other@96").name
    list(builds.build(portal.services, name))
    switching.switch(portal.services, name)
    assert serving(portal).shape.axis is not None
    switching.drop(portal.services, first.name)
    with portal.services.database.begin() as session:
        left = functions(session)
    assert len(left) == 2
    assert all(f"_m{serving(portal).id}_" in one for one in left)


def test_chunks_of_both_languages_are_found_through_the_index(portal: Portal) -> None:
    """Vectors form two clusters, as with multilingual-e5, and queries lie between them. A graph
    over plain vectors has a recall of only .6 here."""
    model, axis = serving(portal), portal.services.calibration.language_axis
    assert axis is not None
    vectors, questions = two_languages(axis, chunks=4_000, questions=25)
    insert = text(
        f"INSERT INTO {model.partition} (model_id, chunk_id, document_id, job_id, embedding)"
        " SELECT :model, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(),"
        " CAST(v AS vector) FROM unnest(CAST(:vectors AS text[])) v"
    )
    nearest = text(
        f"SELECT {model.exact_distance('e', 'asked')} FROM {model.partition} e"
        f" ORDER BY {model.order_expression('e', 'asked')} LIMIT 10"
    )
    shares = []
    with portal.services.database.begin() as session:
        # The chunks belong to no document, so foreign keys must not be checked.
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(insert, {"model": model.id, "vectors": [str(v.tolist()) for v in vectors]})
        session.execute(text("SET LOCAL enable_seqscan = off"))
        session.execute(text("SET LOCAL hnsw.ef_search = 60"))
        for question in questions:
            found = session.scalars(nearest, {"asked": VectorParameter(question)}).all()
            exact = np.sort(1 - vectors @ question)[: len(found)]
            shares.append(np.mean(np.array(found) <= exact[-1] + 1e-6))
    assert np.mean(shares) >= 0.95


def two_languages(
    axis: np.ndarray, *, chunks: int, questions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (chunks, dim) that share most of their direction, half on either side of
    the axis, and (queries, dim) of corrected queries, on neither side."""
    rng = np.random.default_rng(3)
    shared, *directions = rng.normal(size=(29, len(axis)))
    shared, directions = (
        each - np.outer(each @ axis, axis) for each in map(np.atleast_2d, (shared, directions))
    )
    places = rng.normal(size=(chunks, 28)) * np.exp(-np.arange(28) / 10)
    own = unit(places @ directions)
    sides = np.where(np.arange(chunks) % 2, 0.3, -0.3)
    vectors = unit(0.85 * unit(shared) + 0.45 * own + np.outer(sides, axis))
    asked = rng.integers(0, chunks, questions)
    other = unit(rng.normal(size=(questions, 28)) * np.exp(-np.arange(28) / 10) @ directions)
    corrected = unit(0.4 * unit(shared) + 0.3 * own[asked] + 0.3 * other)
    return vectors.astype(np.float32), corrected.astype(np.float32)
