"""`semantic_search` above any backend."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from portal.domain.search.fusion import Ranked
from portal.domain.search.semantic import SemanticHit, SemanticResult
from portal.errors import EmbedderUnavailable, Unavailable
from portal.observability.redaction import redact, render_exception
from portal.services.search.programs.semantic import SemanticSearch, rank
from tests.factories.semantic import (
    QUERY_VECTOR,
    FakeBackend,
    FakeEmbedder,
    captured_log,
    chunk,
    named,
)

SECRET = "who earns what in 北京?"
# The sparse leg's third is the dense leg's second; "w2" has no vector.
NEAR = [chunk("n1", 0.9), chunk("both", 0.8), chunk("n3", 0.3)]
WORDED = [chunk("w1"), chunk("w2"), chunk("both")]
COSINES = {"w1": 0.5}


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    return captured_log(monkeypatch)


def backend(**changes: Any) -> FakeBackend:
    return FakeBackend(**{"near": NEAR, "worded": WORDED, "cosines": COSINES} | changes)


def over(
    found: FakeBackend, *, hybrid: bool = True, error: Exception | None = None
) -> SemanticSearch:
    return SemanticSearch(found, FakeEmbedder(error), hybrid=hybrid)


def ids(results: Sequence[SemanticResult]) -> list[str]:
    return [one.id for one in results]


def legs(found: FakeBackend) -> list[str]:
    return [leg for leg, *_ in found.calls]


# --- requirement 2: on and off ------------------------------------------------------------------


def test_2_2_without_hybrid_only_the_dense_leg_is_asked() -> None:
    found = backend()
    results = over(found, hybrid=False).semantic_search("q")
    assert (ids(results), legs(found)) == (["n1", "both", "n3"], ["dense"])


def test_2_3_hybrid_asks_both_legs() -> None:
    found = backend()
    over(found).semantic_search("q")
    assert legs(found) == ["dense", "sparse"]


@pytest.mark.parametrize("hybrid", [True, False])
def test_2_5_status_says_whether_it_is_hybrid(hybrid: bool) -> None:
    search = over(backend(), hybrid=hybrid)
    assert search.is_hybrid_search_enabled() is hybrid
    assert (search.status.is_requested, search.status.is_enabled) == (hybrid, hybrid)


# --- requirement 3: two legs --------------------------------------------------------------------


def test_3_1_dense_leg_gets_the_embedding_of_the_question() -> None:
    found, embedder = backend(), FakeEmbedder()
    SemanticSearch(found, embedder, hybrid=True).semantic_search(SECRET)
    assert embedder.asked == [SECRET]
    assert found.vectors[0] is QUERY_VECTOR


def test_3_2_sparse_leg_gets_the_words_of_the_question() -> None:
    found = backend()
    over(found).semantic_search(SECRET)
    assert found.texts == [SECRET]


def test_3_3_results_come_from_both_legs() -> None:
    results = over(backend()).semantic_search("q")
    assert set(ids(results)) == {"n1", "both", "n3", "w1", "w2"}


@pytest.mark.parametrize("limit", [1, 5, 12])
def test_3_4_each_leg_is_asked_for_twice_the_limit(limit: int) -> None:
    found = backend()
    over(found).semantic_search("q", limit)
    assert [asked for _, asked, _ in found.calls] == [2 * limit, 2 * limit]


@pytest.mark.parametrize(
    ("changes", "expected", "method", "degraded"),
    [
        ({"near": RuntimeError(SECRET)}, ["w1", "w2", "both"], "sparse", "vector_unavailable"),
        ({"worded": RuntimeError(SECRET)}, ["n1", "both", "n3"], "dense", "keyword_unavailable"),
    ],
    ids=["dense fails", "sparse fails"],
)
def test_3_5_one_leg_fails_and_the_other_answers(
    log: list[dict[str, Any]],
    changes: dict[str, Any],
    expected: list[str],
    method: str,
    degraded: str,
) -> None:
    outcome = over(backend(**changes)).search("q")
    assert ids(outcome.results) == expected
    assert (outcome.method, outcome.degraded) == (method, (degraded,))
    (failed,) = named(log, "leg_failed")
    assert failed["leg"] == ("dense" if method == "sparse" else "sparse")


def test_both_legs_fail_and_the_search_reports_it(log: list[dict[str, Any]]) -> None:
    broken = backend(near=RuntimeError("a"), worded=RuntimeError("b"))
    with pytest.raises(Unavailable):
        over(broken).semantic_search("q")
    assert [entry["leg"] for entry in named(log, "leg_failed")] == ["dense", "sparse"]


def test_dense_search_alone_raises_its_own_error(log: list[dict[str, Any]]) -> None:
    with pytest.raises(EmbedderUnavailable):
        over(backend(), hybrid=False, error=EmbedderUnavailable(reason="x")).semantic_search("q")
    assert len(named(log, "leg_failed")) == 1


# --- requirement 4: reciprocal rank fusion ------------------------------------------------------


def fused(dense: Sequence[SemanticHit], sparse: Sequence[SemanticHit]) -> list[Ranked]:
    return rank(dense, sparse, {one.id: one for one in (*sparse, *dense)})


def test_4_1_to_4_4_score_is_the_sum_of_1_over_60_plus_rank_over_the_legs_that_found_it() -> None:
    best, *_ = found = fused(NEAR, WORDED)
    scores = {one.offer.id: one.score for one in found}
    assert scores == {
        "n1": 1 / 61, "both": 1 / 62 + 1 / 63, "n3": 1 / 63, "w1": 1 / 61, "w2": 1 / 62
    }  # fmt: skip
    assert (best.offer.id, best.offer.vector_rank, best.offer.text_rank) == ("both", 2, 3)


def test_4_5_highest_rrf_score_comes_first() -> None:
    results = over(backend()).semantic_search("q")
    scores = [one.metadata["rrf_score"] for one in results]
    assert scores == sorted(scores, reverse=True)
    # Equal scores are in the order of similarity.
    assert ids(results) == ["both", "n1", "w1", "w2", "n3"]


def test_chunk_that_a_leg_names_twice_counts_once() -> None:
    (one,) = fused([chunk("a", 0.5), chunk("a", 0.5)], [])
    assert one.score == 1 / 61


# --- requirement 5: re-ranking and threshold ----------------------------------------------------


def test_5_1_order_is_that_of_the_final_rrf_scores() -> None:
    # By similarity alone n1 would lead; by words alone w1.
    assert over(backend()).semantic_search("q")[0].id == "both"


def test_5_2_no_more_results_than_the_limit() -> None:
    assert ids(over(backend()).semantic_search("q", 2)) == ["both", "n1"]


def test_5_3_threshold_leaves_out_what_is_less_similar_after_re_ranking() -> None:
    results = over(backend()).semantic_search("q", 3, threshold=0.45)
    # n3 is below the threshold and w2 has no vector; neither takes the place of another result.
    assert ids(results) == ["both", "n1", "w1"]


def test_5_3_threshold_counts_without_hybrid_too() -> None:
    assert ids(over(backend(), hybrid=False).semantic_search("q", threshold=0.8)) == ["n1", "both"]


def test_5_4_metadata_has_the_similarity_and_the_rrf_score() -> None:
    by_id = {one.id: one.metadata for one in over(backend()).semantic_search("q")}
    assert by_id["n1"]["similarity"] == 0.9
    assert by_id["n1"]["rrf_score"] == 1 / 61
    assert (by_id["n1"]["dense_rank"], by_id["n1"]["sparse_rank"]) == (1, None)
    # The similarity of a hit that only words found is looked up.
    assert by_id["w1"]["similarity"] == 0.5


@pytest.mark.parametrize("hybrid", [True, False])
def test_5_5_nothing_reaches_the_threshold_and_the_list_is_empty(hybrid: bool) -> None:
    assert over(backend(), hybrid=hybrid).semantic_search("q", threshold=0.99) == []


# --- requirement 6: what callers rely on --------------------------------------------------------


def test_6_1_without_hybrid_results_are_the_dense_leg_as_it_is() -> None:
    results = over(backend(), hybrid=False).semantic_search("q")
    assert [(one.id, one.similarity) for one in results] == [(p.id, p.similarity) for p in NEAR]


def test_6_2_parameters_go_by_place_and_by_name() -> None:
    search = over(backend())
    by_name = search.semantic_search(query="q", limit=2, threshold=0.1, content_type="text/plain")
    assert by_name == search.semantic_search("q", 2, 0.1, "text/plain")
    assert len(search.semantic_search("q")) == 5


def test_6_3_hybrid_adds_fields_to_the_metadata_and_changes_none() -> None:
    dense = {one.id: one for one in over(backend(), hybrid=False).semantic_search("q")}
    hybrid = {one.id: one for one in over(backend()).semantic_search("q")}
    for name, plain in dense.items():
        more = hybrid[name]
        assert (more.document_id, more.content, more.similarity) == (
            plain.document_id, plain.content, plain.similarity,
        )  # fmt: skip
        assert plain.metadata.items() <= more.metadata.items()
        assert set(more.metadata) - set(plain.metadata) == {
            "rrf_score", "dense_rank", "sparse_rank",
        }  # fmt: skip


def test_6_4_content_type_is_asked_of_both_legs() -> None:
    pdf = "application/pdf"
    found = backend(
        near=[chunk("a", 0.9), chunk("b", 0.8, content_type=pdf)],
        worded=[chunk("c"), chunk("d", content_type=pdf)],
    )
    results = over(found).semantic_search("q", content_type=pdf)
    assert set(ids(results)) == {"b", "d"}
    assert [content_type for *_, content_type in found.calls] == [pdf, pdf]


def test_6_5_backend_without_words_is_searched_by_meaning(log: list[dict[str, Any]]) -> None:
    found = backend(no_sparse="keyword_unavailable")
    search = over(found)
    assert ids(search.semantic_search("q")) == ["n1", "both", "n3"]
    assert legs(found) == ["dense"]
    assert search.is_hybrid_search_enabled() is False
    assert named(log, "leg_failed") == []


# --- requirement 7: logging ----------------------------------------------------------------------


def test_7_1_configuration_is_logged_at_the_start_and_when_it_changes(
    log: list[dict[str, Any]],
) -> None:
    for found in (backend(), backend(), backend(no_sparse="gone")):
        over(found)
    assert [
        (one["log_level"], one["hybrid_requested"], one["hybrid_enabled"], one["reason"])
        for one in named(log, "configured")
    ] == [("info", True, True, None), ("warning", True, False, "gone")]


def test_7_2_number_of_results_of_each_leg_is_logged(log: list[dict[str, Any]]) -> None:
    over(backend(worded=WORDED[:2])).semantic_search("q")
    (counts,) = named(log, "legs")
    assert (counts["dense"], counts["sparse"], counts["candidates"]) == (3, 2, 10)


def test_7_3_unique_and_merged_counts_are_logged(log: list[dict[str, Any]]) -> None:
    over(backend()).semantic_search("q")
    (merged,) = named(log, "merged")
    assert (merged["unique"], merged["merged"], merged["in_both"]) == (5, 6, 1)


@pytest.mark.parametrize("leg", ["near", "worded", "cosines"])
def test_7_4_failure_is_logged_with_its_stack_and_without_the_question(
    log: list[dict[str, Any]], leg: str
) -> None:
    over(backend(**{leg: RuntimeError(f"near {SECRET!r} at line 1")})).semantic_search(SECRET)
    (failed,) = named(log, "leg_failed")
    assert (failed["log_level"], failed["error_type"]) == ("error", "RuntimeError")
    line = as_written(failed)
    assert "factories/semantic.py" in line
    assert "raise" in line
    assert "北京" not in "".join(as_written(entry) for entry in log)


def as_written(event: Mapping[str, Any]) -> str:
    """Return an event as the process writes it."""
    return json.dumps(redact(None, "", render_exception(None, "", dict(event))), ensure_ascii=False)


def test_7_5_final_count_and_summary_are_logged(log: list[dict[str, Any]]) -> None:
    over(backend()).semantic_search(SECRET, 2, threshold=0.1)
    assert "北京" not in repr(log)
    (finished,) = named(log, "finished")
    assert (finished["results"], finished["limit"], finished["threshold"]) == (2, 2, 0.1)
    assert (finished["method"], finished["degraded"]) == ("hybrid", [])
    assert finished["duration_ms"] >= 0


# --- requirement 8: edges -----------------------------------------------------------------------


@pytest.mark.parametrize("hybrid", [True, False])
@pytest.mark.parametrize("query", ["", " ", "\n\t　", "\u200b\u3000"])
def test_8_1_question_without_a_word_finds_nothing(query: str, hybrid: bool) -> None:
    found = backend()
    assert over(found, hybrid=hybrid).semantic_search(query) == []
    assert found.calls == []


def test_8_3_backend_that_cannot_rank_words_is_noticed() -> None:
    status = over(backend(no_sparse="its version has no BM25")).status
    assert (status.is_requested, status.is_enabled) == (True, False)
    assert status.reason == "its version has no BM25"


@pytest.mark.parametrize("limit", [0, -1, -1_000_000])
def test_8_4_limit_less_than_1_counts_as_5(limit: int) -> None:
    many = [chunk(str(number), 1 - number / 100) for number in range(20)]
    found = backend(near=many, worded=many)
    assert len(over(found).semantic_search("q", limit)) == 5
    assert [asked for _, asked, _ in found.calls] == [10, 10]


def test_8_5_question_that_is_not_embedded_is_looked_for_by_its_words(
    log: list[dict[str, Any]],
) -> None:
    found = backend()
    outcome = over(found, error=EmbedderUnavailable(reason=SECRET)).search("q", threshold=0.5)
    assert ids(outcome.results) == ["w1", "w2", "both"]
    assert [one.similarity for one in outcome.results] == [None, None, None]
    assert outcome.method == "sparse"
    # No similarity is known, so the threshold is not applied, and the outcome says so.
    assert outcome.degraded == ("embedder_unavailable", "threshold_not_applied")
    assert legs(found) == ["sparse"]
    assert named(log, "leg_failed")[0]["leg"] == "embedding"
