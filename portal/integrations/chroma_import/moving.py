"""Copy a Chroma collection, batch by batch.

Records that are stored already are not written again, so a repeated import changes nothing and an
interrupted one continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from portal.domain.vector_collections import Distance, NewRecord, Page, RecordFilter, StoredRecord
from portal.errors import InvalidInput, NotFound
from portal.integrations.chroma_import.reading import (
    BrokenIndex,
    ChromaRecord,
    Reader,
    Source,
    Unreadable,
    distance_of,
)
from portal.integrations.chroma_import.records import Unusable, clean, is_same, to_record
from portal.integrations.values import DEFAULT_DOCUMENT_KEY
from portal.services.collections.nearest import NEVER_INDEXED
from portal.services.collections.records import Collections
from portal.store.collections.rows import VectorCollection

BATCH_SIZE = 500
_EXAMPLES = 5

Advance = Callable[[int, int], None]
"""Called with the number of records just processed, and the total."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an import. With `keeps`, existing records are kept even if they differ."""

    batch_size: int = BATCH_SIZE
    prefix: str = ""
    distance: Distance | None = None
    document_key: str | None = DEFAULT_DOCUMENT_KEY
    keeps: bool = False
    is_dry_run: bool = False


@dataclass(slots=True)
class Cases:
    """A count, and the ids of the first records."""

    count: int = 0
    ids: list[str] = field(default_factory=list)

    def add(self, record_id: str) -> None:
        self.count += 1
        if self.count <= _EXAMPLES:
            self.ids.append(record_id)


@dataclass(slots=True)
class Tally:
    """The result for one collection. `there` counts records that were already stored, `changed`
    those that differed and were replaced unless `keeps`; `skipped` and `notes` are by reason."""

    name: str
    target: str
    distance: Distance | None = None
    in_chroma: int = 0
    imported: int = 0
    there: int = 0
    changed: int = 0
    skipped: dict[str, Cases] = field(default_factory=dict)
    notes: dict[str, Cases] = field(default_factory=dict)
    warning: str | None = None
    refused: str | None = None
    missing: Cases = field(default_factory=Cases)
    in_portal: int | None = None
    only_here: int = 0

    @property
    def skipped_count(self) -> int:
        return sum(cases.count for cases in self.skipped.values())

    @property
    def seen(self) -> int:
        """Return how many records Chroma returned; its count may differ."""
        return self.imported + self.there + self.changed + self.skipped_count

    @property
    def is_whole(self) -> bool:
        """Return whether all records of Chroma are stored here, or would be after a dry run."""
        has_gaps = self.refused is not None or self.skipped or self.missing.count
        return not has_gaps and self.seen == self.in_chroma


class _Refused(Exception):
    """A collection that cannot be imported, and why."""


def move(
    collections: Collections,
    source: Source,
    options: Options,
    advance: Advance = lambda _done, _total: None,
) -> Tally:
    """Import a collection, or find out what that would do, and then count the stored records.
    Database errors propagate; batches written before are kept."""
    tally = Tally(source.name, options.prefix + source.name)
    reader = Reader(source, options.batch_size)
    try:
        tally.in_chroma = reader.count()
        advance(0, tally.in_chroma)
        tally.distance = _distance(source, options, tally)
        _Move(collections, reader, options, tally, advance).run()
    except (_Refused, BrokenIndex, Unreadable) as error:
        tally.refused = str(error)
    except InvalidInput as error:
        tally.refused = error.reason
    except NotFound:
        tally.refused = "it was deleted here meanwhile"
    return tally


def _distance(source: Source, options: Options, tally: Tally) -> Distance:
    configuration = source.configuration_json
    try:
        distance = options.distance or distance_of(source.metadata, configuration)
    except ValueError as error:
        raise _Refused(str(error)) from error
    configured = distance_of(None, configuration)
    if distance != configured:
        tally.warning = f"{distance} is taken, though Chroma's configuration says {configured}"
    return distance


