"""A portal that holds a synthetic corpus, made once and kept. The real portal is measured.

python -m bench.corpus --size 50000 --data-dir var/bench

with open_corpus(50_000, Path("var/bench")) as corpus:
    profile = corpus.profile("10 %")
    corpus.search(profile, corpus.questions[0])
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from bench import SECRET_KEY
from bench.corpus import profiles as profile_store
from bench.corpus.loading import CHUNK_IDS, DOCUMENT_IDS, Access, load
from bench.corpus.profiles import Profile
from bench.corpus.synthesis import MEAN_CHUNKS, Outline, make_ids, outline, write_all
from bench.databases import execute, exists, named
from portal.container import build_services
from portal.database.embedded import borrowed
from portal.database.lock import exclusive
from portal.domain.embedding import Vector
from portal.domain.search import SearchOutcome
from portal.embeddings.calibration import Calibration
from portal.embeddings.calibration import background as backgrounds
from portal.services import Services
from portal.services.operations import setup
from portal.services.people import accounts
from portal.services.search.cache import SearchCache
from portal.services.search.engine import search
from portal.settings import DEFAULT_MODELS, load_settings
from portal.store.migrations import MIGRATIONS_DIR
from portal.text.terms import lexicon
from portal.text.terms.analyser import ANALYSER_VERSION, index_terms

DEFAULT_DATA_DIR = Path("var") / "bench"
DIMENSIONS = 384
_SEED = 20_261
_SOURCES = ("texts.py", "vectors.py", "synthesis.py", "loading.py", "profiles.py")


class PreparedQuestions:
    """An embedder with precomputed query vectors, so that embedding takes no time. It has the
    bundled model's name, because the shipped calibration fits the synthetic vectors."""

    name = DEFAULT_MODELS["bundled"]
    dimensions = DIMENSIONS

    def __init__(self, vectors: dict[str, Vector]) -> None:
        self._vectors = vectors

    def embed_query(self, text: str) -> Vector:
        """Return the prepared vector. Raises KeyError for a question that was not prepared."""
        return self._vectors[text]

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        raise NotImplementedError("a prepared corpus brings its own vectors")


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A question; `vector` (dim,) is the model's, `target` the chunk it was made from."""

    text: str
    vector: Vector
    target: int


class Corpus:
    """An open corpus. Chunks and documents are indexed in the order of `chunk_ids` and
    `document_ids`."""

    def __init__(self, services: Services, size: int, files: _Files) -> None:
        self.services = services
        self.size = size
        self.questions = files.questions()
        self.profiles = files.profiles()
        self._files = files

    @cached_property
    def chunk_ids(self) -> list[UUID]:
        return make_ids(_SEED, CHUNK_IDS, self.size)

    @cached_property
    def document_ids(self) -> list[UUID]:
        return make_ids(_SEED, DOCUMENT_IDS, len(self.profiles[0].enabled))

    @cached_property
    def document_of(self) -> npt.NDArray[np.int64]:
        """Return the document of each chunk: (chunks,)."""
        document_of: npt.NDArray[np.int64] = self._files.array("document_of")
        return document_of

    @cached_property
    def vectors(self) -> Vector:
        """Return the vector of each chunk: (chunks, dim)."""
        vectors: Vector = self._files.array("vectors")
        return vectors

    def profile(self, name: str) -> Profile:
        """Return a profile by name: "100 %", "50 %", "10 %", "1 %" or "0.1 %", alone or followed by
        "in a conversation" (switched by overrides) or "by folders". Raises KeyError."""
        return {profile.name: profile for profile in self.profiles}[name]

    def allowed(self, profile: Profile) -> npt.NDArray[np.bool_]:
        """Return the mask (chunks,) of chunks that a search under the profile may return."""
        allowed: npt.NDArray[np.bool_] = profile.enabled[self.document_of]
        return allowed

    def search(self, profile: Profile, question: Question, **options: Any) -> SearchOutcome:
        """Search as the user of a profile does."""
        request = profile.request(question.text, **options)
        return search(self.services, profile.user, request)

    def search_vector(self, question: Question) -> Vector:
        """Return the corrected vector, which the vector leg of a hybrid search orders by."""
        calibration = self.services.calibration
        return calibration.query_statistics(question.vector, question.text).search_vector


