"""What the settings make of the parts of a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portal.container import build_services
from tests.conftest import make_settings


@pytest.mark.parametrize(("pooler", "prepares"), [("none", True), ("transaction", False)])
def test_behind_a_pooler_of_transactions_nothing_is_prepared(
    tmp_path: Path, pooler: str, prepares: bool
) -> None:
    settings = make_settings(tmp_path, "postgresql://portal@db/portal", database_pooler=pooler)
    services = build_services(settings, statement_timeout_s=1)
    engine = services.database.engine
    seen: dict[str, Any] = {}

    class Refused(Exception):
        pass

    def connect(*_: object, **arguments: object) -> None:
        seen.update(arguments)
        raise Refused

    engine.dialect.connect = connect  # type: ignore[method-assign]
    with pytest.raises(Refused):
        engine.raw_connection()
    assert (seen["prepare_threshold"] is not None) is prepares
