"""The connector and manager that callers written for Chroma use, on the portal's database.

::

    store = VectorstoreConnector(config).get_vectorstore()

    manager = VectorStoreManager(config=config, data_path="data")
    manager.update_vectorstore()
    collection = manager.fetch_collection()
    collection.count()

For the collection `portal`, the portal's own documents, both return the read-only
`PortalVectorStore` of a user.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog

from portal.domain.documents import ExtractedText, MediaType
from portal.domain.people import User
from portal.errors import PortalError
from portal.ingest.chunking import TARGET_TOKENS, split
from portal.ingest.extraction import extract
from portal.ingest.limits import FileToRead
from portal.ingest.media_types import HEAD_BYTES, sniff
from portal.integrations.connection import Connection
from portal.integrations.langchain import PortalVectorStore, PostgresVectorStore
from portal.integrations.langchain.portal_store import READ_ONLY
from portal.services.documents.intake.finding_files import find_files
from portal.store.documents.selection import PORTAL_COLLECTION

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_DEFAULT_COLLECTION = "default_collection"
_CHARACTERS_A_TOKEN = 4

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Config:
    """What the older configuration says of its store, with its defaults."""

    collection_name: str
    distance: str
    embeddings: Embeddings | None
    reset: bool
    chunk_tokens: int
    data_path: Path | None
    user: str | None

    @classmethod
    def of(cls, config: Mapping[str, Any] | None) -> _Config:
        whole = config or {}
        own = whole.get("data_manager") or (whole.get("utils") or {}).get("data_manager") or whole
        name = str(own.get("collection_name") or _DEFAULT_COLLECTION)
        is_portal = name == PORTAL_COLLECTION
        model = own.get("embedding_name")
        characters = own.get("chunk_size")
        data_path = (whole.get("global") or {}).get("DATA_PATH")
        return cls(
            # The older system keeps a collection a model. The portal's own has the portal's model.
            collection_name=f"{name}_with_{model}" if model and not is_portal else name,
            distance=str(own.get("distance_metric") or "cosine"),
            embeddings=_embeddings(own, model),
            reset=bool(own.get("reset_collection")),
            chunk_tokens=int(characters) // _CHARACTERS_A_TOKEN if characters else TARGET_TOKENS,
            data_path=Path(data_path) if data_path else None,
            user=own.get("user"),
        )


def _embeddings(own: Mapping[str, Any], model: Any) -> Embeddings | None:
    """Create the model of `embedding_class_map` if it holds a class rather than a name."""
    entry = (own.get("embedding_class_map") or {}).get(model) or {}
    made = entry.get("class") or entry.get("class_")
    if not callable(made):
        return None
    embeddings: Embeddings = made(**(entry.get("kwargs") or {}))
    return embeddings


class _Connected:
    def __init__(
        self,
        config: Mapping[str, Any] | None,
        embedding_function: Embeddings | None,
        connection: Connection | None,
        user: str | User | None,
        conversation: UUID | str | None,
    ) -> None:
        self._config = _Config.of(config)
        self._embeddings = embedding_function or self._config.embeddings
        self._connection = connection
        self._user = user or self._config.user
        self._conversation = conversation

    @property
    def collection_name(self) -> str:
        return self._config.collection_name

    def _open(self) -> PostgresVectorStore | PortalVectorStore:
        if self.collection_name != PORTAL_COLLECTION:
            return self._store()
        if self._user is None:
            raise ValueError(
                "the collection “portal” is read for a user: pass `user`, or name one in the "
                "configuration"
            )
        return PortalVectorStore(self._user, self._conversation, connection=self._connection)

    def _store(self) -> PostgresVectorStore:
        return PostgresVectorStore(
            self.collection_name,
            self._embeddings,
            collection_metadata={"hnsw:space": self._config.distance},
            connection=self._connection,
        )


class VectorstoreConnector(_Connected):
    """Connects to the collection that a configuration names."""

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        embedding_function: Embeddings | None = None,
        connection: Connection | None = None,
        user: str | User | None = None,
        conversation: UUID | str | None = None,
    ) -> None:
        super().__init__(config, embedding_function, connection, user, conversation)

    def get_vectorstore(self) -> PostgresVectorStore | PortalVectorStore:
        """Return the store. Raises ValueError for the collection `portal` without a user."""
        return self._open()


class VectorStoreManager(_Connected):
    """Keeps the collection up to date with a folder of files."""

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        global_config: Mapping[str, Any] | None = None,
        data_path: str | Path | None = None,
        embedding_function: Embeddings | None = None,
        connection: Connection | None = None,
        user: str | User | None = None,
        conversation: UUID | str | None = None,
    ) -> None:
        """Use the configuration's DATA_PATH unless `data_path` is given."""
        whole = dict(config or {})
        if global_config is not None:
            whole["global"] = global_config
        super().__init__(whole, embedding_function, connection, user, conversation)
        self.data_path = Path(data_path) if data_path is not None else self._config.data_path

    def delete_existing_collection_if_reset(self) -> None:
        """Empty the collection if the configuration says `reset_collection`."""
        if self._config.reset:
            self._open().reset_collection()

    def fetch_collection(self) -> PostgresVectorStore | PortalVectorStore:
        """Return the collection, with the methods of Chroma's collections that callers use."""
        return self._open()

    def update_vectorstore(self) -> None:
        """Update the collection from the folder, a file at a time: delete the chunks of files that
        are gone or have changed, and read, embed and store new files.

        Unreadable files are logged and skipped. Records that did not come from the folder stay.
        Raises NotImplementedError for the collection `portal`, which `portal import` fills.
        """
        if self.data_path is None:
            raise ValueError("update_vectorstore needs a folder: data_path")
        if self.collection_name == PORTAL_COLLECTION:
            raise NotImplementedError(READ_ONLY)
        folder, collection = self.data_path.resolve(), self._store()
        present = {_sha256(path): path for path in find_files([folder])}
        stored = _hashes_of(collection, folder)
        for resource_hash in sorted(stored - set(present)):
            collection.delete(where={"resource_hash": resource_hash})
        for resource_hash in sorted(set(present) - stored):
            self._add_file(collection, present[resource_hash], resource_hash)
        log.info(
            "vector store is in step",
            collection=self.collection_name,
            records=collection.count(),
            files=len(present),
        )

    def _add_file(self, collection: PostgresVectorStore, path: Path, resource_hash: str) -> None:
        try:
            with path.open("rb") as file:
                media_type = sniff(file.read(HEAD_BYTES), path.name)
            text = _extracted(path, media_type)
        except (OSError, PortalError) as error:
            log.warning("file was passed over", file=path.name, reason=type(error).__name__)
            return
        chunks = split(text, target_tokens=self._config.chunk_tokens)
        common = {"resource_hash": resource_hash, "filename": path.name, "source": str(path)}
        collection.add_texts(
            [chunk.content for chunk in chunks],
            [common | {"chunk_index": chunk.index} for chunk in chunks],
            [f"{resource_hash}-{chunk.index}" for chunk in chunks],
        )


def _extracted(path: Path, media_type: MediaType) -> ExtractedText:
    """Extract the text of a copy: readers leave files beside theirs for a while."""
    with tempfile.TemporaryDirectory(prefix="portal-") as directory:
        copy = Path(shutil.copyfile(path, Path(directory) / "original"))
        return extract(FileToRead(copy, path.name), media_type)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hashes_of(collection: PostgresVectorStore, folder: Path) -> set[str]:
    """Return the hashes of the folder's files that have chunks in the collection."""
    metadatas = collection.get(include=["metadatas"])["metadatas"]
    return {
        metadata["resource_hash"]
        for metadata in metadatas
        if metadata and "resource_hash" in metadata and _is_in(metadata.get("source"), folder)
    }


def _is_in(source: Any, folder: Path) -> bool:
    return isinstance(source, str) and Path(source).is_relative_to(folder)
