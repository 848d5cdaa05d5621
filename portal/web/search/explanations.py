"""Explanations of a search: what was unavailable, what each leg found, and how long it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from flask_babel import format_decimal, gettext

from portal.domain.search import Fusion, SearchMode, SearchOutcome
from portal.domain.search.degraded import (
    ANSWER_CUT_OFF,
    KEYWORD_INCOMPLETE,
    KEYWORD_UNAVAILABLE,
    MODEL_NOT_INDEXED,
    NO_WORDS,
    PHRASE_NOT_FOUND,
    VECTOR_UNAVAILABLE,
)
from portal.errors import N_

DEGRADED_WORDS = {
    ANSWER_CUT_OFF: N_(
        "The answer is cut off at the model's limit of length. Ask about one part of it."
    ),
    KEYWORD_UNAVAILABLE: N_(
        "Keyword search is not available on this server. These are semantic results only."
    ),
    KEYWORD_INCOMPLETE: N_(
        "The keyword index is incomplete at the moment. Some keyword results may be missing or "
        "ranked lower."
    ),
    VECTOR_UNAVAILABLE: N_(
        "Semantic search is temporarily unavailable. These are keyword results only."
    ),
    "embedder_unavailable": N_(
        "The embedding model is not responding. These are keyword results only."
    ),
    "vector_store_disabled": N_(
        "Semantic search is switched off on this server. These are keyword results only."
    ),
    MODEL_NOT_INDEXED: N_(
        "No documents have been embedded by the current model yet. These are keyword results only."
    ),
    PHRASE_NOT_FOUND: N_("No passage contains the exact phrase. Showing results without it."),
    NO_WORDS: N_(
        "This query has only filters. Add a word to search for, such as “leave type:pdf”."
    ),
    "reranker_unavailable": N_(
        "The re-ranking model was unavailable or too slow. Results are in their original order."
    ),
}
_NOTHING_BY_WORDS = N_("Keyword search is not available on this server. Search by meaning instead.")
_OTHER_DEGRADED = N_(
    "Part of the search was unavailable (%(code)s). Results may be less accurate than usual."
)

_WORDS = {
    "plan": N_("Plan"),
    "fusion": N_("Fusion"),
    "normalisation": N_("Normalisation"),
    "weights": N_("Weight"),
    "vector": N_("By meaning"),
    "text": N_("By keywords"),
    "candidates": N_("Passages compared"),
    "counts": N_("Found"),
    "enabled_documents": N_("Documents turned on"),
    "enabled_chunks": N_("Passages turned on"),
    "chunks": N_("Total passages"),
    "milliseconds": N_("Time (ms)"),
    "configuration": N_("Reading settings"),
    "embedding": N_("Embedding the query"),
    "selection": N_("Loading the document selection"),
    "keyword_selection": N_("Looking up terms"),
    "statement": N_("Searching"),
    "results": N_("Preparing the results"),
    "embedding_model": N_("Embedding model"),
    "confidence_constants": N_("Calibration of confidence"),
    "keyword_backend": N_("Keyword ranking"),
    "reranker": N_("Re-ranking"),
    "domain_boost": N_("Preferred domain boost"),
    "terms": N_("Terms looked up"),
}
VALUES = {
    "index": N_("By the index"),
    "exact": N_("Exact comparison"),
    "weighted": N_("Weighted scores"),
    "rrf": N_("Reciprocal rank fusion"),
    "calibrated": N_("Calibrated against unrelated text"),
    "minmax": N_("Min-max over the candidates"),
    "raw": N_("None"),
    "fitted": N_("Fitted for this model"),
    "corpus": N_("Fitted to the stored passages"),
    "borrowed": N_("From another model"),
    "tsvector": N_("Cover density (tsvector)"),
    "pg_textsearch": "BM25 (pg_textsearch)",
}
FUSION_WORDS: dict[StrEnum, str] = {one: VALUES[one] for one in Fusion}
# Values of both legs are shown side by side in one table; a leg has several names.
_LEGS = {
    "vector": "vector",
    "vector_leg": "vector",
    "text": "text",
    "keyword": "text",
    "keyword_leg": "text",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a caption; with `columns` each row has one value per column after its label."""

    caption: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Blend:
    """How the results of both legs were fused: shares in percent, None if ranks were merged."""

    name: str
    vector_share: int | None = None
    text_share: int | None = None