def best_first(scores: Vector, k: int) -> npt.NDArray[np.int64]:
    """Return the indexes of the k greatest scores, greatest first, without infinitely low ones."""
    k = min(k, int(np.isfinite(scores).sum()))
    if k == 0:
        return np.array([], np.int64)
    places = np.argpartition(-scores, k - 1)[:k]
    return places[np.argsort(-scores[places], kind="stable")]


@contextmanager
def open_corpus(
    size: int,
    data_dir: Path = DEFAULT_DATA_DIR,
    *,
    log: Callable[[str], None] = lambda _message: None,
    stale_ok: bool = False,
    mean_chunks: int = MEAN_CHUNKS,
    has_words: bool = True,
    **overrides: Any,
) -> Iterator[Corpus]:
    """Open the corpus of `size` chunks in documents of about `mean_chunks`; make it if the data
    directory has none that fits this code and schema (with `stale_ok` any will do). `overrides` are
    settings. The server is started, or shared if another process has started it. Without
    `has_words` the keyword index may be missing."""
    data_dir = data_dir.resolve()
    data_dir.mkdir(parents=True, exist_ok=True)
    with borrowed(data_dir, report=log) as server_url:
        files = _Files(data_dir, size, mean_chunks)
        address = named(server_url, files.database)
        with exclusive(data_dir / f"{files.name}.lock"):
            if not (files.is_current(stale_ok=stale_ok) and exists(server_url, files.database)):
                files.forget()
                _make(server_url, address, files, log, overrides)
        corpus = attach(size, data_dir, address, mean_chunks=mean_chunks, **overrides)
        try:
            for _ in setup.prepare_database(corpus.services):
                pass
            if has_words:
                setup.repair_keyword_index(corpus.services)
            yield corpus
        finally:
            corpus.services.database.dispose()


def attach(
    size: int,
    data_dir: Path,
    database_url: str,
    *,
    mean_chunks: int = MEAN_CHUNKS,
    **overrides: Any,
) -> Corpus:
    """Open a corpus that another process holds open, for client processes. This loads what the
    portal loads before it serves."""
    lexicon.load()
    files = _Files(data_dir, size, mean_chunks)
    return Corpus(_services(data_dir, database_url, files.questions(), overrides), size, files)


def _services(
    data_dir: Path,
    url: str,
    questions: tuple[Question, ...],
    overrides: dict[str, Any],
) -> Services:
    values: dict[str, Any] = {
        "data_dir": data_dir,
        "log_level": "error",
        "secret_key": SECRET_KEY,
        "embedding": {"provider": "hashing"},
    }
    services = build_services(load_settings(**(values | overrides)), database_url=url)
    embedder = PreparedQuestions({one.text: one.vector for one in questions})
    return replace(
        services,
        embedder=embedder,
        calibration=Calibration.for_model(embedder),
        search_cache=SearchCache(),  # Caches nothing, so that every search is measured.
    )


def _make(
    server_url: str,
    url: str,
    files: _Files,
    log: Callable[[str], None],
    overrides: dict[str, Any],
) -> None:
    started = time.monotonic()
    fingerprint = _fingerprint()
    log(f"planning {files.size} passages")
    background = backgrounds.load(PreparedQuestions({}))
    plan = outline(files.size, _SEED, background, mean_chunks=files.mean_chunks)
    started_before = files.read_started(fingerprint)
    if started_before is None or not exists(server_url, files.database):
        started_before = None
        execute(server_url, f"DROP DATABASE IF EXISTS {files.database} WITH (FORCE)")
        execute(server_url, f"CREATE DATABASE {files.database}")
    services = _services(files.directory, url, (), overrides)
    try:
        if started_before is None:
            for _ in setup.prepare_database(services):
                pass
            started_before = tuple(
                accounts.create_user(services, name=name, password="correct horse battery").id
                for name in ("owner", "keeper")
            )
            files.keep_started(fingerprint, started_before)
        access = Access.draw(plan, owner=started_before[0], keeper=started_before[1])
        write = partial(write_all, plan, processes=os.cpu_count() or 1)
        texts = load(services, plan, lambda done: write(done=done), access, log=log)
        log("who may see what")
        visible = ~(access.is_private | access.is_deleted)
        document_ids = make_ids(_SEED, DOCUMENT_IDS, plan.document_count)
        profiles = profile_store.make(services, document_ids, visible, seed=_SEED)
        files.keep(plan, texts, profiles, fingerprint)
    finally:
        services.database.dispose()
    log(f"made in {time.monotonic() - started:.0f} s")


