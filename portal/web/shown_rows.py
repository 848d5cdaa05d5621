"""Rows that "Show more" loaded: the address counts them, for Back and reload."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

from flask import make_response, request
from werkzeug.wrappers import Response

from portal.web.security import referring_path

# The rows after these are on another page.
MAX_SHOWN = 500


def rows_limit(page_size: int) -> int:
    """Return how many rows to read: as many as the page had when it was left, else one step."""
    # An appended step is one step, however many rows there are before it.
    shown = 0 if request.args.get("cursor") else _read_shown()
    return min(max(shown, page_size), MAX_SHOWN)


def shown_values(count: int) -> dict[str, int]:
    """Return what `load_more` needs after `count` rows: how many the page has with them."""
    before = _read_shown() if request.args.get("cursor") else 0
    return {"shown": before + count, "max_shown": MAX_SHOWN}


def append_rows(rows: str, count: int) -> Response:
    """Return rows for the end of a list, and count them in the address of their page."""
    response = make_response(rows)
    if page := referring_path():
        parts = urlsplit(page)
        shown = str(shown_values(count)["shown"])
        others = [pair for pair in parse_qsl(parts.query) if pair[0] != "shown"]
        query = urlencode([*others, ("shown", shown)])
        response.headers["HX-Replace-Url"] = parts._replace(query=query).geturl()
    return response


def _read_shown() -> int:
    return max(0, request.args.get("shown", 0, type=int))
