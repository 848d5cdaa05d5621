"""Sources for tests, which state only what matters."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from portal.domain.answering import Source
from portal.domain.search import SearchMode


def source(number: int, text: str = "Some text.", **changes: Any) -> Source:
    values: dict[str, Any] = {
        "number": number,
        "document_id": UUID(int=number),
        "revision_id": UUID(int=number),
        "chunk_id": UUID(int=number),
        "title": f"Document {number}",
        "media_type": "text/plain",
        "text": text,
        "char_start": 0,
        "char_end": len(text),
        "language": "",
        "page": None,
        "heading": None,
        "score": 0.5,
        "vector_score": 0.8,
        "text_score": 0.5,
        "confidence": 0.9,
        "low_confidence": False,
        "found_by": SearchMode.HYBRID,
    }
    return Source(**(values | changes))
