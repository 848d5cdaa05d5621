"""Presenters show values correctly, in the user's language."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from flask import Flask
from flask_babel import force_locale
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.documents import Failure
from portal.domain.search import Span
from portal.ingest.formats.pages import page_recognition
from portal.web import presenters
from portal.web.answers.rendering import writer_words


@given(
    st.text(max_size=60), st.lists(st.tuples(st.integers(-5, 70), st.integers(-5, 70)), max_size=8)
)
def test_segments_of_any_spans_join_to_the_text(text, pairs):
    pieces = presenters.segments(text, [Span(start, end) for start, end in pairs if start >= 0])
    assert "".join(piece.text for piece in pieces) == text


def test_segments_mark_exactly_the_spans():
    pieces = presenters.segments("光合作用是植物", [Span(0, 4), Span(5, 7)])
    assert [(piece.text, piece.is_marked) for piece in pieces] == [
        ("光合作用", True),
        ("是", False),
        ("植物", True),
    ]


@pytest.mark.parametrize(
    ("confidence", "level"),
    [(1.0, "high"), (0.75, "high"), (0.74, "medium"), (0.5, "medium"), (0.49, "low"), (0, "low")],
)
def test_confidence_has_three_levels(confidence, level):
    assert presenters.confidence_level(confidence) == level


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1 KB"),
        (96_000, "94 KB"),
        (3_450_000, "3.3 MB"),
        (5 * 1024**3, "5 GB"),
        (9999 * 1024**3, "9,999 GB"),
    ],
)
def test_sizes_are_shown_in_a_suitable_unit(app: Flask, size_bytes, words):
    with app.test_request_context(), force_locale("en"):
        assert presenters.file_size(size_bytes) == words


def test_failure_is_shown_in_the_readers_language(app: Flask):
    advice = page_recognition.NOT_INSTALLED
    failure = Failure(
        "no_text_in_pdf",
        {"name": "合同.pdf", "where": page_recognition.in_words(range(3, 10)), "advice": advice},
    )
    with app.test_request_context():
        with force_locale("zh_Hans_CN"):
            told = presenters.failure_message(failure)
            assert told.startswith("“合同.pdf”无法搜索：第 3–9 页没有文本")
            assert told.endswith("或请管理员安装文字识别。")
        with force_locale("en"):
            told = presenters.failure_message(failure)
            assert told.startswith("“合同.pdf” cannot be searched: no text on pages 3–9")
            assert told.endswith(advice)


@pytest.mark.parametrize("model", ["", "extractive", "extractive 2"])
def test_answer_by_quotation_is_labelled_in_the_readers_language(app: Flask, model: str):
    with app.test_request_context(), force_locale("zh_Hans_CN"):
        assert writer_words("extractive", model) == "仅引用原文 · 未使用语言模型"


@pytest.mark.parametrize(
    "failure", [Failure("of_another_version"), Failure("no_text_in_pdf", {}), Failure("", {"a": 1})]
)
def test_unknown_or_incomplete_failure_still_has_a_message(app: Flask, failure):
    with app.test_request_context(), force_locale("en"):
        assert presenters.failure_message(failure)


def test_icons_are_hidden_from_screen_readers():
    assert 'aria-hidden="true"' in presenters.icon("search")


def test_dates_follow_the_language(app: Flask):
    moment = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
    with app.test_request_context():
        with force_locale("zh_Hans_CN"):
            assert presenters.short_date(moment) == "2026年11月21日"
        with force_locale("en"):
            assert presenters.short_date(moment) == "Nov 21, 2026"


def test_times_follow_the_browsers_zone(app: Flask):
    moment = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
    cookie = {"Cookie": "portal_timezone=Asia/Shanghai"}
    with app.test_request_context(headers=cookie), force_locale("zh_Hans_CN"):
        assert presenters.exact_time(moment) == "2026年11月22日 04:30"


def test_times_name_their_zone_until_the_browsers_is_known(app: Flask):
    moment = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
    with app.test_request_context(), force_locale("zh_Hans_CN"):
        assert presenters.exact_time(moment) == "2026年11月21日 20:30\u00a0UTC"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("2027-05-31", "is-short"),
        ("2027-05-31 09:00", "is-short"),
        ("HL-2026-0034-B", "is-short"),
        ("Cold room", ""),
        ("冷藏室", ""),
        ("", "is-short"),
        ("Moved to the cold room after the second calibration.", "is-long"),
    ],
)
def test_cells_with_dates_codes_and_sentences_have_a_class(words: str, name: str):
    assert presenters.cell_class(words) == name


@pytest.mark.parametrize("zone", ["../../etc/passwd", "Mars/Olympus", "\0", "x" * 5000])
def test_invalid_time_zone_is_ignored(app: Flask, zone):
    moment = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
    cookie = {"HTTP_COOKIE": f"portal_timezone={zone}"}
    with app.test_request_context(environ_overrides=cookie), force_locale("en"):
        assert "Nov 21, 2026" in presenters.exact_time(moment)
