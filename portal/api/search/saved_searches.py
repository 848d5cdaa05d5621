"""Saved searches of the signed-in user."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.search.saved import MAX_NAME_CHARACTERS, MAX_VALUE_CHARACTERS, NAMES
from portal.http import context
from portal.services.search import saved

_TAG = {"name": "Saved searches", "description": "Searches that you have saved under a name."}
_Value = CleanText

blueprint = ApiBlueprint("saved_searches_api", __name__, url_prefix="/api/searches", tag=_TAG)


class SearchArguments(RequestModel):
    """A search, as in the address of its page."""

    q: _Value = Field(
        min_length=1, max_length=800, pattern=r"\S", description="the query", examples=["合同"]
    )
    mode: Literal["hybrid", "vector", "keyword"] | None = None
    folder: UUID | None = Field(None, description="a folder and everything below it")
    tag: _Value | None = Field(None, max_length=MAX_VALUE_CHARACTERS, examples=["2026"])
    type: _Value | None = Field(None, max_length=30, examples=["pdf"])
    owner: UUID | None = None
    domain: _Value | None = Field(None, max_length=MAX_VALUE_CHARACTERS)
    days: int | None = Field(None, ge=1, le=9999, description="uploaded in the last days")
    meta: _Value | None = Field(None, max_length=MAX_VALUE_CHARACTERS, examples=["year=2026"])
    fuzzy: Literal["1"] | None = None


class NewSearchBody(RequestModel):
    name: CleanText = Field(
        "",
        max_length=MAX_NAME_CHARACTERS,
        description="unique among your saved searches; empty for `q`",
    )
    arguments: SearchArguments


class SearchChangeBody(RequestModel):
    name: CleanText = Field(min_length=1, max_length=MAX_NAME_CHARACTERS, pattern=r"\S")


class SavedSearchModel(ResponseModel):
    id: UUID
    name: str = Field(examples=["新合同"])
    arguments: dict[str, str] = Field(
        description=f"any of {', '.join(NAMES)}", examples=[{"q": "合同"}]
    )
    created_at: AwareDatetime


class SavedSearchList(ResponseModel):
    searches: list[SavedSearchModel] = Field(description="by name")


@blueprint.get("")
def list_searches() -> SavedSearchList:
    """List your saved searches."""
    found = saved.list_saved(*context.caller())
    return SavedSearchList(searches=[SavedSearchModel.of(search) for search in found])


@blueprint.post("", status_code=201, errors=(409,))
def save_search(json_data: NewSearchBody) -> SavedSearchModel:
    """Save a search."""
    values = json_data.arguments.model_dump(mode="json", exclude_none=True)
    arguments = {name: str(value) for name, value in values.items()}
    return SavedSearchModel.of(saved.save(*context.caller(), json_data.name, arguments))


@blueprint.patch("/<uuid:search_id>", errors=(404, 409))
def rename_search(search_id: UUID, json_data: SearchChangeBody) -> SavedSearchModel:
    """Rename a saved search."""
    return SavedSearchModel.of(saved.rename(*context.caller(), search_id, json_data.name))


@blueprint.delete("/<uuid:search_id>", errors=(404,))
def delete_search(search_id: UUID) -> None:
    """Delete a saved search."""
    saved.delete(*context.caller(), search_id)
