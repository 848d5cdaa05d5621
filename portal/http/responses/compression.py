"""Compression of responses, where the client accepts gzip.

Server-sent events and files are streamed, so that they are sent as they are. Pages hold a CSRF
token beside what was typed; the token is masked in each response (`web.security`), so that its
length when compressed says nothing about it.
"""

from __future__ import annotations

import gzip

from flask import Flask, Response, request

TYPES = frozenset(
    {
        "application/json",
        "application/javascript",
        "image/svg+xml",
        "text/css",
        "text/csv",
        "text/html",
        "text/javascript",
        "text/plain",
    }
)
# Below this a response fits into one packet anyway.
MIN_BYTES = 860
LEVEL = 5
_NO_CONTENT, _PARTIAL, _NOT_MODIFIED = 204, 206, 304


def init_app(app: Flask) -> None:
    """Compress what leaves `app`; call it first, since the first to register runs last."""
    app.after_request(compress)


def compress(response: Response) -> Response:
    """Compress the body of a complete response, and name the header it depends on."""
    if (
        response.mimetype not in TYPES
        or response.is_streamed
        or response.direct_passthrough
        or "Content-Encoding" in response.headers
        or response.status_code in {_NO_CONTENT, _PARTIAL, _NOT_MODIFIED}
    ):
        return response
    response.vary.add("Accept-Encoding")
    body = response.get_data()
    if len(body) >= MIN_BYTES and accepts_gzip():
        use_gzip(response, gzip.compress(body, LEVEL, mtime=0))
    return response


def accepts_gzip() -> bool:
    return request.accept_encodings["gzip"] > 0


def use_gzip(response: Response, compressed: bytes) -> None:
    """Replace the body of a response by its compressed form."""
    response.set_data(compressed)
    response.headers["Content-Encoding"] = "gzip"
    etag, is_weak = response.get_etag()
    if etag is not None and not is_weak:
        response.set_etag(etag, weak=True)
