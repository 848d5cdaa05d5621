"""Housekeeping between jobs."""

from __future__ import annotations

import pytest

from portal.services import Services
from portal.services.documents import notifications, trash
from portal.services.operations import maintenance


def test_failing_duty_does_not_stop_those_after_it(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    purged = []

    def fail(_services: Services) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(notifications, "delete_expired", fail)
    monkeypatch.setattr(trash, "purge_expired", lambda *_, **__: purged.append(True))
    maintenance.run(services)
    assert purged
