"""How a search ran, in the reader's words: what it did without, what each leg found and took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask_babel import format_decimal, gettext

from portal.domain.search import Fusion, SearchMode, SearchOutcome
from portal.errors import N_

DEGRADED_WORDS = {
    "keyword_unavailable": N_(
        "Search by words is not available on this server. These results were found by meaning only."
    ),
    "keyword_slow": N_(
        "Search by words took too long and was left out. These results were found by meaning only."
    ),
    "vector_unavailable": N_(
        "Search by meaning is not available right now. These results were found by their words "
        "only."
    ),
    "vector_slow": N_(
        "Search by meaning took too long and was left out. These results were found by their "
        "words only."
    ),
    "embedder_unavailable": N_(
        "The model that reads for meaning does not answer right now. These results were found by "
        "their words only."
    ),
    "model_not_indexed": N_(
        "No document has been read by the current embedding model yet. These results were found "
        "by their words only."
    ),
    "phrase_not_found": N_(
        "No passage holds the words in quotation marks in just this order. These results were "
        "found without that condition."
    ),
    "no_words": N_(
        "This question only narrows what may be found. Add a word to look for, such as “leave "
        "type:pdf”."
    ),
    "reranker_unavailable": N_(
        "The model that checks the order of the results could not be used, or not in time. They "
        "stand in the order of the search itself."
    ),
}
_NOTHING_BY_WORDS = N_(
    "Search by words is not available on this server, so nothing was searched. Search by meaning "
    "too."
)
_OTHER_DEGRADED = N_(
    "The search had to do without a part of itself (%(code)s). The results may be worse than usual."
)

_WORDS = {
    "plan": N_("Plan"),
    "fusion": N_("Fusion"),
    "normalisation": N_("Normalisation"),
    "weights": N_("Weight"),
    "vector": N_("By meaning"),
    "text": N_("By words"),
    "candidates": N_("Passages compared"),
    "counts": N_("Found"),
    "enabled_documents": N_("Documents switched on"),
    "enabled_chunks": N_("Passages switched on"),
    "chunks": N_("Passages in all"),
    "milliseconds": N_("Time (ms)"),
    "configuration": N_("Reading settings"),
    "embedding": N_("Reading the question for its meaning"),
    "selection": N_("Looking up what is switched on"),
    "keyword_index": N_("Looking up its words"),
    "keyword_selection": N_("Looking up its words"),
    "statement": N_("Searching"),
    "results": N_("Preparing the results"),
    "embedding_model": N_("Embedding model"),
    "confidence_constants": N_("Calibration of confidence"),
    "keyword_backend": N_("Ranking of words"),
    "reranker": N_("Re-ranking"),
    "domain_boost": N_("Boost of the preferred domain"),
    "terms": N_("Words looked up"),
}
_VALUES = {
    "index": N_("by the index"),
    "exact": N_("each one compared"),
    "weighted": N_("weighted scores"),
    "rrf": N_("reciprocal ranks"),
    "calibrated": N_("by what unrelated text scores"),
    "minmax": N_("by the least and the greatest candidate"),
    "raw": N_("as they are"),
    "fitted": N_("fitted for this model"),
    "corpus": N_("made from the stored passages"),
    "borrowed": N_("those of another model"),
    "tsvector": N_("cover density (tsvector)"),
    "pg_textsearch": "BM25 (pg_textsearch)",
}
# A value of its own for each leg goes into one table, whatever the leg is called there.
_LEGS = {
    "vector": "vector",
    "vector_leg": "vector",
    "text": "text",
    "keyword": "text",
    "keyword_leg": "text",
}
FUSION_WORDS = {
    Fusion.WEIGHTED: N_("weighted scores"),
    Fusion.RRF: N_("reciprocal ranks"),
}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a caption; with `columns` each row has a value a column after its label."""

    caption: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Blend:
    """How the scores of both legs became one: shares in percent, None where ranks were merged."""

    name: str
    vector_share: int | None = None
    text_share: int | None = None


def degraded_notices(codes: Sequence[str], method: str | None = None) -> list[str]:
    """A sentence for each thing that a search did without, no sentence twice; `method` is how it
    searched."""
    known = dict(DEGRADED_WORDS)
    if method == SearchMode.KEYWORD:
        known["keyword_unavailable"] = _NOTHING_BY_WORDS
    words = [
        gettext(known[code]) if code in known else gettext(_OTHER_DEGRADED, code=code)
        for code in codes
    ]
    return list(dict.fromkeys(words))


def was_searched(outcome: SearchOutcome) -> bool:
    """Whether anything was looked for, so that nothing found means that there is nothing."""
    lacks_words = outcome.search_method == SearchMode.KEYWORD and (
        "keyword_unavailable" in outcome.degraded
    )
    return not lacks_words and "no_words" not in outcome.degraded


def blend(explanation: Mapping[str, Any] | None) -> Blend | None:
    """None where the search said nothing of its fusion."""
    name = (explanation or {}).get("fusion")
    if explanation is None or name not in set(Fusion):
        return None
    words = gettext(FUSION_WORDS[Fusion(name)])
    weights = explanation.get("weights") or {}
    both = weights.get("vector", 0) + weights.get("text", 0)
    if name != Fusion.WEIGHTED or not both:
        return Blend(words)
    vector_share = round(100 * weights["vector"] / both)
    return Blend(words, vector_share, 100 - vector_share)


def tables(explanation: Mapping[str, Any]) -> list[Table]:
    """An explanation as tables: the search as a whole, its legs side by side, its steps. A key
    that is not known here is shown under its own name."""
    whole: list[tuple[str, Any]] = []
    others: list[Table] = []
    legs: dict[str, dict[str, Any]] = {}
    for key, value in explanation.items():
        if not isinstance(value, Mapping):
            if key != "domain_boost" or value:  # Without a preferred domain there is none.
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
    """A row for each thing that both legs have a value of, a column a leg."""
    legs = ("vector", "text")
    rows = tuple(
        (_word(key), *(_value(of_leg.get(leg)) for leg in legs)) for key, of_leg in values.items()
    )
    return Table(str(gettext("The two legs")), rows, tuple(_word(leg) for leg in legs))


def _word(key: str) -> str:
    """A label in the reader's language; of what is not known here, its name made readable."""
    return str(gettext(_WORDS[key])) if key in _WORDS else key.replace("_", " ")


def _value(value: Any) -> str:
    if value is None or value == []:
        return "–"
    if isinstance(value, float):
        return str(format_decimal(round(value, 3)))
    if isinstance(value, int):
        return str(format_decimal(value))
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(gettext(_VALUES[value])) if value in _VALUES else str(value)
