"""An embedder on an endpoint that follows a script."""

from __future__ import annotations

from portal.embeddings.providers.openai import OpenAIEmbedder

# What a busy machine may add. All faults here would cost 2.5 seconds or more.
SLACK_S = 1.5


def embedder(endpoint, **changes):
    chosen = {"model": "some-model", "dimensions": 4, "api_base": endpoint.url, "timeout_s": 5.0}
    return OpenAIEmbedder(**(chosen | {"sleep": lambda _s: None} | changes))