@dataclass(slots=True)
class _Move:
    collections: Collections
    reader: Reader
    options: Options
    tally: Tally
    advance: Advance
    target: VectorCollection | None = field(default=None, init=False)
    dimensions: int | None = field(default=None, init=False)
    skipped_ids: set[str] = field(default_factory=set, init=False)

    def run(self) -> None:
        # Build the index once, from all vectors, which is faster than adding them one by one.
        writing = replace(self.collections, compared_one_by_one=NEVER_INDEXED)
        self._open()
        for batch in self.reader.batches():
            self._import_batch(batch, writing)
            self.advance(len(batch), self.tally.in_chroma)
        if self.target is not None and not self.options.is_dry_run:
            self.collections.index_if_many(self.target.id)
            self._verify()
        if self.target is not None:
            self._count(self.target)

    def _count(self, target: VectorCollection) -> None:
        tally = self.tally
        tally.in_portal = self.collections.count(target.id)
        of_chroma = tally.there + tally.changed - tally.missing.count
        of_chroma += 0 if self.options.is_dry_run else tally.imported
        tally.only_here = max(0, tally.in_portal - of_chroma)

    def _open(self) -> None:
        """Find or create the target collection."""
        name, distance = self.tally.target, self.tally.distance or "l2"
        self.target = self.collections.find(name)
        if self.target is None and not self.options.is_dry_run:
            metadata = clean(self.reader.source.metadata)
            self.target = self.collections.ensure(name, distance, metadata)
        elif self.target is None:
            self.collections.check_name(name)
        if self.target is not None and self.target.distance != distance:
            raise _Refused(
                f"a collection of this name is here with the distance {self.target.distance}, "
                f"while Chroma's has {distance}; delete that one, or give a --prefix"
            )
        if self.target is not None and self.target.model is not None:
            self.dimensions = self.target.model.dimensions

    def _import_batch(self, batch: Sequence[ChromaRecord], writing: Collections) -> None:
        """Write the new and changed records of a batch, in one transaction."""
        records = [record for item in batch if (record := self._usable(item)) is not None]
        there = {
            stored.id: stored for stored in self._find_stored([record.id for record in records])
        }
        new = [record for record in records if record.id not in there]
        changed = [
            record
            for record in records
            if record.id in there and not is_same(record, there[record.id])
        ]
        if self.target is not None and not self.options.is_dry_run:
            writing.upsert(self.target.id, new if self.options.keeps else new + changed)
        self.tally.imported += len(new)
        self.tally.changed += len(changed)
        self.tally.there += len(records) - len(new) - len(changed)

    def _usable(self, found: ChromaRecord) -> NewRecord | None:
        try:
            record, notes = to_record(found, self.options.document_key)
            self._check_length(record.vector)
        except Unusable as error:
            self.tally.skipped.setdefault(str(error), Cases()).add(found.id)
            self.skipped_ids.add(found.id)
            return None
        for note in notes:
            self.tally.notes.setdefault(note, Cases()).add(found.id)
        return record

    def _check_length(self, vector: Any) -> None:
        """Require the same length of all vectors: that of the stored ones, else of the first.
        Raises Unusable."""
        self.dimensions = self.dimensions or len(vector)
        if len(vector) != self.dimensions:
            raise Unusable(f"a vector of {len(vector)} numbers, not {self.dimensions}")

    def _find_stored(self, ids: Sequence[str], *, with_vectors: bool = True) -> list[StoredRecord]:
        if self.target is None or not ids:
            return []
        page = Page(with_vectors=with_vectors)
        return self.collections.records(self.target.id, RecordFilter(ids=tuple(ids)), page)

    def _verify(self) -> None:
        """Check that every record that was not skipped is stored."""
        for ids in self.reader.ids():
            wanted = [record_id for record_id in ids if record_id not in self.skipped_ids]
            here = {stored.id for stored in self._find_stored(wanted, with_vectors=False)}
            for record_id in wanted:
                if record_id not in here:
                    self.tally.missing.add(record_id)
