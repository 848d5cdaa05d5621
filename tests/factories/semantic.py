"""A backend with the chunks of a test, whose legs fail on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import structlog
from structlog.testing import LogCapture

from portal.domain.embedding import Vector
from portal.domain.search.semantic import SemanticHit
from portal.services.search.programs import semantic

QUERY_VECTOR = np.array([1.0, 0.0], dtype=np.float32)


def chunk(
    name: str, similarity: float | None = None, *, content_type: str = "text/plain"
) -> SemanticHit:
    return SemanticHit(
        id=name,
        document_id=f"document of {name}",
        content=f"content of {name}",
        metadata={"content_type": content_type},
        similarity=similarity,
    )


@dataclass
class FakeBackend:
    """The dense leg finds `near` in this order, the sparse one `worded`, each filtered by type and
    then cut to the limit. `calls` are (leg, limit, content type). An exception in place of a list
    is raised."""

    near: Sequence[SemanticHit] | Exception = ()
    worded: Sequence[SemanticHit] | Exception = ()
    cosines: Mapping[str, float] | Exception = field(default_factory=dict)
    no_sparse: str | None = None
    name: str = "fake"
    calls: list[tuple[str, int, str | None]] = field(default_factory=list)
    vectors: list[Vector] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def why_no_sparse(self) -> str | None:
        return self.no_sparse

    def dense(
        self, query_vector: Vector, limit: int, content_type: str | None
    ) -> Sequence[SemanticHit]:
        self.calls.append(("dense", limit, content_type))
        self.vectors.append(query_vector)
        return _of(self.near, limit, content_type)

    def sparse(
        self, query_text: str, limit: int, content_type: str | None
    ) -> Sequence[SemanticHit]:
        self.calls.append(("sparse", limit, content_type))
        self.texts.append(query_text)
        return _of(self.worded, limit, content_type)

    def similarities(self, query_vector: Vector, ids: Sequence[str]) -> Mapping[str, float]:
        if isinstance(self.cosines, Exception):
            raise self.cosines
        return {one: self.cosines[one] for one in ids if one in self.cosines}


def _of(
    found: Sequence[SemanticHit] | Exception, limit: int, content_type: str | None
) -> Sequence[SemanticHit]:
    if isinstance(found, Exception):
        raise found
    fitting = (one for one in found if content_type in (None, one.metadata["content_type"]))
    return list(fitting)[:limit]


@dataclass
class FakeEmbedder:
    """Returns `QUERY_VECTOR`, or raises `error`."""

    error: Exception | None = None
    asked: list[str] = field(default_factory=list)

    def embed_query(self, text: str) -> Vector:
        self.asked.append(text)
        if self.error is not None:
            raise self.error
        return QUERY_VECTOR


def captured_log(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return a list that collects the events which `semantic_search` logs from now on, including
    announcements that were already made."""
    capture = LogCapture()
    logger = structlog.wrap_logger(None, processors=[capture])
    monkeypatch.setattr(semantic, "log", logger)
    monkeypatch.setattr(semantic, "_announced", {})
    return capture.entries  # type: ignore[return-value]


def named(log: Sequence[Mapping[str, Any]], event: str) -> list[Mapping[str, Any]]:
    return [entry for entry in log if entry["event"] == f"semantic_search_{event}"]
