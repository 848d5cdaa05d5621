"""Importing Chroma collections: what is written, skipped and reported.

The records come from memory here; `test_import_chroma_directory.py` reads them from Chroma.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from portal.integrations.chroma_import.moving import Options, Tally, move
from portal.integrations.chroma_import.reading import ChromaRecord
from portal.processes.cli.chroma_import import _remarks
from portal.services import Services
from portal.services.collections.records import Collections
from portal.store.collections.writes import write
from tests.factories.shelf import Shelf
from tests.integration.collections.langchain.conftest import MakeStore

COUNT = 25
LARGE = {"large": 1e23, "larger": [1e300, -1e16]}
SMALL = Options(batch_size=4)


@pytest.fixture
def collections(services: Services) -> Collections:
    return Collections(services.database, services.settings.search)


@pytest.fixture
def shelf() -> Shelf:
    vectors = np.random.default_rng(7).normal(size=(COUNT, 3)).astype(np.float32)
    records = [
        ChromaRecord(f"id-{number}", f"text {number}", {"n": number} | LARGE, vectors[number])
        for number in range(COUNT)
    ]
    return Shelf(records, metadata={"hnsw:space": "cosine", "note": "x"})


def _counts(tally: Tally) -> tuple[int, int, int, int, int | None]:
    return tally.imported, tally.there, tally.changed, tally.skipped_count, tally.in_portal


def test_collection_is_imported_whole_and_once(
    collections: Collections, shelf: Shelf, make_store: MakeStore
) -> None:
    dry = move(collections, shelf, Options(is_dry_run=True))
    assert _counts(dry) == (COUNT, 0, 0, 0, None)
    assert collections.names() == []

    told = []
    tally = move(collections, shelf, SMALL, lambda done, total: told.append((done, total)))
    assert _counts(tally) == (COUNT, 0, 0, 0, COUNT)
    assert tally.is_whole
    assert told == [(0, COUNT)] + [(4, COUNT)] * 6 + [(1, COUNT)]
    store = make_store("shelf", create_collection_if_not_exists=False)
    assert store._collection.metadata == shelf.metadata
    assert store._collection.configuration["hnsw"]["space"] == "cosine"
    found = store.get(include=["documents", "metadatas", "embeddings"])
    assert found["ids"] == [record.id for record in shelf.records]
    assert found["documents"] == [record.document for record in shelf.records]
    assert [metadata["n"] for metadata in found["metadatas"]] == list(range(COUNT))
    assert float(found["metadatas"][0]["large"]) == LARGE["large"]
    np.testing.assert_array_equal(found["embeddings"], [one.vector for one in shelf.records])

    assert _counts(move(collections, shelf, SMALL)) == (0, COUNT, 0, 0, COUNT)


def test_different_record_is_replaced_unless_existing_ones_are_kept(
    collections: Collections, shelf: Shelf, make_store: MakeStore
) -> None:
    move(collections, shelf, SMALL)
    store = make_store("shelf")
    store._collection.update("id-3", [[1, 2, 3]], [{"n": 99}], ["changed here"])
    store._collection.delete(ids=["id-5"])
    store._collection.add("mine", [[1, 2, 3]])
    here = store.get("id-3")

    for options in (Options(is_dry_run=True), Options(keeps=True, is_dry_run=True)):
        dry = move(collections, shelf, options)
        assert (*_counts(dry), dry.only_here) == (1, COUNT - 2, 1, 0, COUNT, 1)
    kept = move(collections, shelf, Options(keeps=True))
    assert _counts(kept) == (1, COUNT - 2, 1, 0, COUNT + 1)
    assert kept.is_whole
    assert store.get("id-3") == here
    replaced = move(collections, shelf, SMALL)
    assert (*_counts(replaced), replaced.only_here) == (0, COUNT - 1, 1, 0, COUNT + 1, 1)
    assert store.get("id-3")["documents"] == ["text 3"]
    assert store.get("mine")["ids"] == ["mine"]


def test_unusable_records_are_skipped_and_reported_and_the_rest_is_imported(
    collections: Collections, shelf: Shelf, make_store: MakeStore
) -> None:
    vector = shelf.records[0].vector
    shelf.records += [
        ChromaRecord("nul\0", "text", None, vector),
        ChromaRecord("long", "text", None, [1.0, 2.0, 3.0, 4.0]),
        ChromaRecord("nan", "text", None, [float("nan")] * 3),
        *(ChromaRecord(f"none-{number}", "text") for number in range(7)),
        ChromaRecord("silent", None, {"k": "a\0b"}, vector),
    ]
    shelf.torn = {"id-1"}
    for imported in (COUNT, 0):
        tally = move(collections, shelf, Options(batch_size=50))
        assert _counts(tally) == (imported, COUNT - imported, 0, 11, COUNT)
        assert not tally.is_whole
        assert not tally.missing.count
        by_reason = {reason: (cases.count, cases.ids) for reason, cases in tally.skipped.items()}
        assert by_reason == {
            "an ID must not contain NUL or an unpaired surrogate": (1, ["nul\0"]),
            "a vector of 4 numbers, not 3": (1, ["long"]),
            "embeddings must not hold NaN or infinity": (1, ["nan"]),
            "no vector": (8, ["id-1", *(f"none-{number}" for number in range(4))]),
        }
        assert {reason: cases.ids for reason, cases in tally.notes.items()} == {
            "no text: replaced by an empty text": ["silent"],
            "NUL or an unpaired surrogate: replaced by a space or “?”": ["silent"],
        }
    silent = make_store("shelf").get("silent")
    assert (silent["documents"], silent["metadatas"]) == ([""], [{"k": "a b"}])


def test_a_collection_that_does_not_fit_is_refused_and_unchanged(
    collections: Collections, shelf: Shelf, make_store: MakeStore
) -> None:
    make_store("shelf", collection_metadata={"hnsw:space": "ip"})
    for is_dry_run in (True, False):
        clash = move(collections, shelf, Options(is_dry_run=is_dry_run))
        assert "distance ip, while Chroma's has cosine" in (clash.refused or "")
        assert not clash.is_whole
        shelf.name = "portal"
        reserved = move(collections, shelf, Options(is_dry_run=is_dry_run))
        assert "the portal's own" in (reserved.refused or "")
        shelf.name = "shelf"
    assert make_store("shelf").count() == 0
    beside = move(collections, shelf, Options(prefix="from-"))
    assert (beside.target, beside.in_portal, beside.is_whole) == ("from-shelf", COUNT, True)
    forced = move(collections, shelf, Options(distance="ip"))
    assert (forced.distance, forced.in_portal) == ("ip", COUNT)
    assert "configuration says l2" in (forced.warning or "")

    nothing = move(collections, Shelf([], name="nothing"), SMALL)
    assert (nothing.in_portal, nothing.is_whole, nothing.distance) == (0, True, "l2")
    # The collection keeps Chroma's default distance, not the portal's.
    opened = make_store("nothing", create_collection_if_not_exists=False)
    assert (opened.count(), opened._collection.configuration["hnsw"]["space"]) == (0, "l2")


def test_lost_records_are_reported_after_the_import(
    collections: Collections, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(session, collection, model, records) -> None:
        write(session, collection, model, [record for record in records if record.id != "id-8"])

    monkeypatch.setattr("portal.store.collections.writes.write", lose)
    tally = move(collections, shelf, SMALL)
    assert (tally.missing.count, tally.missing.ids) == (1, ["id-8"])
    assert (tally.in_portal, tally.is_whole) == (COUNT - 1, False)


def test_import_is_incomplete_if_chroma_returns_fewer_records_than_it_counts(
    collections: Collections, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shelf, "count", lambda _self: COUNT + 1)
    for options in (Options(is_dry_run=True), SMALL, Options(keeps=True)):
        tally = move(collections, shelf, options)
        assert (tally.seen, tally.is_whole) == (COUNT, False)
        assert "shelf: Chroma counts 26 records and gave 25" in _remarks([tally], SMALL)


def test_stopped_import_is_reported_apart_from_a_refused_one(
    collections: Collections, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def erase(done: int, _total: int) -> None:
        if done:
            handle = collections.find("shelf")
            assert handle is not None
            collections.drop(handle.id)

    erased = move(collections, shelf, SMALL, erase)
    assert (erased.imported, erased.is_whole) == (4, False)
    assert next(_remarks([erased], SMALL)) == "shelf: stopped: it was deleted here meanwhile"

    get = Shelf.get

    def fail(self: Shelf, ids: Any = None, **asked: Any) -> Any:
        if ids and "id-5" in ids:
            raise RuntimeError("disk")
        return get(self, ids, **asked)

    monkeypatch.setattr(Shelf, "get", fail)
    stopped = move(collections, shelf, SMALL)
    assert next(_remarks([stopped], SMALL)) == "shelf: stopped: disk"
    monkeypatch.setattr(Shelf, "count", lambda _self: 1 // 0)
    line = next(_remarks([move(collections, shelf, SMALL)], SMALL))
    assert line.startswith("shelf: not imported: ")


def test_an_import_counts_vectors_once(
    collections: Collections, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []

    def count(*arguments: object) -> bool:
        counted.append(arguments)
        return False

    monkeypatch.setattr("portal.store.collections.rows.needs_index", count)
    assert move(collections, shelf, SMALL).is_whole
    assert len(counted) == 1
