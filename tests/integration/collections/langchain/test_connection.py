"""The choice of a store's database."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from portal.database.embedded import EmbeddedPostgres
from portal.errors import ServerSetup
from portal.integrations import connection
from portal.integrations.chunk_stores import open_postgresql
from portal.integrations.langchain import PostgresVectorStore
from portal.services import Services
from tests.conftest import make_settings
from tests.integration.collections.langchain.conftest import WordEmbeddings


def test_url_settings_and_database_open_the_same_store(
    services: Services, database_url: str
) -> None:
    ways = (database_url, services.settings, services.database)
    for number, way in enumerate(ways, 1):
        store = PostgresVectorStore("ways", WordEmbeddings(), connection=way)
        store.add_texts([f"from {number}"])
        assert store.count() == number
    plain = database_url.replace("postgresql+psycopg", "postgresql")
    assert connection.connect(plain)[0] is connection.connect(services.settings)[0]


def test_stores_of_a_process_share_the_model(services: Services) -> None:
    stores = [PostgresVectorStore(name, connection=services.settings) for name in ("one", "two")]
    chunks = open_postgresql("three", connection=services.settings)
    first, second = (store.embeddings._embedder() for store in stores)
    assert first is second is chunks._embedder


def test_settings_of_this_machine_are_the_default(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    PostgresVectorStore("default", WordEmbeddings()).add_texts(["x"])
    assert PostgresVectorStore("default", connection=database_url).count() == 1


def test_a_database_without_tables_is_reported(database_url: str) -> None:
    url = make_url(database_url).set(database="postgres")
    with pytest.raises(ServerSetup, match="portal migrate"):
        PostgresVectorStore(connection=url.render_as_string(hide_password=False))


@pytest.mark.slow
def test_without_a_url_the_embedded_server_starts(run_dir: Path) -> None:
    settings = make_settings(run_dir / "langchain-embedded", "").model_copy(
        update={"database_url": None}
    )
    store = PostgresVectorStore("own-server", WordEmbeddings(), connection=settings)
    try:
        store.add_texts(["leave"], ids=["1"])
        assert store.hybrid_search("leave")[0][0].id == "1"
        again = PostgresVectorStore("own-server", WordEmbeddings(), connection=settings)
        assert again.count() == 1
        engine = create_engine(connection.connect(settings)[0].url)
        with engine.connect() as opened:
            assert opened.scalar(text("SELECT count(*) FROM collections")) == 2
        engine.dispose()
    finally:
        connection.disconnect()
    assert not EmbeddedPostgres(settings.data_dir).is_running()
