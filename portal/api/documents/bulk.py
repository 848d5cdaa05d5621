"""Change many documents at once."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import Field, StrictBool

from portal.api.blueprint import ApiBlueprint
from portal.api.documents.schemas.knowledge import DocumentFilters
from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.documents import Visibility
from portal.domain.documents.bulk import MAX_BULK_IDS, BulkAction, BulkTarget
from portal.errors import InvalidInput
from portal.http import context
from portal.services.documents import bulk
from portal.text.titles import MAX_DOMAIN_CHARACTERS, MAX_TAG_CHARACTERS

_TAG = {"name": "Bulk changes", "description": "Change many documents at once."}

blueprint = ApiBlueprint("bulk_api", __name__, url_prefix="/api/knowledge/bulk", tag=_TAG)


class BulkBody(RequestModel):
    action: BulkAction = Field(description="what to do", examples=[BulkAction.MOVE])
    # Not `max_length`: tools that read the schema would generate lists of that length.
    ids: list[UUID] | None = Field(None, description=f"ids of at most {MAX_BULK_IDS} documents")
    matching: DocumentFilters | None = Field(
        None, description="instead of `ids`: all documents that match", examples=[None]
    )
    folder_id: UUID | None = Field(None, description="for `move`; null moves them out of folders")
    tag: CleanText | None = Field(
        None, max_length=MAX_TAG_CHARACTERS, description="for `add_tag` and `remove_tag`"
    )
    domain: CleanText | None = Field(
        None, max_length=MAX_DOMAIN_CHARACTERS, description="for `domain`; null removes it"
    )
    visibility: Visibility | None = Field(None, description="for `visibility`")
    enabled: StrictBool | None = Field(
        None, description="for `switch`, for you only; null resets to the default"
    )

    def value(self) -> Any:
        return {
            BulkAction.MOVE: self.folder_id,
            BulkAction.ADD_TAG: self.tag,
            BulkAction.REMOVE_TAG: self.tag,
            BulkAction.DOMAIN: self.domain,
            BulkAction.VISIBILITY: self.visibility,
            BulkAction.SWITCH: self.enabled,
        }.get(self.action)


class SkippedModel(ResponseModel):
    id: UUID
    title: str
    reason: str = Field(description="error code", examples=["forbidden"])


class BulkResultModel(ResponseModel):
    change_id: UUID | None = Field(
        description="id for undoing the change within a day; null if there is nothing to undo"
    )
    changed_count: int = Field(description="excludes documents that needed no change")
    skipped: list[SkippedModel] = Field(description="the first 100 that could not be changed")
    skipped_count: int
    missing_count: int = Field(description="ids that do not exist or that you may not see")


class UndoneModel(ResponseModel):
    changed_count: int


@blueprint.post("", errors=(404,))
def apply(json_data: BulkBody) -> BulkResultModel:
    """Change many documents.

    Changes the documents with these `ids`, or all that match, in one statement. Documents that you
    may not change are skipped and listed. `read_again` accepts at most 1,000 failed documents.
    """
    if (json_data.ids is None) == (json_data.matching is None):
        raise InvalidInput("provide either ids or matching, not both")
    if json_data.matching is not None:
        target = BulkTarget(None, json_data.matching.filters())
    else:
        target = BulkTarget(tuple(json_data.ids or ()))
    if target.ids is not None and len(target.ids) > MAX_BULK_IDS:
        raise InvalidInput("select 1 to %(max)s documents, or all that match", max=MAX_BULK_IDS)
    done = bulk.apply(*context.caller(), target, json_data.action, json_data.value())
    return BulkResultModel.of(done)


@blueprint.post("/<uuid:change_id>/undo")
def undo(change_id: UUID) -> UndoneModel:
    """Undo a change to many documents.

    Skips documents that you may no longer change or that were changed since. Possible once, within
    a day.
    """
    return UndoneModel(changed_count=bulk.undo(*context.caller(), change_id))
