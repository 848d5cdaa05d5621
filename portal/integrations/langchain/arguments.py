"""Arguments that LangChain's programs pass to both stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from portal.domain.embedding import Vector

DEFAULT_K = 4
DEFAULT_FETCH_K = 20

Query = str | Sequence[float] | Vector
Where = Mapping[str, Any]
Scored = list[tuple[Document, float]]


def columns_of(
    documents: Sequence[Document], ids: Sequence[str | None] | None
) -> tuple[list[str], list[dict[str, Any]], Sequence[str | None]]:
    """Return the texts, metadata and ids of documents; `ids` take precedence over their own."""
    return (
        [document.page_content for document in documents],
        [document.metadata for document in documents],
        [document.id for document in documents] if ids is None else ids,
    )


def refuse_unknown(kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError for any argument: a mistyped `filter` must not silently search everything."""
    if kwargs:
        raise TypeError(f"unexpected keyword arguments: {', '.join(sorted(kwargs))}")


def k_in_search_kwargs(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Move a retriever's `k` to `search_kwargs`, where LangChain reads it; a `k` that is there
    already takes precedence."""
    if "k" not in kwargs:
        return kwargs
    searching = {"k": kwargs["k"]} | (kwargs.get("search_kwargs") or {})
    return {name: value for name, value in kwargs.items() if name != "k"} | {
        "search_kwargs": searching
    }
