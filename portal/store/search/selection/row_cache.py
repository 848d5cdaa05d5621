"""Data read from the chunks of a small selection, cached until their rows change."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar, cast

from cachetools import LRUCache
from sqlalchemy import TextClause

from portal.store.binary_parameters import BinaryParameter, UuidsParameter
from portal.store.statements import Reader, fetch


class _Sized(Protocol):
    @property
    def size_bytes(self) -> int:
        """Return the approximate memory use."""


Content = TypeVar("Content", bound=_Sized)

ROW_VERSION = "CAST(CAST({row}.xmin AS text) AS bigint)"
"""An expression that changes whenever the row is written."""

_NO_ROWS = (0, 0)


@dataclass(frozen=True, slots=True)
class RowSource(Generic[Content]):
    """How to read the rows of jobs, or of chunks, named by the bind `ids`.

    Rows of `load` begin with the name, the number of rows of the table and the sum of their
    versions; those of `states` have only these three. `build` makes content from the rest of a
    name's rows, `join` makes one content from several.
    """

    load: TextClause
    states: TextClause
    build: Callable[[Sequence[Sequence[Any]]], Content]
    join: Callable[[Sequence[Content]], Content]


@dataclass(slots=True)
class _Entry(Generic[Content]):
    """Content with the number of its rows and the sum of their versions, last read or compared at
    `version` of the corpus."""

    version: Hashable
    rows: tuple[int, int]
    content: Content


@dataclass(frozen=True, slots=True)
class _Joined(Generic[Content]):
    """The content of several names, with the rows of each."""

    version: Hashable
    rows: Sequence[tuple[int, int]]
    content: Content


class RowCache(Generic[Content]):
    """A process's LRU cache, by name: after a switch, only the rows of documents that were not on
    before are read, and after changes of the corpus, only those that changed. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = Lock()
        self._entries: LRUCache[Hashable, _Entry[Content]] = LRUCache(
            max_bytes, getsizeof=lambda entry: entry.content.size_bytes
        )
        # Joining takes longer than searching the result.
        self._joined: LRUCache[Hashable, _Joined[Content]] = LRUCache(
            max_bytes, getsizeof=lambda joined: joined.content.size_bytes
        )

    def get(
        self, reader: Reader, source: RowSource[Content], ids: str, version: Hashable
    ) -> Content:
        """Return the content of these jobs, or chunks, as one. `ids` is a PostgreSQL array,
        `version` that of the corpus: content cached for another is compared with its rows."""
        content = self.get_if_cached(reader, source, ids, version, max_read=sys.maxsize)
        return cast(Content, content)

    def get_if_cached(
        self,
        reader: Reader,
        source: RowSource[Content],
        ids: str,
        version: Hashable,
        *,
        max_read: int,
    ) -> Content | None:
        """Return the content if no more than `max_read` jobs or chunks are missing from the cache.
        Otherwise read that many of them and return None: after some calls none is missing."""
        key = source.load, ids
        with self._lock:
            joined = self._joined.get(key)
        if joined is not None and joined.version == version:
            return joined.content
        names = listed(ids)
        entries = self._read(reader, source, names, version, max_read)
        if len(entries) < len(names):
            return None
        rows = [entry.rows for entry in entries]
        if joined is not None and joined.rows == rows:
            content = joined.content
        else:
            content = source.join([entry.content for entry in entries])
        with self._lock:
            _store(self._joined, key, _Joined(version, rows, content), content.size_bytes)
        return content

    def _read(
        self,
        reader: Reader,
        source: RowSource[Content],
        names: Sequence[str],
        version: Hashable,
        max_read: int,
    ) -> list[_Entry[Content]]:
        """Return the entries of the names that are cached or among the `max_read` that are read."""
        with self._lock:
            kept = {name: one for name in names if (one := self._entries.get((source.load, name)))}
        if old := [name for name, entry in kept.items() if entry.version != version]:
            rows = fetch(reader, source.states, _ids(old))
            present = {name: (count, total) for name, count, total in rows}
            for name in old:
                if kept[name].rows == present.get(name, _NO_ROWS):
                    kept[name].version = version
                else:
                    del kept[name]
        if missing := [name for name in names if name not in kept][:max_read]:
            loaded: defaultdict[str, list[Sequence[Any]]] = defaultdict(list)
            for row in fetch(reader, source.load, _ids(missing)):
                loaded[row[0]].append(row)
            for name in missing:
                read = loaded[name]
                state = sum(row[1] for row in read), sum(row[2] for row in read)
                kept[name] = _Entry(version, state, source.build([row[3:] for row in read]))
            with self._lock:
                for name in missing:
                    size = kept[name].content.size_bytes
                    _store(self._entries, (source.load, name), kept[name], size)
        return [kept[name] for name in names if name in kept]


def listed(array: str | None) -> list[str]:
    """Return the values of a PostgreSQL array."""
    values = (array or "").strip("{}")
    return values.split(",") if values else []


def _ids(names: Sequence[str]) -> dict[str, BinaryParameter]:
    return {"ids": UuidsParameter.named(names)}


def _store(cache: LRUCache[Hashable, Any], key: Hashable, value: object, size: int) -> None:
    # A value that is larger than the whole cache is not stored.
    if size <= cache.maxsize:
        cache[key] = value