class _Files:
    """The files beside the database: vectors, questions and profiles."""

    def __init__(self, directory: Path, size: int, mean_chunks: int = MEAN_CHUNKS) -> None:
        self.directory = directory
        self.size = size
        self.mean_chunks = mean_chunks
        kind = "" if mean_chunks == MEAN_CHUNKS else f"-{mean_chunks}"
        self.name = f"corpus-{size}{kind}"
        self.database = f"bench_{size}{kind.replace('-', '_')}"
        self._arrays = directory / f"{self.name}.npz"
        self._meta = directory / f"{self.name}.json"
        self._started = directory / f"{self.name}.started.json"

    def is_current(self, *, stale_ok: bool) -> bool:
        """Return whether the files were made by this code, for this schema and analyser."""
        try:
            meta = self._read_meta()
        except (OSError, ValueError):
            return False
        fits = stale_ok or meta["fingerprint"] == _fingerprint()
        return fits and self._arrays.exists()

    def forget(self) -> None:
        self._meta.unlink(missing_ok=True)

    def keep_started(self, fingerprint: str, users: Sequence[UUID]) -> None:
        """Record that the database is ready to be filled, so that an interrupted run can resume."""
        values = {"fingerprint": fingerprint, "users": [str(one) for one in users]}
        self._started.write_text(json.dumps(values), encoding="utf-8")

    def read_started(self, fingerprint: str) -> tuple[UUID, ...] | None:
        """Return the owner and the keeper of a corpus that this code has begun."""
        try:
            values = json.loads(self._started.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if values["fingerprint"] != fingerprint:
            return None
        return tuple(UUID(one) for one in values["users"])

    def keep(
        self,
        plan: Outline,
        texts: dict[int, str],
        profiles: Sequence[Profile],
        fingerprint: str,
    ) -> None:
        np.savez(
            self._arrays,
            vectors=plan.vectors,
            document_of=plan.document_of,
            questions=plan.questions,
            enabled=np.stack([profile.enabled for profile in profiles]),
        )
        meta = {
            "fingerprint": fingerprint,
            "questions": [texts[place] for place in range(len(plan.targets))],
            "targets": plan.targets.tolist(),
            "profiles": [profile.as_dict() for profile in profiles],
        }
        # Written last, as the mark that everything else is complete.
        self._meta.write_text(json.dumps(meta, ensure_ascii=False), encoding="utf-8")
        self._started.unlink(missing_ok=True)

    def questions(self) -> tuple[Question, ...]:
        meta, vectors = self._read_meta(), self.array("questions")
        return tuple(
            Question(text, vector, target)
            for text, vector, target in zip(
                meta["questions"], vectors, meta["targets"], strict=True
            )
        )

    def profiles(self) -> tuple[Profile, ...]:
        meta, enabled = self._read_meta(), self.array("enabled")
        return tuple(
            Profile.from_dict(values, flags)
            for values, flags in zip(meta["profiles"], enabled, strict=True)
        )

    def array(self, name: str) -> Any:
        with np.load(self._arrays) as arrays:
            return arrays[name]

    def _read_meta(self) -> Any:
        return json.loads(self._meta.read_text(encoding="utf-8"))


def _fingerprint() -> str:
    """Return a hash of the code that makes a corpus, the schema and the analyser."""
    here = Path(__file__).parent
    sources = [here / name for name in _SOURCES] + sorted(
        (MIGRATIONS_DIR / "versions").glob("*.py")
    )
    # Hash the analyser's output, not only its version, so that changes in progress count.
    sample = "\n".join(backgrounds.texts("zh", "passages") + backgrounds.texts("en", "passages"))
    digest = hashlib.sha256(f"{_SEED} {ANALYSER_VERSION} {index_terms(sample)}".encode())
    for path in sources:
        digest.update(path.read_bytes())
    return digest.hexdigest()
