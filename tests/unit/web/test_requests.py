"""When a request gets a fragment instead of a page, and how addresses are read and written."""

from __future__ import annotations

import pytest
from flask import request

from portal.domain.documents import DocumentStatus, MediaType
from portal.domain.search import SearchMode
from portal.web.documents import listing
from portal.web.documents.reading import document as reading
from portal.web.documents.reading import originals
from portal.web.layout import wants_fragment
from portal.web.search.query import SearchQuery


@pytest.mark.parametrize(
    ("headers", "target", "expected"),
    [
        ({}, None, False),
        ({"HX-Request": "true"}, None, True),
        ({"HX-Request": "true", "HX-Target": "search-results"}, "search-results", True),
        ({"HX-Request": "true", "HX-Target": "other"}, "search-results", False),
        ({"HX-Request": "true", "HX-History-Restore-Request": "true"}, None, False),
    ],
)
def test_fragment_is_sent_only_to_htmx_and_for_its_target(app, headers, target, expected):
    with app.test_request_context(headers=headers):
        assert wants_fragment(target) is expected


def test_address_of_the_list_contains_only_filters_in_use(app):
    with app.test_request_context("/documents?q=+a+&status=failed&type=pdf&domain="):
        query = listing.list_query()
    assert query.arguments() == {"q": "a", "status": "failed", "type": "pdf"}
    assert query.filters.status is DocumentStatus.FAILED
    assert query.filters.media_type is MediaType.PDF


def test_unknown_filter_values_are_ignored(app):
    with app.test_request_context("/documents?status=lost&type=exe"):
        assert not listing.list_query().is_filtered


def test_watched_rows_are_few_and_well_formed(app):
    one = "00000000-0000-0000-0000-000000000001"
    many = "&".join(f"watch={one}.queued" for _ in range(100))
    with app.test_request_context(f"/documents/progress?watch=x&{many}"):
        watched = listing._watched()
    assert len(watched) == listing.WATCH_LIMIT
    assert {status for _, status in watched} == {"queued"}


@pytest.mark.parametrize(
    ("address", "count"),
    [
        ("", None),
        ("&n=30", 30),
        ("&n=100000", None),
        ("&n=999", 100),
        ("&n=-5", None),
        ("&n=²", None),
    ],
)
def test_number_of_results_shown_is_bounded(app, address, count):
    with app.test_request_context(f"/search?q=x{address}"):
        assert SearchQuery.read(request.args, may_tune=False).count == count


def test_address_of_a_search_omits_defaults(app):
    with app.test_request_context("/search?q=水&mode=hybrid&domain="):
        assert SearchQuery.read(request.args, may_tune=False).arguments() == {"q": "水"}
    with app.test_request_context("/search?q=水&mode=vector&domain=law"):
        question = SearchQuery.read(request.args, may_tune=False)
    assert question.mode is SearchMode.VECTOR
    assert question.arguments(n=20) == {"q": "水", "mode": "vector", "domain": "law", "n": 20}


@pytest.mark.parametrize(
    ("text", "number"), [(None, 1), ("", 1), ("0", 1), ("-3", 1), ("7", 7), ("²", 1), ("9" * 9, 1)]
)
def test_invalid_part_number_becomes_one(text, number):
    assert reading.positive(text) == number


@pytest.mark.parametrize(
    ("encoding", "charset"),
    [(None, "utf-8"), ("gb18030", "gb18030"), ("utf-8-sig", "utf-8"), ("x\r\ny", "utf-8")],
)
def test_a_text_file_is_served_in_its_encoding(encoding, charset):
    assert originals._charset(encoding) == charset
