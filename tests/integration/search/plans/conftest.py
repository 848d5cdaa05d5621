"""A synthetic corpus that every plan is tried on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from portal.container import build_services
from portal.database import bm25
from tests.conftest import _execute, _with_name, make_settings
from tests.integration.search.plans.synthetic_corpus import SyntheticCorpus, load
from tests.integration.search.plans.word_corpus import SIZE, synthetic_terms


@pytest.fixture(scope="module")
def corpus(
    server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SyntheticCorpus]:
    name = f"test_{uuid4().hex}"
    _execute(server_url, f"CREATE DATABASE {name} TEMPLATE {template}")
    services = build_services(
        make_settings(Path(tmp_path_factory.mktemp("data")), _with_name(server_url, name))
    )
    loaded = load(services, synthetic_terms(SIZE))
    with services.database.engine.begin() as connection:
        bm25.ensure_index(connection)
    yield loaded
    services.database.dispose()
    _execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")
