"""Citations: the quoted text, whether it is unchanged, and the text around it."""

from __future__ import annotations

from uuid import UUID

from portal.domain.conversations import Citation, CitedIn, QuotedText, SourceState, Verification
from portal.domain.documents.structure import LaidOutText
from portal.domain.people import User
from portal.domain.search import Span
from portal.errors import NotFound, existing
from portal.services import Services
from portal.services.documents import library, private_reads
from portal.store.answers import citations as citation_store
from portal.store.session import Session

_AROUND = 1500


def get_citation(services: Services, user: User, citation_id: UUID) -> Citation:
    """Return a citation in one of the user's own conversations. Raises NotFound."""
    with services.database.begin() as session:
        return _own(session, user, citation_id)


def get_card(services: Services, user: User, citation_id: UUID) -> tuple[Citation, tuple[str, ...]]:
    """Return a citation like `get_citation`, with the header of the table that it quotes. The
    header is empty for other text, and for a document that the user may not open. Raises
    NotFound."""
    with services.database.begin() as session:
        citation = _own(session, user, citation_id)
        found = citation_store.read_around(session, citation, 0) if citation.can_open else None
    blocks = found[0].blocks if found else ()
    header = next((block.header for block in blocks if block.header), ())
    if header and citation.document_id is not None:
        # The header is more than the quotation, which is part of the user's own conversation.
        private_reads.record(services, user, [citation.document_id], found=False)
    return citation, header


def list_citations(
    services: Services, user: User, document_id: UUID, *, limit: int
) -> tuple[list[CitedIn], int]:
    """Return the newest citations of a document in the user's own conversations, and their total
    number. Raises NotFound for a document that the user may not see."""
    with services.database.begin() as session:
        library.require_visible(session, user, document_id)
        return citation_store.of_document(session, user, document_id, limit=limit)


def verify(services: Services, user: User, citation_id: UUID) -> Verification:
    """Verify by hash that the quoted words are still in the stored revision, or in the chunk that a
    program added. Raises NotFound."""
    with services.database.begin() as session:
        citation = _own(session, user, citation_id)
        found = citation_store.hash_in_source(session, citation)
    return Verification(
        citation_id=citation.id,
        stands=None if found is None else found == citation.quote_sha256,
        quote_sha256=citation.quote_sha256,
        found_sha256=found,
    )


def quoted_text(
    services: Services, user: User, citation_id: UUID, *, around: int = _AROUND
) -> QuotedText:
    """Return the quotation in the text that it was taken from, which later revisions do not change;
    without the text around it if the document is in another user's trash. Raises NotFound, also if
    that text was deleted."""
    with services.database.begin() as session:
        citation = _own(session, user, citation_id)
        if citation.state is SourceState.GONE:
            raise NotFound
        is_alone = citation.state is SourceState.TRASHED and not citation.can_restore
        found = None if is_alone else citation_store.read_around(session, citation, around)
    if found is not None and citation.document_id is not None:
        private_reads.record(services, user, [citation.document_id], found=False)
    if found is None:
        # Also for a chunk that a program added and has deleted.
        alone = LaidOutText(citation.excerpt)
        whole = Span(0, len(citation.excerpt))
        return QuotedText(citation, alone, whole, starts_text=True, ends_text=True)
    text, length = found
    start = min(citation.char_start, around)
    end = start + citation.char_end - citation.char_start
    # Start and end at line breaks if possible, so that no line or table row is cut.
    first, last = 0, len(text.content)
    starts_text = citation.char_start <= around
    ends_text = citation.char_end + around >= length
    if not starts_text:
        first = text.content.find("\n", 0, start // 2) + 1
    if not ends_text and (line_end := text.content.rfind("\n", (end + last) // 2)) > 0:
        last = line_end
    return QuotedText(
        citation=citation,
        text=text.between(first, last),
        span=Span(start - first, end - first),
        starts_text=starts_text,
        ends_text=ends_text,
    )


def _own(session: Session, user: User, citation_id: UUID) -> Citation:
    return existing(citation_store.find_citation(session, user, citation_id))
