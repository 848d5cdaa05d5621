"""Rows that "Show more" loaded are in the address of their page."""

from __future__ import annotations

import pytest
from flask import Flask

from portal.web.shown_rows import MAX_SHOWN, append_rows, rows_limit, shown_values

HTMX = {"HX-Request": "true", "HX-Current-URL": "http://localhost/chat/1?source=2&shown=30"}


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        ("", 30),
        ("?shown=90", 90),
        ("?shown=-5", 30),
        ("?shown=x", 30),
        ("?shown=9999", MAX_SHOWN),
        # A request that appends rows loads one step.
        ("?shown=90&cursor=c", 30),
    ],
)
def test_a_page_has_as_many_rows_as_when_it_was_left(query: str, limit: int) -> None:
    with Flask(__name__).test_request_context(f"/chat{query}"):
        assert rows_limit(30) == limit


def test_appended_rows_are_counted_in_the_address_of_the_page_around_them() -> None:
    with Flask(__name__).test_request_context("/chat?cursor=c&shown=30", headers=HTMX):
        assert shown_values(30)["shown"] == 60
        response = append_rows("<li></li>", 30)
    assert response.headers["HX-Replace-Url"] == "/chat/1?source=2&shown=60"


def test_rows_requested_from_elsewhere_change_no_address() -> None:
    headers = HTMX | {"HX-Current-URL": "http://elsewhere.example/chat"}
    with Flask(__name__).test_request_context("/chat?cursor=c&shown=30", headers=headers):
        assert "HX-Replace-Url" not in append_rows("<li></li>", 30).headers
