"""Every kind of vector index: built from settings, used by searches, rebuilt online."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import structlog
from sqlalchemy import text
from structlog.testing import capture_logs

from portal import create_app
from portal.domain.search import SearchMode, SearchRequest
from portal.services import Services
from portal.services.models import builds, catalog, switching
from portal.services.operations import setup, starting
from portal.services.search import engine
from portal.store.embedding_models import builds as model_builds
from portal.store.embedding_models import vector_index
from portal.store.embedding_models.registry import RegisteredModel
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.factories.models import reindex, serving

WORDS = ("coral", "tea", "bread", "lamp", "train", "heron", "violin", "granite", "cedar", "kiln")


def fill(portal: Portal) -> None:
    for number, word in enumerate(WORDS):
        portal.add(f"Note {number} is about {word} and {WORDS[number - 1]}.", name=f"{word}.txt")


def indexes(portal: Portal) -> list[vector_index.StandingIndex]:
    with portal.services.database.begin() as session:
        return vector_index.standing_indexes(session, serving(portal).partition)


def plan(portal: Portal, model: RegisteredModel) -> str:
    """Return the plan of a vector search, as for a large table."""
    zeros = "[" + ",".join(["1"] * model.dimensions) + "]"
    with portal.services.database.begin() as session:
        session.execute(text("SET LOCAL enable_seqscan = off"))
        rows = session.execute(
            text(
                f"EXPLAIN SELECT e.chunk_id FROM {model.partition} e"
                f" ORDER BY {model.order_expression('e', 'vector')} LIMIT 5"
            ),
            {"vector": zeros},
        )
        return "\n".join(rows.scalars())


@pytest.mark.parametrize("method", ["hnsw", "ivfflat"])
@pytest.mark.parametrize("vector_type", ["halfvec", "vector", "bit"])
def test_index_is_built_used_and_right(
    portal: Portal, make_services: Callable[..., Services], method: str, vector_type: str
) -> None:
    portal = Portal(
        make_services(search={"index": method, "vector_type": vector_type}), portal.admin
    )
    fill(portal)
    # The template database has an index of the default kind; replace it.
    reindex(portal.services)
    (index,) = indexes(portal)
    assert (index.method, index.is_valid) == (method, True)
    model = serving(portal)
    assert (model.shape.method, model.shape.vector_type) == (method, vector_type)
    assert model.shape.axis is not None
    assert f"Index Scan using {index.name}" in plan(portal, model)
    for word in WORDS:
        request = SearchRequest(word, mode=SearchMode.VECTOR)
        titles = [h.title for h in engine.search(portal.services, portal.admin, request).hits]
        assert word in titles[:2]


@for_each(
    ("dimensions", "wanted", "got"),
    [
        (2000, "vector", "vector"),
        (2001, "vector", "halfvec"),
        (4000, "halfvec", "halfvec"),
        (4001, "halfvec", "bit"),
        (4001, "vector", "bit"),
        (384, "bit", "bit"),
    ],
)
def test_long_vectors_get_the_nearest_type_that_can_be_indexed(
    services: Services, dimensions: int, wanted: str, got: str
) -> None:
    search = services.settings.search.model_copy(update={"vector_type": wanted})
    assert vector_index.shape_for(search, dimensions).vector_type == got


@pytest.mark.parametrize("dimensions", [2500, 4500])
def test_models_with_long_vectors_serve(portal: Portal, dimensions: int) -> None:
    fill(portal)
    name = catalog.register(portal.services, f"hashing:long@{dimensions}").name
    list(builds.build(portal.services, name))
    switching.switch(portal.services, name)
    (index,) = indexes(portal)
    assert f"Index Scan using {index.name}" in plan(portal, serving(portal))
    for mode in (SearchMode.VECTOR, SearchMode.HYBRID):
        found = engine.search(portal.services, portal.admin, SearchRequest("heron", mode=mode))
        assert "heron" in [hit.title for hit in found.hits][:2]
        assert found.degraded == ()


def test_changed_parameters_rebuild_the_index_and_unchanged_ones_do_not(
    portal: Portal, make_services: Callable[..., Services]
) -> None:
    fill(portal)

    def index_id() -> object:
        (index,) = indexes(portal)
        return portal.scalar("SELECT to_regclass(:name)::oid", name=index.name)

    before = index_id()
    reindex(portal.services)
    assert index_id() == before
    changed = make_services(search={"hnsw": {"m": 24, "ef_construction": 20}})
    reindex(changed)
    assert index_id() != before
    (index,) = indexes(portal)
    assert index.options == {"m": 24, "ef_construction": 48}  # pgvector takes no less than 2 m.


CHANGES: dict[str, dict[str, object]] = {
    "method": {"index": "ivfflat"},
    "vector type": {"vector_type": "bit"},
    "hnsw parameters": {"hnsw": {"m": 24, "ef_construction": 50}},
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_setting_is_noticed_and_the_worker_swaps_the_index(
    portal: Portal,
    make_services: Callable[..., Services],
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    fill(portal)
    changed = Portal(make_services(search=CHANGES[change]), portal.admin)
    (before,) = indexes(portal)
    monkeypatch.setattr(starting, "log", structlog.get_logger("fresh"))
    with capture_logs() as log:
        client = create_app(changed.services).test_client()
    (warning,) = [one for one in log if one["event"] == "vector index differs from settings"]
    assert warning["has"] == "hnsw halfvec m=16 ef_construction=64"
    assert "portal reindex" in warning["remedy"]
    body = client.get("/health/vector_store").json
    assert (body["status"], body["vector_index"]) == ("ok", "differs")
    assert body["vector_index_detail"].startswith("index differs from settings")
    report = setup.diagnose(changed.services)
    assert "lacking: vector index differs from settings" in list(setup.report_lines(report))

    builds.requeue_lost(changed.services)
    with changed.services.database.begin() as session:
        assert model_builds.is_queued(session, serving(changed))
    assert indexes(portal) == [before]
    name = serving(changed).name
    builds.build_slice(changed.services, name, should_stop=lambda: False)
    with changed.services.database.begin() as session:
        session.execute(text("DELETE FROM procrastinate_jobs"))

    (after,) = indexes(portal)
    assert after != before
    assert f"Index Scan using {after.name}" in plan(changed, serving(changed))
    body = client.get("/health/vector_store").json
    assert (body["vector_index"], body["vector_index_detail"]) == ("ok", None)
    builds.requeue_lost(changed.services)
    with changed.services.database.begin() as session:
        assert not model_builds.is_queued(session, serving(changed))


def test_index_of_lists_is_rebuilt_when_there_are_many_more_vectors(
    portal: Portal, make_services: Callable[..., Services]
) -> None:
    services = make_services(search={"index": "ivfflat"})
    fill(portal)
    reindex(services)
    model = serving(portal)

    def state(rows: int) -> str:
        with services.database.begin() as session:
            session.execute(
                text("UPDATE pg_class SET reltuples = :rows WHERE relname = :name"),
                {"rows": rows, "name": model.partition},
            )
            return model_builds.index_state(session, model, services.settings.search).state

    assert [state(rows) for rows in (-1, 10, 4000, 40_000)] == ["ok", "ok", "ok", "differs"]


def test_leftovers_of_a_killed_index_build_are_removed(
    portal: Portal, make_services: Callable[..., Services]
) -> None:
    fill(portal)
    model = serving(portal)
    with portal.services.database.begin() as session:
        name = f"{vector_index.index_name(model.partition, 'hnsw')}_new"
        search = portal.services.settings.search
        statement = vector_index.create_statement(
            model.partition, model.shape, model.dimensions, search, name=name
        )
        session.execute(text(statement))
        session.execute(
            text("UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(:name)"),
            {"name": name},
        )
    reindex(make_services(search={"hnsw": {"m": 24}}))
    (index,) = indexes(portal)
    assert index.options["m"] == 24


def test_scan_settings_never_cut_results_short(services: Services) -> None:
    search = services.settings.search
    assert vector_index.scan_settings(search, 200)["hnsw.ef_search"] == "200"
    assert vector_index.scan_settings(search, 1)["hnsw.ef_search"] == str(search.hnsw.ef_search)


def test_new_process_sends_binary_parameters(database_url: str) -> None:
    """The script imports modules in the order of Gunicorn's process, which loads search last."""
    script = (
        "import sys\n"
        "from sqlalchemy import text\n"
        "from portal.store.session import Database\n"
        "database = Database(sys.argv[1])\n"
        "import numpy as np\n"
        "from portal.store.statements import fetch\n"
        "from portal.store.binary_parameters import VectorParameter\n"
        "value = VectorParameter(np.array([3.0, 4.0], np.float32))\n"
        "with database.read() as session:\n"
        "    clause = text('SELECT vector_norm(CAST(:value AS vector))')\n"
        "    print(fetch(session, clause, {'value': value}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, database_url], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[(5.0,)]", done.stderr
