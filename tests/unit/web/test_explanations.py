"""Codes about how a search ran have sentences; codes without one are shown as they are."""

from __future__ import annotations

from typing import get_args

import pytest
from flask import Flask
from flask_babel import force_locale

from portal.domain.search import SearchMode
from portal.domain.search.explaining import FailedFilter, MissingReason, OtherDocument, WhyNot
from portal.embeddings.calibration.confidence import Source
from portal.http.messages import ABSENCES, FAILED_FILTERS, missing_message
from portal.web.operations import search_settings
from portal.web.search import explanations

DOCUMENT = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize("locale", ["en", "zh_Hans_CN"])
def test_each_code_has_its_sentence_and_an_unknown_one_is_named(app: Flask, locale: str) -> None:
    codes = [*explanations.DEGRADED_WORDS, "of_another_version"]
    with app.test_request_context(), force_locale(locale):
        notices = explanations.degraded_notices([*codes, codes[0]])
    assert len(set(notices)) == len(notices) == len(codes)
    assert "of_another_version" in notices[-1]
    assert all(code not in notice for code, notice in zip(codes[:-1], notices, strict=False))


def test_weights_are_shown_as_shares_of_their_sum(app: Flask) -> None:
    explained = {"fusion": "weighted", "weights": {"vector": 0.2, "text": 0.6}}
    with app.test_request_context(), force_locale("en"):
        blend = explanations.blend(explained)
        assert blend == explanations.Blend("Weighted scores", 25, 75)
        assert explanations.blend({"fusion": "rrf", "weights": {"vector": 1, "text": 1}}) == (
            explanations.Blend("Reciprocal rank fusion")
        )
        assert explanations.blend(None) is explanations.blend({"fusion": "new"}) is None


def test_explanation_shows_the_legs_side_by_side(app: Flask) -> None:
    explained = {
        "plan": {"vector": "exact", "keyword": None},
        "fusion": "weighted",
        "weights": {"vector": 0.7, "text": 0.3},
        "counts": {"enabled_chunks": 1200, "vector_leg": 50, "keyword_leg": 7},
        "milliseconds": {"statement": 3.14159, "a_new_step": 1, "vector_leg": 2.5},
        "terms": ["年假", "leave"],
        "a_new_key": "as it is",
    }
    with app.test_request_context(), force_locale("en"):
        search, legs, steps = explanations.tables(explained)
        assert explanations.tables({}) == []
    assert search.rows == (
        ("Fusion", "Weighted scores"),
        ("Passages turned on", "1,200"),
        ("Terms looked up", "年假, leave"),
        ("a new key", "as it is"),
    )
    with app.test_request_context(), force_locale("zh_Hans_CN"):
        assert explanations.tables(explained)[0].rows[2][1] == "年假、leave"
    assert legs.columns == ("By meaning", "By keywords")
    assert legs.rows == (
        ("Plan", "Exact comparison", "–"),
        ("Weight", "0.7", "0.3"),
        ("Found", "50", "7"),
        ("Time (ms)", "2.5", "–"),
    )
    assert steps.rows == (("Searching", "3.142"), ("a new step", "1"))


def test_origin_of_confidence_constants_is_shown_in_words(app: Flask) -> None:
    with app.test_request_context(), force_locale("en"):
        for source in get_args(Source):
            [table] = explanations.tables({"confidence_constants": source})
            [(label, value)] = table.rows
            assert label == "Calibration of confidence"
            assert len(value.split()) > 1, source


def test_keyword_search_is_not_said_to_show_semantic_results(app: Flask) -> None:
    with app.test_request_context(), force_locale("en"):
        alone = explanations.degraded_notices(["keyword_unavailable"], SearchMode.KEYWORD)
        both = explanations.degraded_notices(["keyword_unavailable"], SearchMode.HYBRID)
    assert "semantic results only" in both[0]
    assert "semantic results only" not in alone[0]


@pytest.mark.parametrize("locale", ["en", "zh_Hans_CN"])
def test_every_reason_has_a_message(app: Flask, locale: str) -> None:
    details = {
        MissingReason.EXCLUDED_BY_FILTER: {"failed_filter": FailedFilter("word", "草案")},
        MissingReason.DUPLICATE_OF: {"duplicate_of": OtherDocument(DOCUMENT, "副本", 2)},
        MissingReason.BELOW_THRESHOLD: {"score": 0.314, "threshold": 0.5},
    }
    messages = set()
    with app.test_request_context(), force_locale(locale):
        for reason in MissingReason:
            why = WhyNot(
                DOCUMENT, "100% 合同", reason, rank=57, shown_count=10, **details.get(reason, {})
            )
            messages.add(missing_message(why))
        messages |= {
            missing_message(
                WhyNot(
                    DOCUMENT,
                    "合同",
                    MissingReason.EXCLUDED_BY_FILTER,
                    failed_filter=FailedFilter(kind, "x"),
                )
            )
            for kind in FAILED_FILTERS
        }
        beyond = missing_message(WhyNot(DOCUMENT, "合同", MissingReason.RANKED, ranked_beyond=1000))
    assert "1000" in beyond
    assert len(messages) == len(MissingReason) + len(FAILED_FILTERS)
    assert all("%(" not in message for message in messages)
    assert set(ABSENCES) | {MissingReason.EXCLUDED_BY_FILTER} == set(MissingReason)


def test_every_search_setting_has_a_label() -> None:
    from portal.services.search.dynamic_config import DynamicConfig

    assert set(search_settings.WORDS) == set(DynamicConfig.model_fields)
