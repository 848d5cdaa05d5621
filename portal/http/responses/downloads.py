"""Files that browsers download instead of showing them."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

from flask import Response

from portal.errors import InvalidInput, verbatim
from portal.http import context
from portal.services.answers import exporting
from portal.services.answers.exporting import ExportFormat


def conversation_file(conversation_id: UUID, file_format: str | None) -> Response:
    """Return a conversation in a format of ExportFormat, Markdown by default, in the reader's
    language. Raises NotFound, InvalidInput."""
    chosen = file_format or ExportFormat.MARKDOWN
    if chosen not in set(ExportFormat):
        raise InvalidInput(verbatim("format"))
    file = exporting.export(
        *context.caller(), conversation_id, context.language(), ExportFormat(chosen)
    )
    return as_download(Response(file.content, mimetype=file.media_type), file.name)


def as_download(response: Response, name: str) -> Response:
    """Make browsers download a response under this name."""
    response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return response
