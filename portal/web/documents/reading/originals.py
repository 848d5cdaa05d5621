"""Original files as responses that are safe to open."""

from __future__ import annotations

import codecs
from urllib.parse import quote

from flask import request
from markupsafe import escape
from werkzeug.wrappers import Response

from portal.domain.documents import MediaType
from portal.http import context
from portal.services.documents.library import StoredFile
from portal.services.documents.reading import rendering

# For the policy, PDF viewers are plugins: `object-src` allows them. Scripts stay blocked.
FILE_POLICY = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; sandbox"
# Web pages are shown without scripts, forms, or anything from other sites.
HTML_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox"
PDF_POLICY = "default-src 'self'; script-src 'none'; object-src 'self'; frame-ancestors 'none'"
_HTML = "text/html"
# The sandbox cannot load our style sheets. There is no `lang`, since the language is not known.
_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ max-width: 44rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.7 system-ui, sans-serif;
  overflow-wrap: break-word; }}
img {{ max-width: 100%; height: auto; }}
pre, code {{ font-family: ui-monospace, monospace; font-size: 0.9em; }}
pre {{ padding: 0.75rem 1rem; border: 1px solid #8888; border-radius: 6px; overflow-x: auto; }}
table {{ display: block; border-collapse: collapse; overflow-x: auto; }}
th, td {{ padding: 0.3rem 0.75rem; border: 1px solid #8888; text-align: start; }}
blockquote {{ margin-inline: 0; padding-inline-start: 1rem; border-inline-start: 3px solid #8888; }}
</style>
<body>
{body}
"""
_PAGES = {MediaType.HTML, MediaType.MARKDOWN}


def file_answer(stored: StoredFile, *, encoding: str | None) -> Response:
    """Return the response for an uploaded file; browsers show it inline if that is safe.

    Web pages and Markdown are rendered; with `source` in the address their source is shown.
    """
    is_download = "download" in request.args
    is_page = stored.media_type in _PAGES and "source" not in request.args and not is_download
    if is_page and stored.media_type is MediaType.MARKDOWN:
        return _render(stored, encoding)
    is_pdf, is_text = stored.media_type is MediaType.PDF, stored.media_type.has_encoding
    response = Response(stored.parts, direct_passthrough=True)
    shown_as = _HTML if is_page else "text/plain"
    response.headers["Content-Type"] = (
        f"{shown_as}; charset={_charset(encoding)}" if is_text else stored.media_type
    )
    response.headers["Content-Length"] = str(stored.size_bytes)
    kind = "inline" if (is_pdf or is_text) and not is_download else "attachment"
    response.headers["Content-Disposition"] = f"{kind}; filename*=UTF-8''{quote(stored.file_name)}"
    policy = HTML_POLICY if is_page else FILE_POLICY
    response.headers["Content-Security-Policy"] = PDF_POLICY if is_pdf else policy
    return response


def _render(stored: StoredFile, encoding: str | None) -> Response:
    body = rendering.render_markdown(context.services(), stored, encoding)
    response = Response(_PAGE.format(title=escape(stored.file_name), body=body), mimetype=_HTML)
    response.headers["Content-Security-Policy"] = HTML_POLICY
    return response


def _charset(encoding: str | None) -> str:
    try:
        return codecs.lookup(encoding or "utf-8").name.replace("utf-8-sig", "utf-8")
    except LookupError:
        return "utf-8"
