"""`portal import-chroma` on directories written by Chroma: each record is imported once, also
after an interruption, and the directory is left unchanged."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from portal.integrations.chroma.client import open_directory
from portal.integrations.langchain import PostgresVectorStore
from portal.processes.cli import main
from tests.integration.collections.langchain.conftest import MakeStore

pytestmark = pytest.mark.chroma
pytest.importorskip("chromadb", reason="needs the extra `chroma` (./run setup --chroma)")

ROOT = Path(__file__).resolve().parents[4]
DIMENSIONS = 24
BATCH = 1000
# From 1,000 records on, Chroma keeps vectors in its index; below that, in its log.
COLLECTIONS = {"handbook": ("cosine", 2500), "code": ("l2", 1700), "mail": ("ip", 800)}
TOLERANCE = 1e-6

Run = Callable[..., Result]


@contextmanager
def _client(directory: Path) -> Iterator[Any]:
    """Yield a client and close it, because Chroma otherwise keeps its files open."""
    client = open_directory(directory)
    try:
        yield client
    finally:
        client.close()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with 5,000 records in three collections."""
    path = tmp_path_factory.mktemp("made") / "chroma"
    random = np.random.default_rng(11)
    with _client(path) as client:
        for name, (space, count) in COLLECTIONS.items():
            made = client.create_collection(
                name, metadata={"hnsw:space": space}, embedding_function=None
            )
            for start in range(0, count, BATCH):
                numbers = range(start, min(start + BATCH, count))
                made.add(
                    ids=[f"{name}-{number}" for number in numbers],
                    embeddings=random.normal(size=(len(numbers), DIMENSIONS)),
                    documents=[f"Passage {number} of {name}, 第 {number} 段" for number in numbers],
                    metadatas=[_metadata(number) for number in numbers],
                )
    return path


def _metadata(number: int) -> dict[str, Any]:
    return {
        "number": number,
        "half": number / 2 + 0.25,
        "even": number % 2 == 0,
        "kind": f"种{number % 5}",
        "tags": ["all", f"t{number % 3}"],
        "resource_hash": f"r{number // 10}",
    }


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    return {
        "DATABASE_URL": database_url,
        "PORTAL_DATA_DIR": str(tmp_path / "data"),
        "PORTAL_EMBEDDING__PROVIDER": "hashing",
    }


@pytest.fixture
def run(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def call(*arguments: str | Path) -> Result:
        words = ["import-chroma", *map(str, arguments)]
        return CliRunner().invoke(main, words, catch_exceptions=False)

    return call


def _report(result: Result) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(result.stdout)}


def _content(directory: Path) -> dict[str, str]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def _of_chroma(directory: Path, copy: Path) -> dict[str, dict[str, Any]]:
    """Return what Chroma itself reads from a copy of the directory."""
    copy.mkdir()
    for path in directory.rglob("*"):
        target = copy / path.relative_to(directory)
        target.mkdir() if path.is_dir() else target.write_bytes(path.read_bytes())
    with _client(copy) as client:
        return {
            collection.name: collection.get(include=["documents", "metadatas", "embeddings"])
            for collection in client.list_collections()
        }


def test_five_thousand_records_are_imported_once(
    run: Run, directory: Path, tmp_path: Path, make_store: MakeStore
) -> None:
    before = _content(directory)
    dry = run(directory, "--dry-run")
    assert dry.exit_code == 0
    assert dry.stdout.splitlines()[-1] == "a dry run: nothing was written"
    for imported, there in ((True, False), (False, True)):
        result = run(directory, "--json")
        assert result.exit_code == 0, result.output
        report = _report(result)
        assert {name: one["distance"] for name, one in report.items()} == {
            name: space for name, (space, _count) in COLLECTIONS.items()
        }
        for name, (_space, count) in COLLECTIONS.items():
            counts = [report[name][field] for field in ("in_chroma", "imported", "there")]
            assert counts == [count, imported * count, there * count]
            assert (report[name]["in_portal"], report[name]["changed"]) == (count, 0)
    assert _content(directory) == before
    assert [path.name for path in (tmp_path / "data").glob("chroma-import*")] == [
        "chroma-import.lock"
    ]

    for name, theirs in _of_chroma(directory, tmp_path / "compared").items():
        store = make_store(name, create_collection_if_not_exists=False)
        ours = store.get(include=["documents", "metadatas", "embeddings"])
        assert ours["ids"] == theirs["ids"]
        assert ours["documents"] == theirs["documents"]
        assert ours["metadatas"] == theirs["metadatas"]
        assert np.abs(ours["embeddings"] - theirs["embeddings"]).max() <= TOLERANCE
        assert store.count() == COLLECTIONS[name][1]
        _assert_distances(store, COLLECTIONS[name][0], theirs["ids"], theirs["embeddings"])


def _assert_distances(
    store: PostgresVectorStore, space: str, ids: list[str], vectors: np.ndarray
) -> None:
    question = np.random.default_rng(5).normal(size=DIMENSIONS)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(question)
    expected = {
        "cosine": 1 - vectors @ question / lengths,
        "l2": np.square(vectors - question).sum(axis=1),
        "ip": 1 - vectors @ question,
    }[space]
    nearest = np.argsort(expected)[:5]
    found = store.similarity_search_by_vector_with_relevance_scores(question.tolist(), k=5)
    assert [document.id for document, _distance in found] == [ids[place] for place in nearest]
    np.testing.assert_allclose([one for _document, one in found], expected[nearest], atol=1e-5)


