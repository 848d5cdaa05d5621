"""Serve the revisions of a document: list, upload, compare, restore."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response

from portal.api.blueprint import ApiBlueprint
from portal.api.documents.knowledge import TAG, describe_files, file_response, uploaded_models
from portal.api.documents.schemas import revisions as schemas
from portal.api.documents.schemas.knowledge import UploadedModel
from portal.api.schemas import file_response_doc
from portal.domain.documents import MediaType
from portal.errors import N_, InvalidInput
from portal.http import context
from portal.http.incoming import sent_files, store_once
from portal.limits.bodies import accepts_files
from portal.services.documents.versions import revisions
from portal.text.likeness.differences import characters_changed
from portal.text.likeness.stretches import part_of

_PATH = "/documents/<uuid:document_id>/revisions"

blueprint = ApiBlueprint("revisions_api", __name__, url_prefix="/api/knowledge", tag=TAG)


def describe_upload(spec: dict[str, Any]) -> None:
    describe_files(spec, "/api/knowledge/documents/{document_id}/revisions", schemas.VERSION_BODY)


@blueprint.post(_PATH, status_code=202, errors=(404, 409))
@accepts_files
def add_revision(document_id: UUID) -> UploadedModel:
    """Upload a new version of a document.

    The current text is searched until the new one is ready and replaces it; it stays readable for
    its citations. A version that is still being read is superseded. `is_duplicate` means that the
    document already has this file and nothing was queued; if it is the current version, a pending
    one is withdrawn. 409 if another document of the owner has this file.
    """
    files = sent_files(N_("send the new version as multipart form data, in `file`"))
    if len(files) > 1:
        raise InvalidInput("a version is a single file")

    def store() -> dict[str, Any]:
        receipt = revisions.add_version(*context.caller(), document_id, files[0])
        (model,) = uploaded_models([receipt])
        return model.model_dump(mode="json")

    answer = store_once(store, files, "revision", str(document_id))
    return UploadedModel.model_validate(answer)


@blueprint.get(_PATH, errors=(404,))
def list_revisions(
    document_id: UUID, query_data: schemas.RevisionQuery
) -> schemas.RevisionListResponse:
    """List the revisions of a document.

    Lists all texts that are or were searched, with the files they were read from.
    """
    page = revisions.list_revisions(
        *context.caller(), document_id, cursor=query_data.cursor, limit=query_data.limit
    )
    shown = [schemas.RevisionModel.of(item, bytes=item.size_bytes) for item in page.items]
    return schemas.RevisionListResponse.of(page, revisions=shown)


@blueprint.delete(f"{_PATH}/unread", errors=(404, 409))
def discard_unread(document_id: UUID) -> None:
    """Discard a version that could not be read.

    Erases a new version that failed or was cancelled, with its file; 409 if there is none.
    """
    revisions.discard_unread(*context.caller(), document_id)


@blueprint.get(f"{_PATH}/<int:number>/content", errors=(404,))
def get_revision_content(document_id: UUID, number: int) -> schemas.RevisionContentResponse:
    """Get the text of a revision."""
    revision, text = revisions.read_text(*context.caller(), document_id, number)
    return schemas.RevisionContentResponse(
        id=document_id, revision_id=revision.id, number=revision.number, text=text
    )


@blueprint.get(
    f"{_PATH}/<int:number>/file",
    responses=file_response_doc("the file as it was uploaded", *MediaType),
    errors=(404,),
)
def get_revision_file(document_id: UUID, number: int) -> Response:
    """Download the file of a revision."""
    return file_response(revisions.open_file(*context.caller(), document_id, number))


@blueprint.get(f"{_PATH}/<int:number>/differences", errors=(404, 413))
def get_differences(
    document_id: UUID, number: int, query_data: schemas.DifferencesQuery
) -> schemas.DifferencesResponse:
    """Compare two revisions.

    Compares lines, and words within changed lines; text far from any change is `folded`. Long
    differences are returned in parts. 413 if the texts are too long to compare, 503 while others
    are being compared.
    """
    compared = revisions.compare(*context.caller(), document_id, number, against=query_data.against)
    added, removed = characters_changed(compared.pieces)
    part = part_of(compared.pieces, query_data.part)
    return schemas.DifferencesResponse.of(
        part,
        number=compared.revision.number,
        against=compared.against.number,
        characters_added=added,
        characters_removed=removed,
        part=part.number,
        part_count=part.count,
    )
