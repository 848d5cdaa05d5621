"""How the scores of the two legs become one, as SQL over the candidate rows.

A candidate has `likeness` (cosine to the search vector), `bm25` (0 when the keyword leg did not
find it), `best_bm25` (the highest among the candidates) and its rank in each leg, from 1.
docs/retrieval-quality.md has the measurements behind these forms; adding a fusion is one entry.
"""

from __future__ import annotations

from portal.domain.search import Fusion

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

_WEIGHTED = f"""
    (:vector_weight * {VECTOR_PART} + :text_weight * text_score)
    / (:vector_weight + :text_weight)
"""

# Cormack, Clarke and Büttcher, SIGIR 2009; ranks start at 1.
_RRF = """
    COALESCE(1 / (CAST(:rrf_k AS float8) + vector_rank), 0)
    + COALESCE(1 / (CAST(:rrf_k AS float8) + text_rank), 0)
"""

FUSIONS: dict[Fusion, str] = {Fusion.WEIGHTED: _WEIGHTED, Fusion.RRF: _RRF}

# A single leg keeps its own score.
VECTOR_ONLY = "cosine"
KEYWORD_ONLY = "text_score"
