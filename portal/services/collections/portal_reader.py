"""Read the collection `portal` for a program, as one user sees it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from portal.domain.documents.selection import SelectionSource
from portal.domain.embedding import Embedder, Vector
from portal.domain.people import User
from portal.domain.search import SearchHit, SearchRequest
from portal.domain.search.metadata_filter import MetadataFilter
from portal.errors import EmbedderUnavailable, NoSuchAccount
from portal.services import Services
from portal.services.documents import private_reads
from portal.services.models import catalog
from portal.services.search import engine
from portal.store.answers import conversations
from portal.store.collections import portal_chunks
from portal.store.collections.portal_chunks import PortalChunk
from portal.store.documents import switches
from portal.store.embedding_models import registry
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.people import accounts
from portal.store.session import Session


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk that the user may read. `selected_by` is the tier that enabled its document; `hit`
    holds its scores when a search found it."""

    chunk: PortalChunk
    selected_by: SelectionSource
    hit: SearchHit | None = None


@dataclass(frozen=True, slots=True)
class PortalReader:
    """Reads as `user`. Every call loads the account again, so that a disabled user can read nothing
    more. Raises NoSuchAccount for such a user, NotFound for another user's conversation."""

    services: Services
    user: str | User
    conversation_id: UUID | None = None

    def search(self, request: SearchRequest) -> list[ReadChunk]:
        """Return what `engine.search` finds, best first, and raise what it raises."""
        user = self._load_user()
        request = replace(request, conversation_id=self.conversation_id)
        hits = engine.search(self.services, user, request).hits
        with self.services.database.read() as session:
            # Read again under the current selection, which may have changed since the search.
            found = self._chunks(session, user, [hit.chunk_id for hit in hits])
        return [replace(found[hit.chunk_id], hit=hit) for hit in hits if hit.chunk_id in found]

    def chunks(self, ids: Sequence[UUID]) -> dict[UUID, ReadChunk]:
        """Return the chunks of these ids that the user may read."""
        user = self._load_user()
        with self.services.database.read() as session:
            self._require_conversation(session, user)
            found = self._chunks(session, user, ids)
        self._record(user, found.values())
        return found

    def list_chunks(
        self, metadata: MetadataFilter | None, *, limit: int | None, offset: int
    ) -> list[ReadChunk]:
        """Return chunks in the order in which they were added."""
        user = self._load_user()
        with self.services.database.read() as session:
            self._require_conversation(session, user)
            listed = portal_chunks.list_chunks(
                session, user, self.conversation_id, metadata=metadata, limit=limit, offset=offset
            )
            found = self._with_selection(session, user, listed)
        self._record(user, found)
        return found

    def _record(self, user: User, found: Iterable[ReadChunk]) -> None:
        read = {one.chunk.document_id for one in found}
        private_reads.record(self.services, user, read, found=False)

    def count(self) -> int:
        user = self._load_user()
        with self.services.database.read() as session:
            self._require_conversation(session, user)
            return portal_chunks.count(session, user, self.conversation_id)

    def vectors(self, found: Sequence[ReadChunk]) -> dict[UUID, Vector]:
        """Return the vectors of chunks that a search found, as the active model made them."""
        with self.services.database.read() as session:
            model = _active_model(session)
            return portal_chunks.vectors(
                session, model, [read_chunk.chunk.id for read_chunk in found]
            )

    def embedder(self) -> Embedder:
        """Return the model that embeds the portal's documents. Raises EmbedderUnavailable."""
        with self.services.database.read() as session:
            model = _active_model(session)
        return catalog.loaded(self.services, model, is_urgent=True).embedder

    def _load_user(self) -> User:
        given = self.user
        with self.services.database.read() as session:
            if isinstance(given, str):
                given = accounts.to_user(accounts.get_user_by_name(session, given))
            user = accounts.with_current_rights(session, given)
        if user is None:
            raise NoSuchAccount(name=given.name)
        return user

    def _require_conversation(self, session: Session, user: User) -> None:
        if self.conversation_id is not None:
            conversations.require_own(session, self.conversation_id, user.id)

    def _chunks(self, session: Session, user: User, ids: Sequence[UUID]) -> dict[UUID, ReadChunk]:
        listed = portal_chunks.list_chunks(session, user, self.conversation_id, ids=ids)
        return {
            read_chunk.chunk.id: read_chunk
            for read_chunk in self._with_selection(session, user, listed)
        }

    def _with_selection(
        self, session: Session, user: User, chunks: Sequence[PortalChunk]
    ) -> list[ReadChunk]:
        documents = list({chunk.document_id for chunk in chunks})
        found = switches.find_switches(
            session, user, documents, conversation_id=self.conversation_id
        )
        return [
            ReadChunk(chunk, found[chunk.document_id].source)
            for chunk in chunks
            if chunk.document_id in found
        ]


def _active_model(session: Session) -> RegisteredModel:
    model = registry.find_active(session)
    if model is None:
        raise EmbedderUnavailable("the portal has not started yet")
    return model
