"""A model hub without models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.factories.servers.website import Reply, Website, serve_website

MISSING_MODEL = "absent/no-such-model"
MISSING_FILE = f"/{MISSING_MODEL}/main/config.json"


@contextmanager
def failing_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Website]:
    """Serve a hub that answers 503 to requests for the missing model, in place of the one that
    huggingface_hub downloads from."""
    constants = pytest.importorskip("huggingface_hub.constants")
    with serve_website() as hub:
        pattern = hub.url("/{repo_id}/{revision}/{filename}")
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", pattern)
        hub.replies[MISSING_FILE] = Reply(status=503)
        yield hub
