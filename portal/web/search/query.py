"""The address of the search page: query, filters and, for administrators, the fusion to try."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from werkzeug.datastructures import MultiDict

from portal.domain.documents import TYPES
from portal.domain.search import MAX_RESULTS, Facets, Fusion, SearchMode, SearchRequest, Weights
from portal.domain.search.metadata_filter import MetadataFilter, parse_filter
from portal.errors import InvalidInput

_NAMES = {
    "q": "text",
    "mode": "mode",
    "folder": "folder_id",
    "tag": "tag",
    "type": "type_name",
    "owner": "owner_id",
    "domain": "domain",
    "days": "days",
    "meta": "metadata",
    "n": "count",
}


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search as described by an address.

    `count`, `fusion` and `vector_percent` default to the configuration if they are None.
    """

    text: str
    mode: SearchMode = SearchMode.HYBRID
    folder_id: UUID | None = None
    tag: str = ""
    type_name: str = ""
    owner_id: UUID | None = None
    domain: str = ""
    days: int | None = None
    metadata: str = ""
    count: int | None = None
    is_fuzzy: bool = False
    fusion: Fusion | None = None
    vector_percent: int | None = None

    @classmethod
    def read(cls, arguments: MultiDict[str, str], *, may_tune: bool) -> SearchQuery:
        """Parse the arguments of an address. Unknown values are ignored, and so are the fusion and
        its weights unless the user `may_tune`."""
        type_name, days = arguments.get("type", ""), arguments.get("days", "")
        count, percent = arguments.get("n", ""), arguments.get("vector", "")
        return cls(
            text=arguments.get("q", "").strip(),
            mode=arguments.get("mode", SearchMode.HYBRID, type=SearchMode),
            folder_id=arguments.get("folder", type=UUID),
            tag=arguments.get("tag", "").strip(),
            type_name=type_name if type_name in TYPES else "",
            owner_id=arguments.get("owner", type=UUID),
            days=max(int(days), 1) if _is_small_number(days) else None,
            domain=arguments.get("domain", "").strip(),
            metadata=arguments.get("meta", "").strip(),
            count=min(max(int(count), 1), MAX_RESULTS) if _is_small_number(count) else None,
            is_fuzzy=arguments.get("fuzzy") == "1",
            fusion=arguments.get("fusion", type=Fusion) if may_tune else None,
            vector_percent=min(int(percent), 100)
            if may_tune and _is_small_number(percent)
            else None,
        )

    def arguments(self, **changes: Any) -> dict[str, Any]:
        """Return the arguments of the shortest address of this search; `changes` replace single
        values."""
        values: dict[str, Any] = {name: getattr(self, field) for name, field in _NAMES.items()}
        values |= {"fuzzy": "1" if self.is_fuzzy else "", "fusion": self.fusion or ""}
        values |= {"vector": self.vector_percent} | changes
        return {
            name: value
            for name, value in values.items()
            if value not in {"", None} and (name, value) != ("mode", SearchMode.HYBRID)
        }

    @property
    def facets(self) -> Facets:
        return Facets(
            folder_id=self.folder_id,
            tag=self.tag or None,
            media_type=TYPES[self.type_name].value if self.type_name else None,
            owner_id=self.owner_id,
            domain=self.domain or None,
            days=self.days,
        )

    @property
    def is_advanced(self) -> bool:
        return bool(
            self.metadata
            or self.fusion
            or self.vector_percent is not None
            or self.is_fuzzy
            or self.mode is not SearchMode.HYBRID
        )

    def request(self) -> SearchRequest:
        """Return the search request. Raises InvalidInput for an invalid metadata filter."""
        percent = self.vector_percent
        return SearchRequest(
            query=self.text,
            top_n=self.count,
            mode=self.mode,
            domain=self.domain or None,
            facets=replace(self.facets, domain=None),
            metadata=_metadata_filter(self.metadata),
            fusion=self.fusion,
            weights=None if percent is None else Weights(percent / 100, 1 - percent / 100),
            fuzzy=self.is_fuzzy,
            explain=True,
        )


def _metadata_filter(text: str) -> MetadataFilter | None:
    """Parse `name=value, name=value`: all conditions must hold.

    Numbers, true and false are read as in JSON, everything else is text.
    """
    parts = re.split("[,，]+(?=[^,，=]*=)", text.strip(" ,，"))
    pairs = [part.partition("=") for part in parts if part]
    if any(not name.strip() or not equals for name, equals, _ in pairs):
        raise InvalidInput(
            "metadata is written as name=value, such as department=HR; commas separate several"
        )
    conditions = [{name.strip(): _value(value.strip())} for name, _, value in pairs]
    return parse_filter({"$and": conditions} if conditions else None)


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float | str) else text


def _is_small_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 5  # noqa: PLR2004 - digits
