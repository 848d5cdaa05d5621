from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.database.embedded import EmbeddedPostgres

# Small and fast, because these servers run for seconds without valuable data.
QUICK = {"shared_buffers": "32MB", "fsync": "off", "autovacuum": "off"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    embedded = EmbeddedPostgres(tmp_path_factory.mktemp("data"), extra_settings=QUICK)
    embedded.start()
    yield embedded
    embedded.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """Return a server, not yet started, that a test may kill or break."""
    embedded = EmbeddedPostgres(tmp_path / "data", extra_settings=QUICK)
    yield embedded
    embedded.stop()
