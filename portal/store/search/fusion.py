"""How the scores of the two legs become one, as SQL over the candidate rows.

A candidate has `likeness` (cosine to the search vector; None without an embedding), `cosine` (to
the question as it is), `bm25` (0 when the keyword leg did not find it), `best_bm25` (the highest
among the candidates) and its rank in each leg, from 1; `text_score` is `TEXT_SCORE` over these. The
expressions stand in a select list over all candidates: their window functions have to see each.
docs/retrieval-quality.md has the measurements behind these forms; adding a fusion is one entry.
"""

from __future__ import annotations

from portal.domain.search import Fusion, Normalisation

# BM25 relative to the best candidate, held down when even the best matches little of what the
# question could have matched: then the words say nothing, as in a question asked across languages.
TEXT_SCORE = """
    CASE WHEN bm25 > 0
         THEN bm25 / best_bm25 * LEAST(1, best_bm25 / NULLIF(CAST(:text_floor AS float8), 0)) ^ 2
         ELSE 0 END
"""

# Likeness in units of what unrelated text reaches for this very question. Deliberately not
# clamped: clamping would tie all strong or all weak candidates.
VECTOR_PART = "(COALESCE(likeness, 0) - :likeness_low) / :likeness_width"

# BM25 has no upper bound: relative to the best candidate it is in [0, 1] as a cosine is.
_RELATIVE_BM25 = "COALESCE(bm25 / NULLIF(best_bm25, 0), 0)"


def _weighted(vector_part: str, text_part: str) -> str:
    return f"""
    (:vector_weight * {vector_part} + :text_weight * {text_part})
    / (:vector_weight + :text_weight)
    """


def _minmax(score: str) -> str:
    """The score between the least and the greatest of the candidates: in [0, 1], 0 when all are
    the same."""
    return f"""COALESCE(({score} - min({score}) OVER ())
        / NULLIF(max({score}) OVER () - min({score}) OVER (), 0), 0)"""


# Cormack, Clarke and Büttcher, SIGIR 2009; ranks start at 1.
_RRF = """
    COALESCE(1 / (CAST(:rrf_k AS float8) + vector_rank), 0)
    + COALESCE(1 / (CAST(:rrf_k AS float8) + text_rank), 0)
"""

# Ranks have no scale to normalise: every normalisation of them is the same.
FUSIONS: dict[tuple[Fusion, Normalisation], str] = {
    (Fusion.WEIGHTED, Normalisation.RAW): _weighted("COALESCE(likeness, 0)", _RELATIVE_BM25),
    (Fusion.WEIGHTED, Normalisation.MINMAX): _weighted(_minmax("likeness"), _minmax("bm25")),
    (Fusion.WEIGHTED, Normalisation.CALIBRATED): _weighted(VECTOR_PART, "text_score"),
    **{(Fusion.RRF, normalisation): _RRF for normalisation in Normalisation},
}

# The scores as they are shown, for whoever adds them up again.
AS_SHOWN = _weighted("COALESCE(cosine, 0)", "text_score")

# A single leg keeps its own score.
VECTOR_ONLY = "cosine"
KEYWORD_ONLY = "text_score"
