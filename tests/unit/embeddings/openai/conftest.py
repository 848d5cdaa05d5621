"""A fake endpoint, and embedders that use it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.embeddings.providers.openai import OpenAIEmbedder
from tests.factories.servers.endpoint import FakeEndpoint, fake_endpoint


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with fake_endpoint() as running:
        yield running


# The delay that a busy machine may add. All faults here would cost 2.5 seconds or more.
SLACK_S = 1.5


def embedder(endpoint, **changes):
    chosen = {"model": "some-model", "dimensions": 4, "api_base": endpoint.url, "timeout_s": 5.0}
    return OpenAIEmbedder(**(chosen | {"sleep": lambda _s: None} | changes))
