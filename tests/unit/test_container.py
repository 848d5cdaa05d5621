"""How settings configure the parts of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.container import build_services
from tests.conftest import make_settings


@pytest.mark.parametrize(("pooler", "prepares"), [("none", True), ("transaction", False)])
def test_no_statement_is_prepared_behind_a_transaction_pooler(
    tmp_path: Path, pooler: str, prepares: bool
) -> None:
    settings = make_settings(tmp_path, "postgresql://portal@db/portal", database_pooler=pooler)
    services = build_services(settings, statement_timeout_s=1)
    assert services.database._shares_connections is not prepares