KILLED = """
import os, signal
from portal.store.collections import writes
write, batches = writes.write, []
def write_and_die(*arguments):
    write(*arguments)
    batches.append(1)
    if len(batches) == 4:
        os.kill(os.getpid(), signal.SIGKILL)  # In the middle of the fourth transaction.
writes.write = write_and_die
from portal.processes.cli import main
main()
"""


def test_killed_import_continues_where_it_stopped(
    run: Run, directory: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    options = ["import-chroma", str(directory), "--collection", "mail", "--batch-size", "100"]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *options],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = list((tmp_path / "data").glob("chroma-import-*"))
    assert len(left) == 1
    resumed = _report(run(directory, "--collection", "mail", "--json"))["mail"]
    assert (resumed["there"], resumed["imported"], resumed["in_portal"]) == (300, 500, 800)
    assert not list((tmp_path / "data").glob("chroma-import-*")), "the copy that was left goes"


# Chroma 0.5 and 0.6 stored this configuration for every collection, whichever distance it used.
OLD_CONFIGURATION = {
    "hnsw_configuration": {
        "space": "l2",
        "ef_construction": 100,
        "ef_search": 10,
        "num_threads": 2,
        "M": 16,
        "resize_factor": 1.2,
        "batch_size": 100,
        "sync_threshold": 1000,
        "_type": "HNSWConfigurationInternal",
    },
    "_type": "CollectionConfigurationInternal",
}


def _make_old(directory: Path) -> None:
    """Rewrite a directory as Chroma 0.5 wrote it: with distances in metadata only."""
    with closing(sqlite3.connect(directory / "chroma.sqlite3")) as database, database:
        database.execute(
            "UPDATE collections SET schema_str = NULL, config_json_str = ?",
            [json.dumps(OLD_CONFIGURATION)],
        )
        database.execute(
            "INSERT INTO segment_metadata (segment_id, key, str_value) SELECT s.id, m.key,"
            " m.str_value FROM segments s JOIN collection_metadata m"
            " ON m.collection_id = s.collection WHERE s.scope = 'VECTOR'"
        )


def test_odd_records_of_an_old_directory_are_reported_by_reason(
    run: Run, tmp_path: Path, make_store: MakeStore
) -> None:
    path = tmp_path / "old"
    with _client(path) as client:
        made = client.create_collection(
            "odd", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )
        made.add(ids=["plain", "silent"], embeddings=[[3, 4], [1, 0]], documents=["text", None])
        made.add(ids=["n\0"], embeddings=[[1, 1]], documents=["lost"])
        made.add(ids=["torn"], embeddings=[[0, 2]], documents=["a\0b"], metadatas=[{"k": "\0"}])
        made.add(ids=["linked"], embeddings=[[2, 2]], uris=["https://example.org"])
        client.create_collection("empty", embedding_function=None)
        client.create_collection("portal", embedding_function=None)
    _make_old(path)
    with closing(sqlite3.connect(path / "chroma.sqlite3")) as database, database:
        # A record that lost its vector.
        database.execute(
            "INSERT INTO embeddings (segment_id, embedding_id, seq_id)"
            " SELECT s.id, 'ghost', 1 FROM segments s JOIN collections c ON c.id = s.collection"
            " WHERE s.scope = 'METADATA' AND c.name = 'odd'"
        )
    before = _content(path)
    result = run(path)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "portal: not all of odd, portal came over"
    assert _content(path) == before
    for line in (
        r"odd: skipped 1 ('n\x00'): an ID must not contain NUL or an unpaired surrogate",
        "odd: skipped 1 ('ghost'): no vector",
        "odd: 2 ('silent', 'linked'): no text: replaced by an empty text",
        "odd: 1 ('torn'): NUL or an unpaired surrogate: replaced by a space or “?”",
        "odd: 1 ('linked'): a URI, which is not kept",
        "odd: cosine is taken, though Chroma's configuration says l2",
        "portal: not imported: the collection “portal” is the portal's own",
    ):
        assert line in result.stdout.splitlines()
    store = make_store("odd", create_collection_if_not_exists=False)
    found = store.get(include=["documents", "metadatas", "embeddings"])
    assert found["ids"] == ["plain", "silent", "torn", "linked"]
    assert found["documents"] == ["text", "", "a b", ""]
    assert found["metadatas"] == [None, None, {"k": " "}, None]
    np.testing.assert_allclose(found["embeddings"], [[3, 4], [1, 0], [0, 2], [2, 2]], atol=1e-6)
    assert make_store("empty", create_collection_if_not_exists=False).count() == 0

    wrong = run(path, "--collection", "odd", "--collection", "nothing")
    assert wrong.exit_code == 1
    assert "no collection nothing; there are empty, odd, portal" in wrong.stderr
    assert run(path, "--collection", "portal", "--prefix", "old-").exit_code == 0
    assert make_store("old-portal", create_collection_if_not_exists=False).count() == 0
    absent = tmp_path / "absent"
    assert "there is no such directory" in run(absent).stderr
    assert not absent.exists()


def _example(directory: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "examples/moving_from_chroma.py", str(directory)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_example_leaves_existing_directories_alone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / "notes.txt").touch()
    refused = _example(tmp_path / "chroma", environment)
    assert refused.returncode == 1
    assert "is not empty" in refused.stderr
    assert list((tmp_path / "chroma").iterdir()) == [tmp_path / "chroma" / "notes.txt"]


def test_example_imports_and_compares_the_results(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = _example(tmp_path / "chroma", environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == [
        "3 records",
        "leave: Annual leave is 24 days a year. {'source': 'leave.md'}",
        "the same answers, in the same order, at the same distances",
    ]
