"""Identical text is embedded once, unless that would reveal a document the user may not see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.domain.people import User
from portal.services import Services
from portal.services.documents.ingestion import indexing
from portal.services.documents.intake.uploads import store_upload
from tests.conftest import Portal
from tests.factories.uploads import upload
from tests.integration.models.test_embed_batches import Counting

WORDS = "".join(f"Paragraph {n} tells of the harbour and its cranes.\n\n" for n in range(300))


def index(services: Services, words: str, user: User, **how: Visibility) -> None:
    receipt = store_upload(
        services, user, stream=upload(words), file_name=f"{len(words)}.txt", **how
    )
    indexing.index_document(services, receipt.document.job_id)


def test_words_are_embedded_once_for_those_who_may_see_them(portal: Portal) -> None:
    embedder, ada = Counting(), portal.user("ada")
    services = replace(portal.services, embedder=embedder)
    index(services, WORDS, ada, visibility=Visibility.PRIVATE)
    first = list(embedder.chunks)
    assert len(first) == len(set(first)) > 10
    embedder.chunks.clear()
    # A new edition of the user's own document: only the new text is embedded.
    index(services, WORDS + "A last word.", ada, visibility=Visibility.PRIVATE)
    assert len(embedder.chunks) <= 1
    embedder.chunks.clear()
    # A private document must not speed up another user's upload: timing would reveal it.
    index(services, WORDS, portal.user("eve"))
    assert embedder.chunks == first
    embedder.chunks.clear()
    index(services, WORDS, portal.admin)
    assert embedder.chunks == []
    with services.database.begin() as session:
        rows = session.execute(
            text(
                "SELECT c.content, e.embedding FROM document_chunks c"
                " JOIN chunk_embeddings e ON e.chunk_id = c.id"
            )
        ).all()
    assert len(rows) > 3 * len(first)
    expected = dict(zip(first, embedder.embed_chunks(first), strict=True))
    for content, stored in rows:
        if content in expected:
            assert np.allclose(np.fromstring(stored.strip("[]"), sep=","), expected[content])
