"""Compression of responses, if the client accepts gzip.

Server-sent events and files are streamed and stay uncompressed. Pages contain a CSRF token beside
text that users typed; `web.security` masks the token in each response, so that the compressed
length reveals nothing about it.
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
    """Compress the responses of `app`. Call this first: the hook registered first runs last."""
    app.after_request(compress)


def compress(response: Response) -> Response:
    """Compress the body of a complete response, and add Accept-Encoding to Vary."""
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
    """Replace the body of a response with its compressed form."""
    response.set_data(compressed)
    response.headers["Content-Encoding"] = "gzip"
    etag, is_weak = response.get_etag()
    if etag is not None and not is_weak:
        response.set_etag(etag, weak=True)
