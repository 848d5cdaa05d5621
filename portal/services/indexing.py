"""Indexing: from a stored file to searchable passages, in steps that can be repeated.

The text becomes an immutable revision, its passages are embedded and stored in batches, and one
update makes them searchable. Whatever is interrupted goes on where it stopped; until the last
step nothing of it is in any search.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from portal.domain.documents import (
    DocumentStatus,
    ExtractedText,
    Failure,
    Heading,
    MediaType,
    Page,
    Passage,
)
from portal.domain.embedding import Vector
from portal.errors import EmptyFile, PortalError, Unavailable
from portal.ingest.chunking import split
from portal.ingest.extraction import ExtractionLimits, extract
from portal.services import Services, models
from portal.store import chunks as chunk_store
from portal.store import documents as document_store
from portal.store import embedding_models, vocabulary
from portal.store import files as file_store
from portal.store import jobs as job_store
from portal.store.embedding_models import RegisteredModel
from portal.store.models import DocumentRevisionRow
from portal.text.analyser import ANALYSER_VERSION, index_terms
from portal.text.language import detect_language
from portal.text.scripts import has_visible_text

MAX_ATTEMPTS = 3
# A file that kills its worker each time would otherwise come back for ever.
MAX_STARTS = 20
_GIVEN_UP = Failure(PortalError.code)
_BATCH_PASSAGES = 16


@dataclass(frozen=True, slots=True)
class _Work:
    job_id: UUID
    document_id: UUID
    collection_id: UUID
    file_id: UUID | None
    revision_id: UUID | None
    title: str
    file_name: str
    media_type: MediaType


class Interrupted(Exception):
    """The job stopped between two batches; what it stored is kept."""


class JobGone(Exception):
    """The job has nothing left to do."""


def index_document(
    services: Services, job_id: UUID, *, should_stop: Callable[[], bool] = lambda: False
) -> None:
    """Do one ingestion job to its end: the document is ready, or failed with a reason.

    Raises Unavailable (try again later) while attempts remain, Interrupted when `should_stop`
    says so; any other failure is recorded.
    """
    try:
        work = _start(services, job_id)
        if work is None:
            return
        extracted = _extracted(services, work)
        passages = split(extracted, target_tokens=services.settings.ingest.chunk_tokens)
        _store_passages(services, work, passages, should_stop)
        _publish(services, work)
    except JobGone:
        return
    except Unavailable as error:
        if _attempts(services, job_id) < MAX_ATTEMPTS:
            raise
        record_failure(services, job_id, error)
    except PortalError as error:
        record_failure(services, job_id, error)


def _start(services: Services, job_id: UUID) -> _Work | None:
    """Take the job up; None when it is done or its document is gone."""
    with services.database.begin() as session:
        job = job_store.lock_job(session, job_id)
        if job is None or job.status not in {"queued", "processing"}:
            return None
        document = document_store.get_document(session, job.document_id)
        if job.attempts >= MAX_STARTS:
            job_store.finish(session, job_id, status="failed", failure=_GIVEN_UP)
            document_store.set_status(session, job.document_id, DocumentStatus.FAILED, _GIVEN_UP)
            return None
        if document is None or document.purged_at is not None:
            job_store.finish(session, job_id, status="cancelled")
            return None
        job_store.start(session, job_id)
        if document.current_job_id is None:
            # A document that already has searchable text stays ready while new text is read.
            document_store.set_status(session, document.id, DocumentStatus.PROCESSING)
        return _Work(
            job_id=job_id,
            document_id=document.id,
            collection_id=document.collection_id,
            file_id=job.file_id,
            revision_id=job.revision_id,
            title=document.title,
            file_name=document.file_name,
            media_type=MediaType(document.media_type),
        )


def _attempts(services: Services, job_id: UUID) -> int:
    with services.database.begin() as session:
        job = job_store.lock_job(session, job_id)
        return job.attempts if job else MAX_ATTEMPTS


def _extracted(services: Services, work: _Work) -> ExtractedText:
    """The text of the job's file, from its revision when an earlier attempt got that far."""
    if work.revision_id is not None:
        with services.database.begin() as session:
            row = chunk_store.get_revision(session, work.revision_id)
            if row is not None:
                return _from_revision(row)
    _note(services, work, stage="reading", done=0, total=0)
    settings = services.settings.ingest
    limits = ExtractionLimits(
        max_pages=settings.max_pages,
        max_characters=settings.max_characters,
        timeout_s=settings.extraction_timeout_s,
        memory_mb=settings.extraction_memory_mb,
    )
    with tempfile.TemporaryDirectory(prefix="portal-") as directory:
        path = Path(directory) / "original"
        _copy_file(services, work, path)
        extracted = extract(
            path, file_name=work.file_name, media_type=work.media_type, limits=limits
        )
    if not has_visible_text(extracted.text):
        raise EmptyFile(name=work.file_name)
    digest = hashlib.sha256(extracted.text.encode()).hexdigest()
    with services.database.begin() as session:
        job = job_store.lock_job(session, work.job_id)
        if job is None:
            raise JobGone
        job.revision_id = chunk_store.add_revision(
            session,
            document_id=work.document_id,
            file_id=work.file_id,
            extracted=extracted,
            sha256=digest,
        )
    return extracted


