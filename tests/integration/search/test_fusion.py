"""Every fusion in SQL gives what the NumPy reference gives on the same candidates."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sqlalchemy import text

from eval.reference import (
    fuse_reference,
    minmax_reference,
    raw_reference,
    rrf_reference,
    text_scores,
)
from portal.domain.search import Fusion, Normalisation
from portal.store.search.fusion import FUSIONS, TEXT_SCORE
from tests.conftest import Portal

LIKENESS = np.array([0.83, 0.80, 0.78, 0.70, 0.52])
BM25 = np.array([0.0, 4.0, 9.0, 0.0, 1.5])
SCALE = {"v_lo": 0.41, "v_width": 0.37, "text_floor": 12.0}
WEIGHTS = {"vector_weight": 0.7, "text_weight": 0.3}
BINDS = {
    "likeness_low": SCALE["v_lo"],
    "likeness_width": SCALE["v_width"],
    "rrf_k": 60,
    **WEIGHTS,
}


def ranks(scores: np.ndarray) -> list[int | None]:
    order = np.argsort(-scores, kind="stable").tolist()
    return [order.index(place) + 1 if scores[place] > 0 else None for place in range(len(scores))]


def by_sql(portal: Portal, fused: str, likeness: np.ndarray, bm25: np.ndarray) -> list[float]:
    statement = f"""
        SELECT CAST({fused} AS float8) AS fused
        FROM (
            SELECT *, {TEXT_SCORE} AS text_score
            FROM (
                SELECT *, max(bm25) OVER () AS best_bm25
                FROM unnest(
                    CAST(:places AS int[]), CAST(:likeness AS float8[]), CAST(:bm25 AS float8[]),
                    CAST(:vector_ranks AS bigint[]), CAST(:text_ranks AS bigint[])
                ) AS given(place, likeness, bm25, vector_rank, text_rank)
            ) measured
        ) scored
        ORDER BY place
    """
    binds = {
        "places": list(range(len(likeness))),
        "likeness": likeness.tolist(),
        "bm25": bm25.tolist(),
        "vector_ranks": ranks(likeness),
        "text_ranks": ranks(bm25),
        "text_floor": SCALE["text_floor"],
    }
    binds |= {name: value for name, value in BINDS.items() if f":{name}" in fused}
    with portal.services.database.begin() as session:
        return list(session.execute(text(statement), binds).scalars())


REFERENCES = {
    Normalisation.RAW: lambda likeness, bm25: raw_reference(likeness, bm25, **WEIGHTS),
    Normalisation.MINMAX: lambda likeness, bm25: minmax_reference(likeness, bm25, **WEIGHTS),
    Normalisation.CALIBRATED: lambda likeness, bm25: fuse_reference(
        likeness, bm25, **SCALE, **WEIGHTS
    ),
}


@pytest.mark.parametrize(("fusion", "normalisation"), list(product(Fusion, Normalisation)))
def test_fusion_in_sql_is_that_of_the_reference(
    portal: Portal, fusion: Fusion, normalisation: Normalisation
) -> None:
    if fusion is Fusion.RRF:
        expected = rrf_reference(LIKENESS, BM25, depth=len(BM25))
    else:
        expected = REFERENCES[normalisation](LIKENESS, BM25)
    found = by_sql(portal, FUSIONS[fusion, normalisation], LIKENESS, BM25)
    assert found == pytest.approx(expected.tolist())


@pytest.mark.parametrize("normalisation", list(Normalisation))
def test_candidates_that_are_all_the_same_or_without_words_divide_by_nothing(
    portal: Portal, normalisation: Normalisation
) -> None:
    likeness, bm25 = np.array([0.5, 0.5]), np.zeros(2)
    found = by_sql(portal, FUSIONS[Fusion.WEIGHTED, normalisation], likeness, bm25)
    assert found == pytest.approx(REFERENCES[normalisation](likeness, bm25).tolist())


def test_text_score_fades_as_in_the_reference(portal: Portal) -> None:
    found = by_sql(portal, "text_score", LIKENESS, BM25)
    assert found == pytest.approx(text_scores(BM25, SCALE["text_floor"]).tolist())
