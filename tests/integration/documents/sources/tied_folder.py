"""A folder that is synchronised with a source, run by run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from sqlalchemy import select

from portal.domain.documents import DocumentFilter
from portal.domain.documents.jobs import JobStatus
from portal.domain.documents.sources import SyncRun
from portal.domain.people import User
from portal.services.documents import library
from portal.services.documents.ingestion import indexing
from portal.services.documents.sources import folder_sources, syncing
from portal.store.models import JobRow
from tests.conftest import Portal


@dataclass
class Tied:
    """A folder of mei's that follows a directory, or another kind of source."""

    portal: Portal
    top: Path
    mei: User
    folder: UUID

    def write(self, path: str, text: str) -> None:
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def tie(
        self,
        address: Path | str | None = None,
        user: User | None = None,
        *,
        kind: str = "directory",
    ) -> None:
        folder_sources.set_source(
            self.portal.services,
            user or self.mei,
            self.folder,
            kind=kind,
            address=str(address or self.top),
            every_minutes=60,
        )

    def run(self) -> SyncRun:
        folder_sources.request_run(self.portal.services, self.mei, self.folder)
        syncing.sync_due(self.portal.services)
        source = folder_sources.find_source(self.portal.services, self.mei, self.folder)
        assert source is not None
        assert source.last_run is not None
        return source.last_run

    def index(self) -> None:
        """Run all queued jobs."""
        with self.portal.services.database.begin() as session:
            queued = session.scalars(
                select(JobRow.id).where(JobRow.status == JobStatus.QUEUED.value)
            ).all()
        for job_id in queued:
            indexing.index_document(self.portal.services, job_id)

    def found(self) -> dict[str, UUID]:
        """Return the documents below the folder, by file name."""
        filters = DocumentFilter(folder_id=self.folder)
        page = library.list_documents(self.portal.services, self.mei, filters=filters)
        return {one.file_name: one.id for one in page.items}


def counts(run: SyncRun) -> tuple[int, int, int, int]:
    return run.added, run.changed, run.removed, run.refused
