from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text

from portal.database.embedded import EmbeddedPostgres
from portal.database.extensions import Extension, ensure_extensions, require_pgvector, version_tuple
from portal.database.health import ServerReport, report
from portal.errors import ServerSetup


def look(server: EmbeddedPostgres, *before: str) -> ServerReport:
    engine = create_engine(server.url())
    try:
        with engine.connect() as connection:
            for statement in before:
                connection.execute(text(statement))
            return report(connection)
    finally:
        engine.dispose()


@pytest.fixture(scope="module", autouse=True)
def _extensions(server: EmbeddedPostgres) -> None:
    engine = create_engine(server.url())
    with engine.connect() as connection:
        ensure_extensions(connection)
    engine.dispose()


def test_the_embedded_server_is_fit(server: EmbeddedPostgres) -> None:
    found = look(server)
    assert found.is_fit
    # The test server is small and not durable; nothing else is reported.
    assert {lack.what.split()[0] for lack in found.lacks} <= {"fsync", "shared_buffers"}
    assert found.server_version.startswith("18.")
    assert found.extensions["vector"] == "0.8.6"


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("SET LOCAL jit = on", "jit is on"),
        ("SET LOCAL random_page_cost = 4", "random_page_cost is 4"),
        ("SET LOCAL maintenance_work_mem = '16MB'", "maintenance_work_mem is 16 MB"),
        ("DROP EXTENSION pg_trgm", "no pg_trgm"),
        ("DROP EXTENSION unaccent", "no unaccent"),
        ("DROP EXTENSION IF EXISTS pg_textsearch CASCADE", "no pg_textsearch"),
    ],
)
def test_each_lack_has_cost_and_remedy(server: EmbeddedPostgres, statement: str, what: str) -> None:
    found = look(server, statement)
    lack = next(lack for lack in found.lacks if lack.what == what)
    assert lack.cost
    assert lack.remedy
    assert found.is_fit


def test_a_server_without_pgvector_is_not_fit(server: EmbeddedPostgres) -> None:
    found = look(server, "DROP EXTENSION vector")
    assert not found.is_fit
    assert "pgvector" in next(lack.what for lack in found.lacks if lack.is_fatal)


def test_an_old_pgvector_is_refused_by_its_cve() -> None:
    with pytest.raises(ServerSetup, match="CVE-2026-3172"):
        require_pgvector(Extension("vector", "0.8.4", "0.8.6"))
    require_pgvector(Extension("vector", "0.8.5", "0.8.5"))
    require_pgvector(Extension("vector", "0.10.0", "0.10.0"))


@pytest.mark.parametrize(
    ("version", "parts"), [("0.8.5", (0, 8, 5)), ("1.4.0-dev", (1, 4, 0)), ("2", (2,))]
)
def test_versions_compare_as_numbers(version: str, parts: tuple[int, ...]) -> None:
    assert version_tuple(version) == parts