def _from_revision(row: DocumentRevisionRow) -> ExtractedText:
    return ExtractedText(
        text=row.body,
        extractor=row.extractor,
        pages=tuple(Page(*page) for page in row.pages),
        headings=tuple(Heading(*heading) for heading in row.headings),
        encoding=row.encoding,
        warnings=tuple(row.warnings),
    )


def _copy_file(services: Services, work: _Work, path: Path) -> None:
    with services.database.begin() as session, path.open("wb") as copy:
        if work.file_id is None:
            raise JobGone
        for part in file_store.read_parts(session, work.file_id):
            copy.write(part)


def _store_passages(
    services: Services,
    work: _Work,
    passages: Sequence[Passage],
    should_stop: Callable[[], bool],
) -> None:
    """Embed and store passages in batches, each batch whole or not at all."""
    with services.database.begin() as session:
        stored = chunk_store.stored_indexes(session, work.job_id)
    todo = [passage for passage in passages if passage.index not in stored]
    done, total = len(passages) - len(todo), len(passages)
    for start in range(0, len(todo), _BATCH_PASSAGES):
        if should_stop():
            raise Interrupted
        batch = todo[start : start + _BATCH_PASSAGES]
        _store_batch(services, work, batch)
        done += len(batch)
        _note(services, work, stage="embedding", done=done, total=total)


def _store_batch(services: Services, work: _Work, batch: Sequence[Passage]) -> None:
    """Store passages with their vectors by every model that is kept. A model that was registered
    or began to serve meanwhile is embedded for before anything is stored."""
    texts = [passage.content for passage in batch]
    rows = [_chunk_row(work, passage) for passage in batch]
    vectors: dict[int, Vector | None] = {}
    while True:
        # Embedding is slow and must not hold a transaction open.
        vectors = models.embed_for_all(services, texts, vectors)
        with services.database.begin() as session:
            _require_job(job_store.lock_job(session, work.job_id) is not None)
            # In the trash nobody waits for it; restored, housekeeping queues it again.
            _require_job(not document_store.is_deleted(session, work.document_id))
            kept = embedding_models.hold_models(session)
            if not all(_is_embedded(model, vectors) for model in kept):
                continue
            chunk_ids = chunk_store.add_chunks(session, rows)
            vocabulary.add_words(
                session, [passage_text(work.title, p.heading, p.content) for p in batch]
            )
            for model in kept:
                own = vectors[model.id]
                if own is None:
                    embedding_models.set_complete(session, model, is_complete=False)
                else:
                    chunk_store.add_embeddings(
                        session,
                        model_id=model.id,
                        document_id=work.document_id,
                        job_id=work.job_id,
                        chunk_ids=chunk_ids,
                        vectors=own,
                    )
            return


def _is_embedded(model: RegisteredModel, vectors: Mapping[int, Vector | None]) -> bool:
    """Only the model that serves must have vectors; the others may fall behind."""
    if model.status == "active":
        return vectors.get(model.id) is not None
    return model.id in vectors


def _chunk_row(work: _Work, passage: Passage) -> dict[str, Any]:
    return {
        "job_id": work.job_id,
        "document_id": work.document_id,
        "collection_id": work.collection_id,
        "chunk_index": passage.index,
        "content": passage.content,
        "terms": passage_terms(work.title, passage.heading, passage.content),
        "analyser_version": ANALYSER_VERSION,
        "language": detect_language(passage.content),
        "page": passage.page,
        "heading": passage.heading,
        "char_start": passage.char_start,
        "char_end": passage.char_end,
    }


def passage_text(title: str, heading: str | None, content: str) -> str:
    """A passage with where it stands, so that asking for a document by its name finds it."""
    return "\n".join(part for part in (title, heading, content) if part)


def passage_terms(title: str, heading: str | None, content: str) -> str:
    """What the keyword index holds of a passage."""
    return index_terms(passage_text(title, heading, content))


def _require_job(exists: bool) -> None:
    if not exists:
        raise JobGone


def _publish(services: Services, work: _Work) -> None:
    """Make the whole ingestion searchable at once. A deleted document stays deleted."""
    with services.database.begin() as session:
        _require_job(job_store.lock_job(session, work.job_id) is not None)
        document_store.publish(session, document_id=work.document_id, job_id=work.job_id)
        job_store.finish(session, work.job_id, status="ready")


def hand_back(services: Services, job_id: UUID) -> None:
    """Queue an interrupted job again, for whichever worker comes next."""
    with services.database.begin() as session:
        job_store.enqueue(session, job_id)


def record_failure(services: Services, job_id: UUID, error: PortalError) -> None:
    """Mark job and document failed, with a reason that a person understands."""
    failure = Failure(error.code, error.params)
    with services.database.begin() as session:
        job = job_store.lock_job(session, job_id)
        if job is None:
            return
        job_store.finish(session, job_id, status="failed", failure=failure)
        document_store.set_status(session, job.document_id, DocumentStatus.FAILED, failure)


def _note(services: Services, work: _Work, *, stage: str, done: int, total: int) -> None:
    with services.database.begin() as session:
        job_store.note_progress(session, work.job_id, stage=stage, done=done, total=total)
