"""The connector and manager of programs written for Chroma, on the portal's database.

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
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import structlog

from portal.domain.documents import ExtractedText
from portal.domain.documents.sources import Opened, Source, SourceItem, Unchanged
from portal.domain.people import User
from portal.errors import PageGone, PortalError, SourceUnavailable
from portal.ingest.chunking import TARGET_TOKENS, split
from portal.ingest.extraction import extract
from portal.ingest.limits import FileToRead
from portal.ingest.media_types import HEAD_BYTES, sniff
from portal.integrations.connection import Connection, open_services
from portal.integrations.langchain import PortalVectorStore, PostgresVectorStore
from portal.integrations.langchain.portal_store import READ_ONLY
from portal.services.documents.sources.directory import Directory
from portal.services.documents.sources.registry import open_source
from portal.services.documents.sources.syncing import source_context
from portal.store.documents.selection import PORTAL_COLLECTION

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_DEFAULT_COLLECTION = "default_collection"
_CHARACTERS_A_TOKEN = 4

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Config:
    """The values for the store in the older configuration, with their defaults."""

    collection_name: str
    distance: str
    embeddings: Embeddings | None
    reset: bool
    chunk_tokens: int
    data_path: Path | None
    user: str | None
    sources: tuple[tuple[str, str], ...]

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
            # The older system has one collection per model; `portal` uses the portal's model.
            collection_name=f"{name}_with_{model}" if model and not is_portal else name,
            distance=str(own.get("distance_metric") or "cosine"),
            embeddings=_embeddings(own, model),
            reset=bool(own.get("reset_collection")),
            chunk_tokens=int(characters) // _CHARACTERS_A_TOKEN if characters else TARGET_TOKENS,
            data_path=Path(data_path) if data_path else None,
            user=own.get("user"),
            sources=tuple(
                (source["kind"], source["address"]) for source in own.get("follow") or ()
            ),
        )


def _embeddings(own: Mapping[str, Any], model: Any) -> Embeddings | None:
    """Create the model of `embedding_class_map` if that contains a class rather than a name."""
    entry = (own.get("embedding_class_map") or {}).get(model) or {}
    made = entry.get("class") or entry.get("class_")
    if not callable(made):
        return None
    embeddings: Embeddings = made(**(entry.get("kwargs") or {}))
    return embeddings


class _ConfiguredStore:
    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        embedding_function: Embeddings | None = None,
        connection: Connection | None = None,
        user: str | User | None = None,
        conversation: UUID | str | None = None,
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


class VectorstoreConnector(_ConfiguredStore):
    """Connects to the collection that a configuration names."""

    def get_vectorstore(self) -> PostgresVectorStore | PortalVectorStore:
        """Return the store. Raises ValueError for the collection `portal` without a user."""
        return self._open()


class VectorStoreManager(_ConfiguredStore):
    """Keeps the collection up to date with a folder of files."""

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        global_config: Mapping[str, Any] | None = None,
        data_path: str | Path | None = None,
        **options: Any,
    ) -> None:
        """Accept the arguments of a connector, a `global_config` that replaces that of the
        configuration, and a `data_path` that replaces its DATA_PATH."""
        whole = dict(config or {})
        if global_config is not None:
            whole["global"] = global_config
        super().__init__(whole, **options)
        self.data_path = Path(data_path) if data_path is not None else self._config.data_path

    def delete_existing_collection_if_reset(self) -> None:
        """Empty the collection if the configuration has `reset_collection`."""
        if self._config.reset:
            self._open().reset_collection()

    def fetch_collection(self) -> PostgresVectorStore | PortalVectorStore:
        """Return the collection, with the methods of Chroma collections that callers use."""
        return self._open()

    def update_vectorstore(self) -> None:
        """Update the collection from the folder and the sources of the configuration, a file at a
        time: delete the chunks of files that are gone or have changed, and read, embed and store
        new files.

        Unreadable files and sources are logged and skipped. Records from elsewhere are kept. Raises
        NotImplementedError for the collection `portal`, which `portal import` fills, and ValueError
        without a folder or sources.
        """
        if self.collection_name == PORTAL_COLLECTION:
            raise NotImplementedError(READ_ONLY)
        if self.data_path is None and not self._config.sources:
            raise ValueError("update_vectorstore needs a folder or sources: data_path")
        collection = self._store()
        if self.data_path is not None:
            folder = self.data_path.resolve()
            self._follow(collection, _Followed(Directory(folder), folder))
        for kind, address in self._config.sources:
            # Sources are limited to what the operator of this machine allows.
            allowed = source_context(open_services(self._connection))
            source = open_source(allowed, kind, address)
            self._follow(collection, _Followed(source, address))
        log.info(
            "vector store is in sync", collection=self.collection_name, records=collection.count()
        )

    def _follow(self, collection: PostgresVectorStore, followed: _Followed) -> None:
        try:
            listing = followed.source.list_items()
        except SourceUnavailable as error:
            log.warning("source was skipped", source=str(followed.origin), reason=str(error))
            return
        records = followed.records_of(collection)
        by_location = {record.location: record for record in records.values()}
        present: set[str] = set()
        gone: set[str] = set()
        for item in listing.items:
            known = by_location.get(followed.location(item.path))
            resource_hash = self._add_new(collection, followed, item, known, set(records) | present)
            if resource_hash is not None:
                present.add(resource_hash)
            if known is not None and resource_hash != known.resource_hash:
                # A file without a hash could not be read: its chunks are kept.
                (present if resource_hash is None else gone).add(known.resource_hash)
        if listing.is_complete:
            unknown = [*listing.unreadable, *(path for path, _ in listing.refused)]
            locations = tuple(followed.location(path) for path in unknown)
            gone |= {
                record.resource_hash
                for record in records.values()
                if not (locations and record.location.startswith(locations))
            }
        for resource_hash in sorted(gone - present):
            collection.delete(where={"resource_hash": resource_hash})

    def _add_new(
        self,
        collection: PostgresVectorStore,
        followed: _Followed,
        item: SourceItem,
        known: _Record | None,
        stored: set[str],
    ) -> str | None:
        """Add a file unless it is stored already. Return its hash; None if it cannot be read, an
        empty string if the source has removed it."""
        try:
            with (
                tempfile.TemporaryDirectory(prefix="portal-") as directory,
                followed.source.open(item, known.stamp if known else None) as opened,
            ):
                if isinstance(opened, Unchanged):
                    return known.resource_hash if known else None
                # Read a copy, since readers leave files beside the original for a while.
                copy = Path(directory) / "original"
                with copy.open("wb") as file:
                    shutil.copyfileobj(opened.stream, file)
                resource_hash = _sha256(copy)
                if resource_hash not in stored:
                    text = _extract(copy, opened.file_name)
                    self._add(collection, text, resource_hash, followed.metadata(item, opened))
                return resource_hash
        except PageGone:
            return ""
        except (OSError, PortalError) as error:
            log.warning("file was skipped", file=item.path, reason=type(error).__name__)
            return None

    def _add(
        self,
        collection: PostgresVectorStore,
        text: ExtractedText,
        resource_hash: str,
        metadata: dict[str, str],
    ) -> None:
        chunks = split(text, target_tokens=self._config.chunk_tokens)
        common = {"resource_hash": resource_hash, **metadata}
        collection.add_texts(
            [chunk.content for chunk in chunks],
            [common | {"chunk_index": chunk.index} for chunk in chunks],
            [f"{resource_hash}-{chunk.index}" for chunk in chunks],
        )


class _Record(NamedTuple):
    """A file in the collection: its hash, its location, and its stamp."""

    resource_hash: str
    location: str
    stamp: str | None


@dataclass(frozen=True, slots=True)
class _Followed:
    """A source, and the origin of its records: a directory, or the address of a source on the
    web."""

    source: Source
    origin: Path | str

    def location(self, path: str) -> str:
        return str(self.origin / path) if isinstance(self.origin, Path) else path

    def metadata(self, item: SourceItem, opened: Opened) -> dict[str, str]:
        own = {
            "filename": opened.file_name,
            "source": self.location(item.path),
            "stamp": opened.stamp,
        }
        return own if isinstance(self.origin, Path) else own | {"origin": self.origin}

    def records_of(self, collection: PostgresVectorStore) -> dict[str, _Record]:
        """Return the files of this source in the collection, by hash."""
        metadatas = collection.get(include=["metadatas"])["metadatas"]
        found = (
            _Record(metadata["resource_hash"], metadata["source"], metadata.get("stamp"))
            for metadata in metadatas
            if metadata and "resource_hash" in metadata and isinstance(metadata.get("source"), str)
            if self._owns(metadata)
        )
        return {file_record.resource_hash: file_record for file_record in found}

    def _owns(self, metadata: Mapping[str, Any]) -> bool:
        if isinstance(self.origin, Path):
            return Path(metadata["source"]).is_relative_to(self.origin)
        return bool(metadata.get("origin") == self.origin)


def _extract(path: Path, name: str) -> ExtractedText:
    with path.open("rb") as file:
        media_type = sniff(file.read(HEAD_BYTES), name)
    return extract(FileToRead(path, name), media_type)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
