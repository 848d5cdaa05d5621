"""Read collections of a Chroma directory, a page of records at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from portal.domain.vector_collections import DISTANCES, Distance
from portal.integrations.chroma.client import DATABASE_FILE, Client

COLLECTION_PAGE = 100
# Chroma skips to an offset record by record. With large pages of ids, and records read by id, the
# time grows linearly with the number of records, not quadratically.
ID_PAGE = 20_000
MAX_UNREADABLE = 200
"""An index is broken after this many records without a readable vector and none with one."""

_DEFAULT: Distance = "l2"
_INCLUDED = ["metadatas", "documents", "embeddings", "uris"]


@dataclass(frozen=True, slots=True)
class ChromaRecord:
    """A record of Chroma; `vector` is None if it has no readable one."""

    id: str
    document: str | None = None
    metadata: Mapping[str, Any] | None = None
    vector: Any = None
    uri: str | None = None


class Unreadable(Exception):
    """Chroma cannot read part of a collection, and says why."""


class BrokenIndex(Exception):
    """No vector of a collection can be read."""


class Source(Protocol):
    """The methods of `chromadb.Collection` that reading needs."""

    @property
    def name(self) -> str: ...
    @property
    def metadata(self) -> dict[str, Any] | None: ...
    @property
    def configuration_json(self) -> dict[str, Any]: ...
    def count(self) -> int: ...
    def get(
        self,
        ids: Any = None,
        where: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        where_document: Any = None,
        include: Any = (),
    ) -> Any: ...


def list_collections(client: Client) -> list[Source]:
    """Return all collections of the client's database, by name."""
    found: list[Source] = []
    while page := client.list_collections(limit=COLLECTION_PAGE, offset=len(found)):
        found += page
    return sorted(found, key=lambda one: one.name)


def distance_of(
    metadata: Mapping[str, Any] | None, configuration: Mapping[str, Any] | None
) -> Distance:
    """Return the distance of a collection. Raises ValueError for an unknown one.

    Chroma before 1.0 stored it in the metadata and always had l2 in the configuration, so l2 in the
    configuration counts only if the metadata has no distance.
    """
    of_index = (configuration or {}).get("hnsw") or (configuration or {}).get("spann") or {}
    configured = of_index.get("space") or _DEFAULT
    in_metadata = (metadata or {}).get("hnsw:space")
    space = in_metadata if in_metadata is not None and configured == _DEFAULT else configured
    if space not in DISTANCES:
        raise ValueError(f"distances here are {', '.join(DISTANCES)}, not {space!r}")
    return cast("Distance", space)


@dataclass(frozen=True, slots=True)
class Tenancy:
    """A tenant and a database in a directory, by default those of Chroma."""

    tenant: str = "default_tenant"
    database: str = "default_database"

    def __str__(self) -> str:
        return f"the database {self.database} of {self.tenant}"


def other_databases(directory: Path, tenancy: Tenancy) -> list[str]:
    """Describe the directory's other databases."""
    with closing(sqlite3.connect(directory / DATABASE_FILE)) as connection:
        rows = connection.execute(_DATABASES).fetchall()
    found = {Tenancy(tenant, database): count for tenant, database, count in rows}
    found.pop(tenancy, None)
    return [f"{count} collections in {other}" for other, count in found.items()]


_DATABASES = """
    SELECT d.tenant_id, d.name, count(*) FROM collections c
    JOIN databases d ON d.id = c.database_id GROUP BY 1, 2 ORDER BY 1, 2
"""


@dataclass(slots=True)
class Reader:
    """Reads records in insertion order; the collection must not change meanwhile."""

    source: Source
    batch_size: int
    id_page: int = ID_PAGE
    _unreadable: int = field(default=0, init=False)
    _readable: int = field(default=0, init=False)

    def count(self) -> int:
        with _translate_errors():
            return self.source.count()

    def ids(self) -> Iterator[list[str]]:
        """Yield the ids of all records in batches. Raises Unreadable."""
        offset = 0
        while page := self._get(limit=self.id_page, offset=offset, include=[])["ids"]:
            offset += len(page)
            for start in range(0, len(page), self.batch_size):
                yield page[start : start + self.batch_size]

    def batches(self) -> Iterator[list[ChromaRecord]]:
        """Yield all records in batches. Raises Unreadable."""
        for ids in self.ids():
            by_id = {record.id: record for record in self._read(ids)}
            # A record that is listed but not returned counts as one without a vector.
            yield [by_id.get(record_id, ChromaRecord(record_id)) for record_id in ids]

    def _read(self, ids: Sequence[str]) -> list[ChromaRecord]:
        """Return records by ids. An unreadable vector fails the whole batch, so the batch is halved
        until the vector is found."""
        try:
            found = _records(self._get(ids=list(ids), include=_INCLUDED))
        except Unreadable as error:
            if len(ids) == 1:
                self._give_up_if_all(error)
                without = [one for one in _INCLUDED if one != "embeddings"]
                return _records(self._get(ids=list(ids), include=without))
            half = len(ids) // 2
            return self._read(ids[:half]) + self._read(ids[half:])
        self._readable += len(found)
        return found

    def _give_up_if_all(self, error: Unreadable) -> None:
        self._unreadable += 1
        if self._unreadable >= MAX_UNREADABLE and not self._readable:
            raise BrokenIndex(f"Chroma reads none of its vectors: {error}") from error

    def _get(self, **query: Any) -> Any:
        with _translate_errors():
            return self.source.get(**query)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise Unreadable for any error: Chroma's have no common class but Exception."""
    try:
        yield
    except Exception as error:
        raise Unreadable(str(error)) from error


def _records(found: Mapping[str, Any]) -> list[ChromaRecord]:
    ids = found["ids"]
    names = ("documents", "metadatas", "embeddings", "uris")
    columns = [[None] * len(ids) if found.get(name) is None else found[name] for name in names]
    return [ChromaRecord(*values) for values in zip(ids, *columns, strict=True)]
