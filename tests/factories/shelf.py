"""A collection with Chroma's interface, for tests that need no Chroma."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.integrations.chroma_import.reading import ChromaRecord


@dataclass
class Shelf:
    """Records in the order of insertion; the vectors of the ids in `torn` cannot be read."""

    records: list[ChromaRecord]
    name: str = "shelf"
    metadata: dict[str, Any] | None = None
    configuration_json: dict[str, Any] = field(default_factory=dict)
    torn: set[str] = field(default_factory=set)
    asked: int = 0

    def count(self) -> int:
        return len(self.records)

    def get(
        self,
        ids: Iterable[str] | None = None,
        where: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        where_document: Any = None,
        include: Any = (),
    ) -> Mapping[str, Any]:
        self.asked += 1
        wanted = None if ids is None else set(ids)
        # Like Chroma, return records in the order of insertion, not in the requested order.
        chosen = [record for record in self.records if wanted is None or record.id in wanted]
        chosen = chosen[offset or 0 :][:limit]
        if "embeddings" in include and self.torn.intersection(one.id for one in chosen):
            raise RuntimeError("Error finding id")
        columns = {"documents": "document", "metadatas": "metadata", "uris": "uri"}
        columns["embeddings"] = "vector"
        found: dict[str, Any] = {"ids": [one.id for one in chosen]}
        for name, attribute in columns.items():
            values = [getattr(one, attribute) for one in chosen]
            found[name] = values if name in include else None
        return found
