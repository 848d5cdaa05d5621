"""Rows loaded by "Show more": the address has their number, for Back and reload."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

from flask import make_response, request
from werkzeug.wrappers import Response

from portal.web.security import referring_path

# Rows beyond these are on another page.
MAX_SHOWN = 500


def rows_limit(page_size: int) -> int:
    """Return how many rows to load: as many as the page had when it was left, by default one
    step."""
    # A request that appends rows loads one step, however many rows come before it.
    shown = 0 if request.args.get("cursor") else _read_shown()
    return min(max(shown, page_size), MAX_SHOWN)


def shown_values(count: int) -> dict[str, int]:
    """Return the values for `load_more`: the number of rows on the page, with these `count`."""
    before = _read_shown() if request.args.get("cursor") else 0
    return {"shown": before + count, "max_shown": MAX_SHOWN}


def append_rows(rows: str, count: int) -> Response:
    """Return rows for the end of a list, and update their number in the page's address."""
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
