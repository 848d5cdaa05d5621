"""Sources that folders are synchronised with."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, Field

from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.documents.sources import (
    MAX_ADDRESS_CHARACTERS,
    MAX_EVERY_MINUTES,
    MAX_LISTED,
    MAX_RUNS_KEPT,
    MIN_EVERY_MINUTES,
    Change,
    SyncRun,
)
from portal.errors import existing
from portal.http import context
from portal.http.messages import failure_message
from portal.services.documents.sources import folder_sources
from portal.services.documents.sources.registry import KINDS

blueprint = ApiBlueprint(
    "folder_sources_api",
    __name__,
    url_prefix="/api/folders/<uuid:folder_id>/source",
    tag={"name": "Folders", "description": "The tree of folders that contain documents."},
)


class SourceBody(RequestModel):
    kind: str = Field(
        "directory",
        description="`directory` on the server, `pages`: a list of web pages, `sitemap`, or `feed`",
        json_schema_extra={"enum": list(KINDS)},
    )
    address: CleanText = Field(
        min_length=1,
        max_length=MAX_ADDRESS_CHARACTERS,
        description="a directory that the operator allows, or one below it; addresses of "
        "pages, one per line; the address of a sitemap or a feed",
        examples=["/srv/documents/contracts"],
    )
    every_minutes: int = Field(60, ge=MIN_EVERY_MINUTES, le=MAX_EVERY_MINUTES)


class ListedChangeModel(ResponseModel):
    change: Change
    path: str = Field(examples=["2026/合同.pdf"])
    reason: str | None = Field(description="why it was refused", examples=[None])


class RunModel(ResponseModel):
    added: int
    changed: int
    removed: int
    refused: int
    listed: list[ListedChangeModel] = Field(description=f"the first {MAX_LISTED} of each kind")
    error: str | None = Field(
        description="why the source could not be read; nothing was removed", examples=[None]
    )


class PastRunModel(RunModel):
    ran_at: AwareDatetime


class SourceModel(ResponseModel):
    kind: str = Field(examples=["directory"])
    address: str = Field(examples=["/srv/documents/contracts"])
    every_minutes: int
    owner: str = Field(description="owner of the documents")
    due_at: AwareDatetime = Field(description="time of the next run")
    last_run_at: AwareDatetime | None
    last_run: RunModel | None
    changes: list[PastRunModel] = Field(
        description=f"the last {MAX_RUNS_KEPT} runs that added, changed or removed something, "
        "newest first; refused files are counted, and listed of `last_run` alone"
    )


def _model(folder_id: UUID) -> SourceModel:
    source = existing(folder_sources.find_source(*context.caller(), folder_id))
    past, last = folder_sources.list_runs(*context.caller(), folder_id), source.last_run
    return SourceModel.of(
        source,
        owner=source.owner_name,
        last_run=RunModel.of(last, **_words(last)) if last else None,
        changes=[PastRunModel.of(one.run, ran_at=one.ran_at, **_words(one.run)) for one in past],
    )


def _words(run: SyncRun) -> dict[str, Any]:
    """Return the listed changes of a run and its error, in the reader's language."""
    listed = [
        ListedChangeModel(
            change=change.change,
            path=change.path,
            reason=failure_message(change.failure) if change.failure else None,
        )
        for change in run.listed
    ]
    return {"listed": listed, "error": failure_message(run.failure) if run.failure else None}


@blueprint.get("")
def get_source(folder_id: UUID) -> SourceModel:
    """Get the source of a folder.

    Includes the changes of the last runs. 404 for a folder without a source.
    """
    return _model(folder_id)


@blueprint.put("")
def set_source(folder_id: UUID, json_data: SourceBody) -> SourceModel:
    """Tie a folder to a source.

    A worker reads it at once and then on schedule: new files are added below the folder, changed
    files become new versions, removed files are moved to the trash. You own the documents.
    """
    folder_sources.set_source(
        *context.caller(),
        folder_id,
        kind=json_data.kind,
        address=json_data.address,
        every_minutes=json_data.every_minutes,
    )
    return _model(folder_id)


@blueprint.delete("")
def remove_source(folder_id: UUID) -> None:
    """Untie a folder from its source.

    The documents are kept.
    """
    folder_sources.remove_source(*context.caller(), folder_id)


@blueprint.post("/run", status_code=202)
def request_run(folder_id: UUID) -> SourceModel:
    """Read the source of a folder now.

    The next free worker reads it.
    """
    folder_sources.request_run(*context.caller(), folder_id)
    return _model(folder_id)
