"""Chunks in the API: under the job that created them, with their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

MAX_CHUNKS_ADDED = 100
MAX_CONTENT_CHARACTERS = 20_000
MAX_METADATA_CHARACTERS = 16_000
# Leaves room for chunks that are numbered after the last one.
MAX_CHUNK_INDEX = 1_000_000_000


class ChunkOrder(StrEnum):
    CHUNK_INDEX = "chunk_index"
    CREATED_AT = "created_at"


@dataclass(frozen=True, slots=True)
class JobChunk:
    """A chunk with its job. `has_embedding` is about the active model."""

    id: UUID
    job_id: UUID
    document_id: UUID
    title: str
    chunk_index: int
    content: str
    metadata: dict[str, Any]
    page: int | None
    heading: str | None
    context: str | None
    created_at: datetime
    has_embedding: bool


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to add; without an index it comes after the last one."""

    content: str
    chunk_index: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
