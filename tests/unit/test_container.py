"""What the settings make of the parts of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.container import build_services
from tests.conftest import make_settings


@pytest.mark.parametrize(("pooler", "prepares"), [("none", True), ("transaction", False)])
def test_behind_a_pooler_of_transactions_nothing_is_prepared(
    tmp_path: Path, pooler: str, prepares: bool
) -> None:
    settings = make_settings(tmp_path, "postgresql://portal@db/portal", database_pooler=pooler)
    services = build_services(settings, statement_timeout_s=1)
    assert services.database._shares_connections is not prepares
