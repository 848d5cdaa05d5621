"""Files that a browser stores and never shows as a page."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

from flask import Response

from portal.http import context
from portal.services.answers import exporting


def conversation_file(conversation_id: UUID) -> Response:
    """Return a conversation as Markdown, in the reader's language. Raises NotFound."""
    file = exporting.export_markdown(*context.caller(), conversation_id, context.language())
    response = Response(file.text, mimetype="text/markdown")
    name = quote(file.name, safe="")
    response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{name}"
    return response