def degraded_notices(codes: Sequence[str], method: str | None = None) -> list[str]:
    """Return a sentence for each degraded part of a search, without duplicates.

    `method` is the search mode that was used.
    """
    known = dict(DEGRADED_WORDS)
    if method == SearchMode.KEYWORD:
        known[KEYWORD_UNAVAILABLE] = _NOTHING_BY_WORDS
    words = [
        gettext(known[code]) if code in known else gettext(_OTHER_DEGRADED, code=code)
        for code in codes
    ]
    return list(dict.fromkeys(words))


def was_searched(outcome: SearchOutcome) -> bool:
    """Return whether the search ran at all, so that an empty result means that nothing matches."""
    lacks_words = outcome.search_method == SearchMode.KEYWORD and (
        KEYWORD_UNAVAILABLE in outcome.degraded
    )
    return not lacks_words and NO_WORDS not in outcome.degraded


def blend(explanation: Mapping[str, Any] | None) -> Blend | None:
    """Return how scores were fused; None if the explanation has no fusion."""
    name = (explanation or {}).get("fusion")
    if explanation is None or name not in set(Fusion):
        return None
    words = gettext(VALUES[name])
    weights = explanation.get("weights") or {}
    both = weights.get("vector", 0) + weights.get("text", 0)
    if name != Fusion.WEIGHTED or not both:
        return Blend(words)
    vector_share = round(100 * weights["vector"] / both)
    return Blend(words, vector_share, 100 - vector_share)


def tables(explanation: Mapping[str, Any]) -> list[Table]:
    """Return an explanation as tables: the whole search, its legs side by side, its steps.

    Unknown keys are shown under their own names.
    """
    whole: list[tuple[str, Any]] = []
    others: list[Table] = []
    legs: dict[str, dict[str, Any]] = {}
    for key, value in explanation.items():
        if not isinstance(value, Mapping):
            if key != "domain_boost" or value:  # Without a preferred domain there is no boost.
                whole.append((key, value))
            continue
        rest = [(name, one) for name, one in value.items() if name not in _LEGS]
        for name in value.keys() & _LEGS.keys():
            legs.setdefault(key, {})[_LEGS[name]] = value[name]
        if key == "counts":
            whole += rest
        elif rest:
            others.append(Table(_word(key), _rows(rest)))
    found = [Table(str(gettext("The search")), _rows(whole))] if whole else []
    return found + ([_side_by_side(legs)] if legs else []) + others


def _rows(pairs: Iterable[tuple[str, Any]]) -> tuple[tuple[str, ...], ...]:
    return tuple((_word(key), _value(value)) for key, value in pairs)


def _side_by_side(values: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return a table of the values that both legs have, one column per leg."""
    legs = ("vector", "text")
    rows = tuple(
        (_word(key), *(_value(of_leg.get(leg)) for leg in legs)) for key, of_leg in values.items()
    )
    return Table(
        str(gettext("Semantic and keyword results")), rows, tuple(_word(leg) for leg in legs)
    )


def _word(key: str) -> str:
    """Return a label in the reader's language, or a readable form of an unknown key."""
    return str(gettext(_WORDS[key])) if key in _WORDS else key.replace("_", " ")


def _value(value: Any) -> str:
    if value is None or value == []:
        return "–"
    if isinstance(value, float):
        return str(format_decimal(round(value, 3)))
    if isinstance(value, int):
        return str(format_decimal(value))
    if isinstance(value, list | tuple):
        return str(gettext(", ")).join(str(item) for item in value)
    return str(gettext(VALUES[value])) if value in VALUES else str(value)
